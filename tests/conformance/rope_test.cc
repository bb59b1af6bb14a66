// SPDX-License-Identifier: Apache-2.0
// Rope, the query's head norm, and window rows made of the smaller operators.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/float_formats.h"
#include "spec/config.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/device.h"
#include "tests/conformance/goldens.h"
#include "tests/conformance/quant_rules.h"
#include "tests/conformance/row_rules.h"

namespace belay::conformance {
namespace {

class RopeTest : public BackendTest {
 protected:
  static std::vector<int32_t> GoldenPositions() {
    const auto pos = Golden("rope.pos").as<int64_t>();
    return {pos.begin(), pos.end()};
  }
};

// The last bit of a power depends on the library that took it.
TEST(RopeFrequencies, AreTheGoldenOnes) {
  const spec::ModelConfig config;
  EXPECT_TRUE(NearF32(spec::RopeFrequencies(config, false),
                      GoldenFloats("rope.main.freq"), 0x1p-22));
  EXPECT_TRUE(NearF32(spec::RopeFrequencies(config, true),
                      GoldenFloats("rope.compress.freq"), 0x1p-22));
}

TEST_P(RopeTest, ForwardAndInverse) {
  const auto device = Make(Official());
  const std::vector<int32_t> positions = GoldenPositions();
  const auto n = static_cast<int64_t>(positions.size());
  for (const std::string table : {"rope.main", "rope.compress"}) {
    for (const bool inverse : {false, true}) {
      SCOPED_TRACE(table);
      const TensorView x = device->Put(Golden("rope.x"));
      device->ops().RopeTail(
          {.positions = device->PutInts({n}, positions),
           .rope = {.freq = device->Put(Golden(table + ".freq"))},
           .inverse = inverse,
           .x = x});
      const std::vector<float> golden =
          GoldenFloats(table + (inverse ? ".inv" : ".fwd"));
      EXPECT_TRUE(NearBf16(device->Get(x), golden));
      // The head of a row is not touched.
      EXPECT_EQ(device->Get(x)[0], GoldenFloats("rope.x")[0]);
    }
  }
}

// Pairs (1, 0) turn into (cos, sin): seen in float32. The angle at a million is
// a float32 product, so that its error there is not ours but the rule's.
TEST_P(RopeTest, CosAndSin) {
  const auto device = Make(Exact());
  const std::vector<int32_t> positions = GoldenPositions();
  const auto n = static_cast<int64_t>(positions.size());
  for (const std::string table : {"rope.main", "rope.compress"}) {
    SCOPED_TRACE(table);
    std::vector<float> x;
    for (int64_t i = 0; i < n * 32; ++i) x.insert(x.end(), {1.0f, 0.0f});
    const TensorView view = device->Put(DType::kF32, {n, 1, 64}, x);
    device->ops().RopeTail(
        {.positions = device->PutInts({n}, positions),
         .rope = {.freq = device->Put(Golden(table + ".freq"))},
         .x = view});
    std::vector<float> cos, sin;
    const std::vector<float> got = device->Get(view);
    for (size_t i = 0; i < got.size(); i += 2) {
      cos.push_back(got[i]);
      sin.push_back(got[i + 1]);
    }
    // Two steps of float32 at 1.
    EXPECT_TRUE(NearF32(cos, GoldenFloats(table + ".cos"), 0.0, 0x1p-22));
    EXPECT_TRUE(NearF32(sin, GoldenFloats(table + ".sin"), 0.0, 0x1p-22));
  }
}

// QueryProject whose wq_b holds the wanted q in its first column and whose qr
// is 1 everywhere (wq_a x = 1, q_norm = 1): the head norm alone.
std::vector<float> RunHeadNorm(Device& device, const std::vector<float>& q,
                               bool head_norm) {
  constexpr int64_t kLora = 8, kHeads = 8, kHeadDim = 128;
  std::vector<float> wq_b(q.size() * kLora);
  for (size_t i = 0; i < q.size(); ++i) wq_b[i * kLora] = q[i];
  const TensorView out =
      device.Zeros(device.ops().numerics().act_dtype(), {1, kHeads, kHeadDim});
  const DType dtype = out.dtype();
  device.ops().QueryProject(
      {.x = device.Put(dtype, {1, 1}, {1.0f}),
       .wq_a = device.BindBf16(kLora, 1, std::vector<float>(kLora, 1.0f)),
       .q_norm =
           device.Put(DType::kBF16, {kLora}, std::vector<float>(kLora, 1.0f)),
       .wq_b = device.BindBf16(kHeads * kHeadDim, kLora, wq_b),
       .head_norm = head_norm,
       .rope = {.freq = device.Zeros(DType::kF32, {32})},
       .positions = device.PutInts({1}, {5}),
       .qr = device.Zeros(dtype, {1, kLora}),
       .q = out});
  return device.Get(out);
}

TEST_P(RopeTest, QueryHeadNorm) {
  const auto device = Make(Official());
  const std::vector<float> q = GoldenFloats("q_head_norm.q");
  std::vector<float> y;
  for (size_t t = 0; t < q.size(); t += 1024) {
    const std::vector<float> row(q.begin() + static_cast<int64_t>(t),
                                 q.begin() + static_cast<int64_t>(t) + 1024);
    EXPECT_TRUE(SameValues(RunHeadNorm(*device, row, false), row));
    const auto normed = RunHeadNorm(*device, row, true);
    y.insert(y.end(), normed.begin(), normed.end());
  }
  // The steps are bf16, so that another order of summation hardly shows: a sum
  // at a tie may move a whole head by one step.
  EXPECT_TRUE(NearBf16(y, GoldenFloats("q_head_norm.y")));
}

// A KvProject row is Linear, RmsNorm, RopeTail of the same back end, then the
// suite's own quantisation; in every format.
class KvProjectTest : public BackendTest {
 protected:
  static constexpr int kHeadDim = 128;
  static constexpr int kRope = 64;

  void Rows(Device& device) {
    n_ = Golden("module.x").dim(0);
    x_ = device.Put(Golden("module.x"));
    wkv_ = device.Bind(WeightLinear("layers.1.attn.wkv"));
    norm_ = device.Bind(Weight("layers.1.attn.kv_norm.weight"));
    rope_.freq = device.Put(Golden("rope.compress.freq"));
    std::vector<int32_t> positions;
    for (int64_t i = 0; i < n_; ++i) {
      positions.push_back(static_cast<int32_t>(7 * i));
    }
    positions_ = device.PutInts({n_}, positions);
  }

  std::vector<float> FromSteps(Device& device) {
    const TensorView row = device.Zeros(DType::kBF16, {n_, kHeadDim});
    device.ops().Linear({.weight = wkv_, .x = x_, .y = row});
    device.ops().RmsNorm({.x = row, .weight = norm_, .y = row});
    device.ops().RopeTail({.positions = positions_,
                           .rope = rope_,
                           .x = row.reshaped({n_, 1, kHeadDim})});
    std::vector<float> values = device.Get(row);
    for (size_t i = 0; i < values.size(); i += kHeadDim) {
      Fp8InPlaceRule(std::span(values).subspan(i, kHeadDim - kRope), 64);
    }
    return values;
  }

  std::vector<float> FromOperator(Device& device, ops::RowKind kind) {
    const ops::RowFormat format = {kind, kHeadDim, kRope, 64};
    const TensorView fresh =
        device.Zeros(DType::kU8, {n_, static_cast<int64_t>(format.bytes())});
    device.ops().KvProject({.x = x_,
                            .wkv = wkv_,
                            .kv_norm = norm_,
                            .rope = rope_,
                            .positions = positions_,
                            .format = format,
                            .fresh = fresh});
    const std::vector<uint8_t> bytes = device.GetBytes(fresh);
    std::vector<float> values;
    for (int64_t t = 0; t < n_; ++t) {
      const auto row =
          RowValues(format, &bytes[static_cast<size_t>(t) * format.bytes()]);
      values.insert(values.end(), row.begin(), row.end());
    }
    return values;
  }

 private:
  int64_t n_ = 0;
  TensorView x_, positions_;
  const ops::BoundLinear* wkv_ = nullptr;
  ConstTensorView norm_;
  ops::RopeTable rope_;
};

TEST_P(KvProjectTest, IsItsSteps) {
  const auto device = Make(Official());
  Rows(*device);
  const std::vector<float> expected = FromSteps(*device);
  for (const ops::RowKind kind : {ops::RowKind::kBf16, ops::RowKind::kF32}) {
    EXPECT_TRUE(NearQuantised(FromOperator(*device, kind), expected, 0.125));
  }
  if (!device->takes_packed_rows()) return;
  EXPECT_EQ(FromOperator(*device, ops::RowKind::kFp8Rope),
            FromOperator(*device, ops::RowKind::kBf16));
}

// The ring keeps the last n_ring rows of a span, by position.
TEST_P(KvProjectTest, StoreKeepsTheLastRows) {
  const auto device = Make(Official());
  const ops::RowFormat format = {ops::RowKind::kBf16, 2, 0, 0};
  ops::WindowCache window;
  window.format = format;
  window.rows = device->Zeros(DType::kU8, {2, 5, 4});
  std::vector<float> rows;
  for (int i = 0; i < 10; ++i) {
    rows.insert(rows.end(), {static_cast<float>(i + 1), -1.0f});
  }
  const TensorView bf16 = device->Put(DType::kBF16, {10, 2}, rows);
  const TensorView fresh(bf16.data(), DType::kU8, {10, 4});
  // Slot 1: 8 tokens from position 3 (only 5 fit); slot 0: 2 from position 9.
  const std::vector<ops::Span> spans = {{1, 0, 8, 3, 0}, {0, 8, 2, 9, 0}};
  ops::BatchView batch;
  batch.spans = spans;
  batch.n_tokens = 10;
  batch.positions = device->PutInts({10}, {3, 4, 5, 6, 7, 8, 9, 10, 9, 10});
  batch.slots = device->PutInts({10}, {1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
  device->ops().KvStore({.batch = batch, .fresh = fresh, .window = window});
  const std::vector<uint8_t> bytes = device->GetBytes(window.rows);
  std::vector<float> first;
  for (size_t row = 0; row < 10; ++row) {
    first.push_back(RowValue(format, &bytes[row * 4], 0));
  }
  // Position p is at p % 5: slot 0 has 10 at 0 and 9 at 4; slot 1 has 10, 6,
  // 7, 8, 9, whose tokens are the 8th, 4th, 5th, 6th, 7th.
  EXPECT_EQ(first, (std::vector<float>{10, 0, 0, 0, 9, 8, 4, 5, 6, 7}));
}

BELAY_CONFORMANCE_SUITE(RopeTest);
BELAY_CONFORMANCE_SUITE(KvProjectTest);

}  // namespace
}  // namespace belay::conformance
