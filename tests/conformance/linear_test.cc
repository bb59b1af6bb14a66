// SPDX-License-Identifier: Apache-2.0
// Linear, RmsNorm, Logits, AttentionOut and what binding refuses.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/float_formats.h"
#include "base/random.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/device.h"
#include "tests/conformance/goldens.h"
#include "tests/conformance/quant_rules.h"

namespace belay::conformance {
namespace {

class LinearTest : public BackendTest {
 protected:
  static std::vector<float> Run(Device& device, const ops::BoundLinear* weight,
                                const ConstTensorView& x, DType dtype) {
    const TensorView y = device.Zeros(dtype, {x.n_rows(), weight->n_out()});
    device.ops().Linear({.weight = weight, .x = x, .y = y});
    return device.Get(y);
  }
};

ops::LinearSource GoldenLinear(const std::string& name) {
  ops::LinearSource source;
  source.weight = Golden(name + ".w");
  source.scale = Golden(name + ".w_scale");
  if (source.weight.dtype() == DType::kI8) {
    source.block_n = 1;
    source.block_k = 32;
  }
  return source;
}

TEST_P(LinearTest, QuantisedGemms) {
  const auto device = Make(Official());
  for (const std::string name : {"fp8_gemm", "fp8_gemm_tail", "fp4_gemm"}) {
    SCOPED_TRACE(name);
    const auto* weight = device->Bind(GoldenLinear(name));
    const TensorView x = device->Put(Golden(name + ".x"));
    EXPECT_TRUE(NearBf16(Run(*device, weight, x, DType::kBF16),
                         GoldenFloats(name + ".y")));
    // Unrounded: K terms in float32 differ from the ideal by at most about
    // K eps of the sum of magnitudes; 1e-5 of the rms is a tenth of that.
    const auto ideal = GoldenFloats(name + ".y_ideal_f32");
    double sum = 0.0;
    for (const float v : ideal) sum += static_cast<double>(v) * v;
    const double rms = std::sqrt(sum / static_cast<double>(ideal.size()));
    EXPECT_TRUE(
        NearF32(Run(*device, weight, x, DType::kF32), ideal, 1e-6, 1e-5 * rms));
  }
}

// A token's result does not depend on the tokens beside it, nor on how many.
TEST_P(LinearTest, RowsAreIndependent) {
  const auto device = Make(Official());
  for (const std::string name : {"fp8_gemm", "fp8_gemm_tail", "fp4_gemm"}) {
    SCOPED_TRACE(name);
    const auto* weight = device->Bind(GoldenLinear(name));
    const TensorView x = device->Put(Golden(name + ".x"));
    const auto all = Run(*device, weight, x, DType::kF32);
    const auto n_out = static_cast<size_t>(weight->n_out());
    for (int64_t t = 0; t < x.n_rows(); ++t) {
      const auto one = Run(*device, weight, x.rows(t, 1), DType::kF32);
      const auto first = all.begin() + t * static_cast<int64_t>(n_out);
      EXPECT_TRUE(SameBits(one, {first, first + static_cast<int64_t>(n_out)}))
          << "token " << t;
    }
  }
}

// Through the identity matrix an FP8 linear shows its quantised input.
TEST_P(LinearTest, ActQuantSeenThroughIdentity) {
  const auto device = Make(Official());
  const int64_t n = Golden("act_quant128.x").dim(1);
  std::vector<uint8_t> codes(static_cast<size_t>(n * n));
  const uint8_t one = E4m3FromF32(1.0f);
  for (int64_t i = 0; i < n; ++i) codes[static_cast<size_t>(i * n + i)] = one;
  const std::vector<float> scales(static_cast<size_t>((n / 128) * (n / 128)),
                                  1.0f);
  ops::LinearSource source;
  source.weight = ConstTensorView(codes.data(), DType::kF8E4M3, {n, n});
  source.scale =
      ConstTensorView(scales.data(), DType::kF32, {n / 128, n / 128});
  std::vector<float> expected = GoldenFloats("act_quant128.x");
  Fp8InPlaceRule(expected, 128);
  EXPECT_EQ(Run(*device, device->Bind(source),
                device->Put(Golden("act_quant128.x")), DType::kBF16),
            expected);
  // wo_a: no quantisation of the input.
  source.quantise_input = false;
  EXPECT_EQ(Run(*device, device->Bind(source),
                device->Put(Golden("act_quant128.x")), DType::kBF16),
            GoldenFloats("act_quant128.x"));
}

// Both scale dtypes mean the same numbers.
TEST_P(LinearTest, F32AndE8m0Scales) {
  const auto device = Make(Official());
  const ops::LinearSource e8m0 = GoldenLinear("fp8_gemm");
  std::vector<float> scales;
  for (const uint8_t code : e8m0.scale.as<uint8_t>()) {
    scales.push_back(F32FromE8m0(code));
  }
  ops::LinearSource f32 = e8m0;
  f32.scale = ConstTensorView(scales.data(), DType::kF32, e8m0.scale.shape());
  const TensorView x = device->Put(Golden("fp8_gemm.x"));
  EXPECT_TRUE(SameBits(Run(*device, device->Bind(f32), x, DType::kF32),
                       Run(*device, device->Bind(e8m0), x, DType::kF32)));
}

// Rows of x with gaps between them, and a weight that is a slice of a wider
// one.
TEST_P(LinearTest, StridedRows) {
  const auto device = Make(Official());
  const auto* weight = device->Bind(GoldenLinear("fp8_gemm_tail"));
  const ConstTensorView golden = Golden("fp8_gemm_tail.x");
  const int64_t n = golden.dim(1);
  const TensorView wide = device->Zeros(DType::kBF16, {golden.dim(0), n + 40});
  std::vector<uint16_t> host;
  for (int64_t t = 0; t < golden.dim(0); ++t) {
    const uint16_t* row = golden.row<uint16_t>(t);
    host.insert(host.end(), row, row + n);
    host.insert(host.end(), 40, Bf16FromF32(1e9f));
  }
  device->ops().CopyIn(wide, host.data());
  const ConstTensorView strided(wide.data(), DType::kBF16, golden.shape(),
                                wide.row_bytes_stride());
  EXPECT_TRUE(SameBits(Run(*device, weight, strided, DType::kF32),
                       Run(*device, weight, device->Put(golden), DType::kF32)));

  ops::LinearSource slice = GoldenLinear("fp8_gemm");
  slice.weight =
      ConstTensorView(slice.weight.data(), DType::kF8E4M3, {384, 256}, 512);
  slice.scale = ConstTensorView(slice.scale.data(), DType::kF8E8M0, {3, 2}, 4);
  std::vector<uint8_t> left, left_scale;
  for (int64_t n_row = 0; n_row < 384; ++n_row) {
    const uint8_t* row = slice.weight.row<uint8_t>(n_row);
    left.insert(left.end(), row, row + 256);
  }
  for (int64_t b = 0; b < 3; ++b) {
    const uint8_t* row = slice.scale.row<uint8_t>(b);
    left_scale.push_back(row[0]);
    left_scale.push_back(row[1]);
  }
  ops::LinearSource packed = slice;
  packed.weight = ConstTensorView(left.data(), DType::kF8E4M3, {384, 256});
  packed.scale = ConstTensorView(left_scale.data(), DType::kF8E8M0, {3, 2});
  const TensorView x = device->Put(golden);
  EXPECT_TRUE(SameBits(Run(*device, device->Bind(slice), x, DType::kF32),
                       Run(*device, device->Bind(packed), x, DType::kF32)));
}

// y rows with gaps: what lies between them stays.
TEST_P(LinearTest, StridedOutput) {
  const auto device = Make(Official());
  const auto* weight = device->Bind(GoldenLinear("fp8_gemm_tail"));
  const TensorView x = device->Put(Golden("fp8_gemm_tail.x"));
  const int64_t n = x.n_rows();
  const int64_t n_out = weight->n_out();
  const TensorView wide = device->Zeros(DType::kF32, {n, n_out + 8});
  device->ops().Linear({.weight = weight,
                        .x = x,
                        .y = TensorView(wide.data(), DType::kF32, {n, n_out},
                                        wide.row_bytes_stride())});
  const auto got = device->Get(wide);
  const auto dense = Run(*device, weight, x, DType::kF32);
  for (int64_t i = 0; i < n * (n_out + 8); ++i) {
    const int64_t c = i % (n_out + 8);
    const float want =
        c < n_out ? dense[static_cast<size_t>(i / (n_out + 8) * n_out + c)]
                  : 0.0f;
    ASSERT_EQ(got[static_cast<size_t>(i)], want) << i;
  }
}

// Exact numerics: neither weights nor inputs are rounded again.
TEST_P(LinearTest, ExactIsThePlainProduct) {
  const auto device = Make(Exact());
  const auto* weight = device->Bind(GoldenLinear("fp4_gemm"));
  const ConstTensorView codes = Golden("fp4_gemm.w");
  const ConstTensorView scale = Golden("fp4_gemm.w_scale");
  const std::vector<float> x = GoldenFloats("fp4_gemm.x");
  const int64_t n_in = weight->n_in();
  const int64_t n_tokens = static_cast<int64_t>(x.size()) / n_in;
  std::vector<float> expected;
  double bound = 0.0;
  for (int64_t i = 0; i < n_tokens * weight->n_out(); ++i) {
    const int64_t n = i % weight->n_out();
    double sum = 0.0, magnitude = 0.0;
    for (int64_t k = 0; k < n_in; ++k) {
      const uint8_t byte = codes.row<uint8_t>(n)[k / 2];
      const auto code =
          static_cast<uint8_t>(k % 2 == 0 ? byte & 15 : byte >> 4);
      const double term =
          static_cast<double>(F32FromE2m1(code)) *
          F32FromE8m0(scale.row<uint8_t>(n)[k / 32]) *
          x[static_cast<size_t>(i / weight->n_out() * n_in + k)];
      sum += term;
      magnitude += std::abs(term);
    }
    expected.push_back(static_cast<float>(sum));
    bound = std::max(bound, magnitude);
  }
  // Sums of K float32 terms: at most K eps of the sum of magnitudes, and about
  // sqrt(K) eps of it in practice; the suite allows 4 sqrt(K) eps.
  const double allowed =
      4 * std::sqrt(static_cast<double>(n_in)) * 0x1p-24 * bound;
  EXPECT_TRUE(
      NearF32(Run(*device, weight,
                  device->Put(DType::kF32, {n_tokens, n_in}, x), DType::kF32),
              expected, 0x1p-23, allowed));
}

TEST_P(LinearTest, RmsNorm) {
  const auto device = Make(Official());
  const TensorView x = device->Put(Golden("rmsnorm.x"));
  const TensorView y = device->Zeros(DType::kBF16, x.shape());
  const ConstTensorView weight =
      device->Bind(Weight("layers.0.attn_norm.weight"));
  device->ops().RmsNorm({.x = x, .weight = weight, .y = y});
  EXPECT_TRUE(NearBf16(device->Get(y), GoldenFloats("rmsnorm.y")));
  device->ops().RmsNorm({.x = x, .weight = weight, .y = x});  // in place
  EXPECT_TRUE(SameBits(device->Get(x), device->Get(y)));
}

// eps takes part: on tiny rows it decides the result.
TEST_P(LinearTest, RmsNormEpsilon) {
  const auto device = Make(Exact());
  const TensorView x = device->Put(DType::kF32, {1, 3}, {1e-3f, -2e-3f, 3e-3f});
  const TensorView y = device->Zeros(DType::kF32, {1, 3});
  const std::vector<uint16_t> ones = {Bf16FromF32(1), Bf16FromF32(2),
                                      Bf16FromF32(-1)};
  device->ops().RmsNorm(
      {.x = x,
       .weight = device->Bind(ConstTensorView(ones.data(), DType::kBF16, {3})),
       .y = y,
       .eps = 1e-6f});
  const double r = 1.0 / std::sqrt(14e-6 / 3 + 1e-6);
  EXPECT_TRUE(
      NearF32(device->Get(y),
              {static_cast<float>(1e-3 * r), static_cast<float>(-4e-3 * r),
               static_cast<float>(-3e-3 * r)},
              1e-6));
}

// The head: f32 product of the widened weight, no quantised input.
TEST_P(LinearTest, Logits) {
  const auto device = Make(Official());
  const auto* head = device->Bind(WeightLinear("head"));
  const ConstTensorView x = Golden("module.x");
  const TensorView logits =
      device->Zeros(DType::kF32, {x.dim(0), head->n_out()});
  device->ops().Logits({.weight = head, .x = device->Put(x), .logits = logits});
  const ConstTensorView weight = Weight("head.weight");
  const auto got = device->Get(logits);
  for (const int64_t t : {int64_t{0}, int64_t{77}, x.dim(0) - 1}) {
    for (const int64_t v : {int64_t{0}, int64_t{513}, head->n_out() - 1}) {
      double sum = 0.0, magnitude = 0.0;
      for (int64_t k = 0; k < x.dim(1); ++k) {
        const double term =
            static_cast<double>(F32FromBf16(x.row<uint16_t>(t)[k])) *
            F32FromBf16(weight.row<uint16_t>(v)[k]);
        sum += term;
        magnitude += std::abs(term);
      }
      EXPECT_NEAR(got[static_cast<size_t>(t * head->n_out() + v)], sum,
                  64 * 0x1p-24 * magnitude)
          << t << " " << v;
    }
  }
}

class BindTest : public BackendTest {
 protected:
  std::string Refusal(const ops::LinearSource& source) {
    const auto device = Make(Official());
    const auto bound = device->ops().BindLinear(source);
    return bound.ok() ? "" : ErrorIdOf(bound.status());
  }
};

TEST_P(BindTest, RefusesWhatDoesNotFit) {
  const ops::LinearSource good = GoldenLinear("fp8_gemm");
  EXPECT_EQ(Refusal(good), "");
  ops::LinearSource bad = good;
  bad.scale = ConstTensorView(good.scale.data(), DType::kF8E8M0, {2, 4});
  EXPECT_EQ(Refusal(bad), "CKPT-006");
  bad = good;
  bad.scale = {};
  EXPECT_NE(Refusal(bad), "");
  bad = good;
  bad.scale = ConstTensorView(good.scale.data(), DType::kBF16, {3, 2});
  EXPECT_EQ(Refusal(bad), "CKPT-005");
  bad = good;
  bad.weight = ConstTensorView(good.weight.data(), DType::kI32, {96, 512});
  EXPECT_EQ(Refusal(bad), "CKPT-005");
  bad = good;
  bad.weight = ConstTensorView(good.weight.data(), DType::kF8E4M3, {384 * 512});
  EXPECT_EQ(Refusal(bad), "CKPT-006");
  bad = good;  // 448 is no multiple of the activation block
  bad.weight = ConstTensorView(good.weight.data(), DType::kF8E4M3, {384, 448});
  EXPECT_EQ(Refusal(bad), "BACK-002");
  bad.quantise_input = false;
  EXPECT_EQ(Refusal(bad), "");
  ops::LinearSource fp4 = GoldenLinear("fp4_gemm");
  fp4.scale = ConstTensorView(fp4.scale.data(), DType::kF32, {256, 4});
  EXPECT_EQ(Refusal(fp4), "CKPT-005");
}

TEST_P(BindTest, RefusesExpertsThatDoNotFitEachOther) {
  const auto device = Make(Official());
  ops::ExpertSource expert = WeightExpert("layers.1.ffn.experts.0");
  EXPECT_TRUE(device->ops().BindExperts({&expert, 1}, 0).ok());
  std::swap(expert.w1, expert.w2);
  const auto bound = device->ops().BindExperts({&expert, 1}, 7);
  ASSERT_FALSE(bound.ok());
  EXPECT_EQ(ErrorIdOf(bound.status()), "CKPT-006");
  EXPECT_NE(ErrorFactsOf(bound.status()).where.find("7"), std::string::npos);
}

TEST_P(BindTest, PlanRefusesWhatCannotRun) {
  const auto device = Make(Official());
  const auto plan = [&](const ops::OpLimits& limits) {
    std::vector<std::byte> workspace(device->ops().WorkspaceBytes(limits));
    return ErrorIdOf(device->ops().Plan(limits, workspace));
  };
  EXPECT_EQ(plan(SuiteLimits()), "");
  ops::OpLimits limits = SuiteLimits();
  limits.index_dim = 96;  // no Hadamard transform of this length
  EXPECT_EQ(plan(limits), "BACK-002");
  limits = SuiteLimits();
  limits.n_tokens = 0;
  EXPECT_EQ(plan(limits), "BACK-002");
}

TEST_P(BindTest, ExplainNamesEveryOperator) {
  const auto device = Make(Official());
  int applying = 0;
  for (const auto& implementation : device->ops().Explain()) {
    EXPECT_FALSE(implementation.op.empty());
    EXPECT_FALSE(implementation.name.empty());
    applying += implementation.applies.ok();
  }
  EXPECT_GE(applying, 21);
}

BELAY_CONFORMANCE_SUITE(LinearTest);
BELAY_CONFORMANCE_SUITE(BindTest);

}  // namespace
}  // namespace belay::conformance
