// SPDX-License-Identifier: Apache-2.0
// Embedding, hyper-connections, gather, broadcast.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/float_formats.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/device.h"
#include "tests/conformance/goldens.h"

namespace belay::conformance {
namespace {

constexpr int kHc = 4;
constexpr int kMixes = (2 + kHc) * kHc;

class HyperTest : public BackendTest {
 protected:
  struct Split {
    std::vector<float> pre, post, comb;
  };

  // Runs HcPre so that it sees exactly these mixes and shows its pre: stream j
  // of h is 8 at dim j and 0 elsewhere, so that mean(h^2) = 1 and x = 8 pre;
  // fn takes the mixes from h[0][0].
  static Split RunSinkhorn(Device& device, const float* mixes,
                           const ConstTensorView& base,
                           const ConstTensorView& scale) {
    constexpr int kDim = 64;
    std::vector<float> h(kHc * kDim), fn(kMixes * kHc * kDim);
    for (int j = 0; j < kHc; ++j) h[static_cast<size_t>(j * kDim + j)] = 8.0f;
    for (int i = 0; i < kMixes; ++i) {
      fn[static_cast<size_t>(i * kHc * kDim)] = mixes[i] / 8.0f;
    }
    const TensorView x = device.Zeros(DType::kF32, {1, kDim});
    const TensorView post = device.Zeros(DType::kF32, {1, kHc});
    const TensorView comb = device.Zeros(DType::kF32, {1, kHc, kHc});
    device.ops().HcPre(
        {.h = device.Put(DType::kF32, {1, kHc, kDim}, h),
         .weights = {.fn = device.Put(DType::kF32, {kMixes, kHc * kDim}, fn),
                     .base = base,
                     .scale = scale},
         .norm_eps = 0.0f,
         .x = x,
         .post = post,
         .comb = comb});
    Split split = {device.Get(x), device.Get(post), device.Get(comb)};
    split.pre.resize(kHc);
    for (float& v : split.pre) v /= 8.0f;
    return split;
  }

  static ops::HcWeights Weights(Device& device, const std::string& name) {
    return {.fn = device.Bind(Weight(name + "_fn")),
            .base = device.Bind(Weight(name + "_base")),
            .scale = device.Bind(Weight(name + "_scale"))};
  }
};

void Append(std::vector<float>& to, const std::vector<float>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

TEST_P(HyperTest, Sinkhorn) {
  const auto device = Make(Exact());
  const std::vector<float> mixes = GoldenFloats("hc_sinkhorn.mixes");
  const TensorView base = device->Put(Golden("hc_sinkhorn.base"));
  const TensorView scale = device->Put(Golden("hc_sinkhorn.scale"));
  std::vector<float> pre, post, comb;
  for (size_t i = 0; i < mixes.size(); i += kMixes) {
    const Split split = RunSinkhorn(*device, &mixes[i], base, scale);
    Append(pre, split.pre);
    Append(post, split.post);
    Append(comb, split.comb);
  }
  EXPECT_TRUE(NearF32(pre, GoldenFloats("hc_sinkhorn.pre"), 1e-5));
  EXPECT_TRUE(NearF32(post, GoldenFloats("hc_sinkhorn.post"), 1e-5));
  EXPECT_TRUE(NearF32(comb, GoldenFloats("hc_sinkhorn.comb"), 1e-5));
}

TEST_P(HyperTest, HcPre) {
  const auto device = Make(Official());
  const TensorView h = device->Put(Golden("hc_pre.h"));
  const int64_t n = h.dim(0);
  const TensorView x = device->Zeros(DType::kBF16, {n, h.dim(2)});
  const TensorView post = device->Zeros(DType::kF32, {n, kHc});
  const TensorView comb = device->Zeros(DType::kF32, {n, kHc, kHc});
  device->ops().HcPre({.h = h,
                       .weights = Weights(*device, "layers.1.hc_attn"),
                       .x = x,
                       .post = post,
                       .comb = comb});
  EXPECT_TRUE(NearBf16(device->Get(x), GoldenFloats("hc_pre.x")));
  EXPECT_TRUE(NearF32(device->Get(post), GoldenFloats("hc_pre.post"), 1e-5));
  EXPECT_TRUE(NearF32(device->Get(comb), GoldenFloats("hc_pre.comb"), 1e-5));

  // The golden mixes lead to the same: the step in between is right too.
  const auto exact = Make(Exact());
  const std::vector<float> mixes = GoldenFloats("hc_pre.mixes");
  const ops::HcWeights w = Weights(*exact, "layers.1.hc_attn");
  std::vector<float> comb_of_mixes;
  for (size_t i = 0; i < mixes.size(); i += kMixes) {
    Append(comb_of_mixes, RunSinkhorn(*exact, &mixes[i], w.base, w.scale).comb);
  }
  EXPECT_TRUE(NearF32(comb_of_mixes, GoldenFloats("hc_pre.comb"), 1e-5));
}

TEST_P(HyperTest, HcPostAndInPlace) {
  const auto device = Make(Official());
  const TensorView h = device->Put(Golden("hc_pre.h"));
  const TensorView out = device->Zeros(DType::kBF16, h.shape());
  ops::HcPostParams p = {.h = h,
                         .y = device->Put(Golden("hc_post.sub_out")),
                         .post = device->Put(Golden("hc_pre.post")),
                         .comb = device->Put(Golden("hc_pre.comb")),
                         .h_out = out};
  device->ops().HcPost(p);
  EXPECT_TRUE(NearBf16(device->Get(out), GoldenFloats("hc_post.h_out")));
  p.h_out = h;
  device->ops().HcPost(p);
  EXPECT_TRUE(SameBits(device->Get(h), device->Get(out)));
}

// The column of comb is the output stream: a matrix that is no permutation of
// its transpose, and exact numbers.
TEST_P(HyperTest, HcPostUsesColumns) {
  const auto device = Make(Exact());
  std::vector<float> h(kHc * 3), comb(kHc * kHc);
  for (size_t i = 0; i < h.size(); ++i) h[i] = static_cast<float>(i + 1);
  comb[0 * kHc + 2] = 1.0f;  // stream 0 goes to stream 2
  comb[3 * kHc + 0] = 0.5f;  // half of stream 3 goes to stream 0
  const TensorView out = device->Zeros(DType::kF32, {1, kHc, 3});
  device->ops().HcPost(
      {.h = device->Put(DType::kF32, {1, kHc, 3}, h),
       .y = device->Put(DType::kF32, {1, 3}, {1, 2, 4}),
       .post = device->Put(DType::kF32, {1, kHc}, {0, 1, 0, 2}),
       .comb = device->Put(DType::kF32, {1, kHc, kHc}, comb),
       .h_out = out});
  EXPECT_EQ(device->Get(out),
            (std::vector<float>{5, 5.5f, 6, 1, 2, 4, 1, 2, 3, 2, 4, 8}));
}

TEST_P(HyperTest, HcHead) {
  const auto device = Make(Official());
  const TensorView h = device->Put(Golden("hc_pre.h"));
  const TensorView x = device->Zeros(DType::kBF16, {h.dim(0), h.dim(2)});
  device->ops().HcHead(
      {.h = h, .weights = Weights(*device, "hc_head"), .x = x});
  EXPECT_TRUE(NearBf16(device->Get(x), GoldenFloats("hc_head.y")));
}

TEST_P(HyperTest, EmbedKnowsItsRows) {
  const auto device = Make(Official());
  const ConstTensorView table = Weight("embed.weight");
  const int64_t dim = table.dim(1);
  const TensorView h = device->Zeros(DType::kBF16, {5, kHc, dim});
  device->ops().Embed(
      {.token_ids = device->PutInts({5}, {100, 99, 355, 356, 0}),
       .table = device->Bind(table.rows(100, 256)),
       .first_id = 100,
       .h = h});
  const std::vector<float> got = device->Get(h);
  const int32_t rows[] = {100, -1, 355, -1, -1};  // -1: another rank's
  for (int64_t i = 0; i < 5 * kHc * dim; ++i) {
    const int32_t row = rows[i / (kHc * dim)];
    const float want =
        row < 0 ? 0.0f : F32FromBf16(table.row<uint16_t>(row)[i % dim]);
    ASSERT_EQ(got[static_cast<size_t>(i)], want) << i;
  }
}

TEST_P(HyperTest, GatherRows) {
  const auto device = Make(Official());
  const TensorView src = device->Put(Golden("hc_pre.h"));
  const TensorView dst =
      device->Zeros(DType::kBF16, {3, src.dim(1), src.dim(2)});
  device->ops().GatherRows(
      {.src = src, .rows = device->PutInts({3}, {5, 0, 5}), .dst = dst});
  const auto got = device->GetBytes(dst);
  const auto all = device->GetBytes(src);
  const size_t n = src.row_bytes();
  const size_t rows[] = {5, 0, 5};
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i], all[rows[i / n] * n + i % n]) << i;
  }
}

TEST_P(HyperTest, AddBroadcastInPlace) {
  const auto device = Make(Official());
  const TensorView h = device->Put(Golden("hc_pre.h"));
  const TensorView e = device->Put(Golden("hc_post.sub_out"));
  const std::vector<float> before = device->Get(h);
  const std::vector<float> added = device->Get(e);
  device->ops().AddBroadcast({.e = e, .hp = h, .h_out = h});
  std::vector<float> expected;
  const size_t dim = static_cast<size_t>(h.dim(2));
  for (size_t i = 0; i < before.size(); ++i) {
    const size_t token = i / (kHc * dim);
    expected.push_back(RoundToBf16(before[i] + added[token * dim + i % dim]));
  }
  EXPECT_TRUE(SameBits(device->Get(h), expected));
}

BELAY_CONFORMANCE_SUITE(HyperTest);

}  // namespace
}  // namespace belay::conformance
