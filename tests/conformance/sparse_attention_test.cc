// SPDX-License-Identifier: Apache-2.0
// SparseAttention alone: golden vectors, masks, sinks, the window; and the
// indexer's Hadamard transform.
#include <gtest/gtest.h>

#include <cmath>
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

class SparseAttentionTest : public BackendTest {
 protected:
  // One span of slot 0 whose pages hold `kv` as compressed rows (ratio 4, last
  // page first), and no window.
  struct Case {
    Case(Device& device, DType dtype, const ConstTensorView& kv,
         int32_t n_tokens, int32_t start_pos);

    ops::Span span;
    ops::SparseAttentionParams p;
  };

  static std::vector<float> Golden(Device& device, const std::string& name,
                                   DType dtype);
};

SparseAttentionTest::Case::Case(Device& device, DType dtype,
                                const ConstTensorView& kv, int32_t n_tokens,
                                int32_t start_pos) {
  const int64_t rows_per_page = ops::kPageTokens / 4;
  const int64_t n_pages = (kv.dim(0) + rows_per_page - 1) / rows_per_page;
  const int64_t dim = kv.dim(1);
  std::vector<float> rows(static_cast<size_t>(n_pages * rows_per_page * dim));
  std::vector<int32_t> table;
  for (int64_t page = 0; page < n_pages; ++page) {
    table.push_back(static_cast<int32_t>(n_pages - 1 - page));
  }
  for (int64_t j = 0; j < kv.dim(0); ++j) {
    const int64_t page = n_pages - 1 - j / rows_per_page;
    const int64_t row = page * rows_per_page + j % rows_per_page;
    for (int64_t d = 0; d < dim; ++d) {
      rows[static_cast<size_t>(row * dim + d)] =
          F32FromBf16(kv.row<uint16_t>(j)[d]);
    }
  }
  span = {0, 0, n_tokens, start_pos, 0};
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < n_tokens; ++i) positions.push_back(start_pos + i);
  p.batch.spans = {&span, 1};
  p.batch.n_tokens = n_tokens;
  p.batch.positions = device.PutInts({n_tokens}, positions);
  p.batch.slots = device.Zeros(DType::kI32, {n_tokens});
  p.batch.page_table = device.PutInts({1, n_pages}, table);
  const ops::RowKind kind =
      dtype == DType::kBF16 ? ops::RowKind::kBf16 : ops::RowKind::kF32;
  const ops::RowFormat format = {kind, static_cast<int>(dim), 0, 0};
  const auto n_bytes = static_cast<int64_t>(format.bytes());
  const TensorView values =
      device.Put(dtype, {n_pages * rows_per_page, dim}, rows);
  p.compressed.rows =
      TensorView(values.data(), DType::kU8, {n_pages, rows_per_page, n_bytes});
  p.compressed.format = format;
  p.compressed.ratio = 4;
  p.window.format = format;
  p.window.rows = device.Zeros(DType::kU8, {1, 8, n_bytes});
  p.window_size = 0;
  p.fresh = device.Zeros(DType::kU8, {n_tokens, n_bytes});
}

std::vector<float> SparseAttentionTest::Golden(Device& device,
                                               const std::string& name,
                                               DType dtype) {
  const ConstTensorView topk = conformance::Golden(name + ".topk_idxs");
  const ConstTensorView q = conformance::Golden(name + ".q");
  Case c(device, dtype, conformance::Golden(name + ".kv"),
         static_cast<int32_t>(q.dim(0)), 1000);
  c.p.q = device.Put(dtype, q.shape(), GoldenFloats(name + ".q"));
  c.p.sink = device.Put(conformance::Golden(name + ".sink"));
  c.p.selection = device.Put(topk);
  c.p.o = device.Zeros(dtype, q.shape());
  device.ops().SparseAttention(c.p);
  return device.Get(c.p.o);
}

TEST_P(SparseAttentionTest, Golden) {
  const auto official = Make(Official());
  for (const std::string name : {"sparse_attn", "sparse_attn_512"}) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(NearBf16(Golden(*official, name, DType::kBF16),
                         GoldenFloats(name + ".o")));
  }
}

// Without any rounding the result is the plain softmax with a sink.
TEST_P(SparseAttentionTest, ExactIsTheSoftmax) {
  const auto exact = Make(Exact());
  for (const std::string name : {"sparse_attn", "sparse_attn_512"}) {
    SCOPED_TRACE(name);
    const ConstTensorView topk = conformance::Golden(name + ".topk_idxs");
    const ConstTensorView kv = conformance::Golden(name + ".kv");
    const auto sink = conformance::Golden(name + ".sink").as<float>();
    const std::vector<float> q = GoldenFloats(name + ".q");
    const size_t dim = static_cast<size_t>(kv.dim(1));
    std::vector<float> expected;
    for (size_t i = 0; i < q.size(); i += dim) {
      const size_t head = i / dim % sink.size();
      const auto t = static_cast<int64_t>(i / dim / sink.size());
      double total = std::exp(static_cast<double>(sink[head]));
      std::vector<double> o(dim);
      for (int64_t k = 0; k < topk.dim(1); ++k) {
        const int32_t j = topk.row<int32_t>(t)[k];
        if (j < 0) continue;
        double s = 0.0;
        for (size_t d = 0; d < dim; ++d) {
          s += static_cast<double>(q[i + d]) *
               F32FromBf16(kv.row<uint16_t>(j)[d]);
        }
        const double e = std::exp(s / std::sqrt(static_cast<double>(dim)));
        total += e;
        for (size_t d = 0; d < dim; ++d) {
          o[d] += e * F32FromBf16(kv.row<uint16_t>(j)[d]);
        }
      }
      for (const double v : o)
        expected.push_back(static_cast<float>(v / total));
    }
    const std::vector<float> got = Golden(*exact, name, DType::kF32);
    EXPECT_TRUE(NearF32(got, expected, 1e-5, 1e-5));
    // The stored ideal is the official result before its last rounding; the
    // bf16 weights of the values are all that lies between.
    EXPECT_TRUE(
        NearF32(got, GoldenFloats(name + ".o_ideal_f32"), 0x1p-8, 0x1p-8));
  }
}

// All candidates masked: the sink takes everything.
TEST_P(SparseAttentionTest, NothingButTheSink) {
  const auto device = Make(Official());
  const ConstTensorView kv = conformance::Golden("sparse_attn.kv");
  Case c(*device, DType::kBF16, kv, 1, 1000);
  c.p.q = device->Put(DType::kBF16, {1, 8, 128}, std::vector<float>(1024, 1));
  c.p.sink = device->Put(conformance::Golden("sparse_attn.sink"));
  c.p.selection = device->PutInts({1, 70}, std::vector<int32_t>(70, -1));
  c.p.o = device->Put(DType::kBF16, {1, 8, 128}, std::vector<float>(1024, 9));
  device->ops().SparseAttention(c.p);
  EXPECT_EQ(device->Get(c.p.o), std::vector<float>(1024, 0.0f));
}

// A whole tile of masked slots in front counts for nothing, and NaN bytes in
// rows that are not selected are not looked at.
TEST_P(SparseAttentionTest, MaskedTilesInFront) {
  const auto device = Make(Exact());
  const ConstTensorView kv = conformance::Golden("sparse_attn.kv");
  const auto run = [&](const std::vector<int32_t>& selection) {
    Case c(*device, DType::kF32, kv, 1, 1000);
    const std::vector<float> q = GoldenFloats("sparse_attn.q");
    c.p.q =
        device->Put(DType::kF32, {1, 8, 128}, {q.begin(), q.begin() + 1024});
    c.p.sink = device->Put(conformance::Golden("sparse_attn.sink"));
    c.p.selection =
        device->PutInts({1, static_cast<int64_t>(selection.size())}, selection);
    c.p.o = device->Zeros(DType::kF32, {1, 8, 128});
    device->ops().SparseAttention(c.p);
    return device->Get(c.p.o);
  };
  std::vector<int32_t> padded(64, -1);
  padded.insert(padded.end(), {17, 3, 200});
  EXPECT_TRUE(NearF32(run(padded), run({17, 3, 200}), 1e-6, 1e-7));
}

// Without `selection`: rows 0 .. (pos + 1) / ratio - 1, for each token its own.
TEST_P(SparseAttentionTest, AllVisibleRows) {
  const auto device = Make(Official());
  const ConstTensorView kv = conformance::Golden("sparse_attn.kv");
  const auto run = [&](bool listed) {
    Case c(*device, DType::kBF16, kv, 4, 398);
    c.p.q = device->Put(conformance::Golden("sparse_attn.q"));
    c.p.sink = device->Put(conformance::Golden("sparse_attn.sink"));
    std::vector<int32_t> rows;
    for (int32_t t = 0; t < 4; ++t) {
      for (int32_t j = 0; j < 100; ++j) {
        rows.push_back(j < (398 + t + 1) / 4 ? j : -1);
      }
    }
    if (listed) c.p.selection = device->PutInts({4, 100}, rows);
    c.p.o = device->Zeros(DType::kBF16, {4, 8, 128});
    device->ops().SparseAttention(c.p);
    return device->Get(c.p.o);
  };
  EXPECT_TRUE(SameBits(run(false), run(true)));
}

// The indexer shows its transformed query when the keys are unit vectors: row
// 2d is e_d, row 2d + 1 is -e_d, and relu(q_d) - relu(-q_d) = q_d. Two heads,
// the second one zero, make the scale of w (128 * 2)^-0.5 = 2^-4 exactly.
class HadamardTest : public BackendTest {
 protected:
  static constexpr int kDim = 128;

  static std::vector<float> Transformed(Device& device,
                                        const std::vector<float>& x);
};

std::vector<float> HadamardTest::Transformed(Device& device,
                                             const std::vector<float>& x) {
  const DType dtype = device.ops().numerics().act_dtype();
  const bool official = device.ops().numerics().official();
  ops::IndexerSelectParams p;
  const ops::Span span = {0, 0, 1, 2 * kDim - 1, 0};
  p.batch.spans = {&span, 1};
  p.batch.n_tokens = 1;
  p.batch.positions = device.PutInts({1}, {span.start_pos});
  p.batch.slots = device.PutInts({1}, {0});
  p.batch.page_table = device.PutInts({1, 2}, {1, 0});
  p.keys.ratio = 1;
  p.keys.format = {official ? device.ops().IndexRows() : ops::RowKind::kF32,
                   kDim, 0, 32};
  const auto n_bytes = p.keys.format.bytes();
  std::vector<uint8_t> rows(2 * kDim * n_bytes);
  for (size_t j = 0; j < 2 * kDim; ++j) {
    // Page 1 comes first.
    uint8_t* row = &rows[(j < 128 ? j + 128 : j - 128) * n_bytes];
    const size_t d = j / 2;
    const float one = j % 2 == 0 ? 1.0f : -1.0f;
    if (p.keys.format.kind == ops::RowKind::kBf16) {
      const uint16_t bits = Bf16FromF32(one);
      std::memcpy(row + 2 * d, &bits, 2);
    } else if (official) {
      const uint8_t code = E2m1FromF32(one);
      row[d / 2] = d % 2 == 0 ? code : static_cast<uint8_t>(code << 4);
      std::fill_n(row + kDim / 2, kDim / 32, uint8_t{127});  // scale 1
    } else {
      std::memcpy(row + 4 * d, &one, 4);
    }
  }
  p.keys.rows = device.Put(ConstTensorView(
      rows.data(), DType::kU8, {2, kDim, static_cast<int64_t>(n_bytes)}));
  std::vector<float> wq_b(2 * kDim);
  std::copy(x.begin(), x.end(), wq_b.begin());
  p.x = device.Put(dtype, {1, 1}, {1.0f});
  p.qr = device.Put(dtype, {1, 1}, {1.0f});
  p.wq_b = device.BindBf16(2 * kDim, 1, wq_b);
  p.weights_proj = device.BindBf16(2, 1, {16.0f, 16.0f});
  p.n_index_heads = 2;
  p.index_dim = kDim;
  p.rope.freq = device.Zeros(DType::kF32, {32});
  p.selection = device.Zeros(DType::kI32, {1, 4});
  p.scores = device.Zeros(DType::kF32, {1, 2 * kDim});
  device.ops().IndexerSelect(p);
  const std::vector<float> scores = device.Get(p.scores);
  std::vector<float> q;
  for (size_t d = 0; d < kDim; ++d) {
    q.push_back(scores[2 * d] - scores[2 * d + 1]);
  }
  return q;
}

TEST_P(HadamardTest, Golden) {
  const auto exact = Make(Exact());
  const auto official = Make(Official());
  const std::vector<float> x = GoldenFloats("hadamard.x");
  const std::vector<float> y = GoldenFloats("hadamard.y");
  std::vector<float> plain, fp4, expected_fp4;
  for (size_t i = 0; i < x.size(); i += kDim) {
    const std::vector<float> row(x.begin() + static_cast<int64_t>(i),
                                 x.begin() + static_cast<int64_t>(i) + kDim);
    for (const float v : Transformed(*exact, row)) {
      plain.push_back(RoundToBf16(v));
    }
    for (const float v : Transformed(*official, row)) fp4.push_back(v);
    std::vector<float> golden(y.begin() + static_cast<int64_t>(i),
                              y.begin() + static_cast<int64_t>(i) + kDim);
    Fp4InPlaceRule(golden, 32);
    expected_fp4.insert(expected_fp4.end(), golden.begin(), golden.end());
  }
  EXPECT_TRUE(NearBf16(plain, y));
  EXPECT_TRUE(NearQuantised(fp4, expected_fp4, 1.0));
}

BELAY_CONFORMANCE_SUITE(SparseAttentionTest);
BELAY_CONFORMANCE_SUITE(HadamardTest);

}  // namespace
}  // namespace belay::conformance
