// SPDX-License-Identifier: Apache-2.0
// Route, RoutedExperts, SharedExpert.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "base/float_formats.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/device.h"
#include "tests/conformance/goldens.h"

namespace belay::conformance {
namespace {

constexpr int64_t kDim = 256;
constexpr int64_t kExperts = 16;
constexpr int64_t kTopk = 2;

class MoeTest : public BackendTest {
 protected:
  struct Routing {
    TensorView experts, weights, scores;
  };

  static Routing Route(Device& device, const ConstTensorView& x, int layer,
                       ops::RouteBy by, const TensorView& forced = {}) {
    const std::string gate = "layers." + std::to_string(layer) + ".ffn.gate";
    const int64_t n = x.dim(0);
    Routing r;
    r.experts = forced.empty() ? device.Zeros(DType::kI32, {n, kTopk}) : forced;
    r.weights = device.Zeros(DType::kF32, {n, kTopk});
    r.scores = device.Zeros(DType::kF32, {n, kExperts});
    ops::RouteParams p;
    p.x = x;
    p.gate = device.Bind(WeightLinear(gate));
    p.by = by;
    p.route_scale = 1.5f;
    p.experts = r.experts;
    p.weights = r.weights;
    p.logits = device.Zeros(DType::kF32, {n, kExperts});
    p.scores = r.scores;
    if (layer > 0) p.bias = device.Bind(Weight(gate + ".bias"));
    if (by == ops::RouteBy::kTable) {
      p.table = device.Bind(Weight(gate + ".tid2eid"));
      std::vector<int32_t> ids;
      for (const int64_t id : Golden("gate_hash.ids").as<int64_t>()) {
        ids.push_back(static_cast<int32_t>(id));
      }
      ids.resize(static_cast<size_t>(n));
      p.token_ids = device.PutInts({n}, ids);
    }
    device.ops().Route(p);
    return r;
  }

  static std::vector<ops::ExpertSource> Experts(int layer) {
    std::vector<ops::ExpertSource> experts;
    for (int64_t e = 0; e < kExperts; ++e) {
      experts.push_back(WeightExpert("layers." + std::to_string(layer) +
                                     ".ffn.experts." + std::to_string(e)));
    }
    return experts;
  }

  static const ops::BoundExperts* Shared(Device& device, int layer) {
    return device.Bind({WeightExpert("layers." + std::to_string(layer) +
                                     ".ffn.shared_experts")});
  }

  // The routed sum alone, with a given routing.
  static TensorView Routed(Device& device, const ConstTensorView& x,
                           const ops::BoundExperts* experts,
                           const ConstTensorView& ids,
                           const ConstTensorView& weights) {
    const TensorView acc = device.Put(
        DType::kF32, {x.dim(0), kDim},
        std::vector<float>(static_cast<size_t>(x.dim(0) * kDim), 77.0f));
    device.ops().RoutedExperts({.x = x,
                                .experts = experts,
                                .ids = ids,
                                .weights = weights,
                                .acc = acc});
    return acc;
  }
};

TEST_P(MoeTest, GateByScore) {
  const auto device = Make(Official());
  const TensorView x = device->Put(Golden("module.x"));
  const Routing r = Route(*device, x, 1, ops::RouteBy::kScore);
  const auto idx = Golden("gate_bias.idx").as<int32_t>();
  const auto margin = Golden("gate_bias.margin").as<float>();
  const std::vector<float> golden = GoldenFloats("gate_bias.w");
  const std::vector<int32_t> got = device->GetInts(r.experts);
  const std::vector<float> weights = device->Get(r.weights);
  const std::vector<float> scores = device->Get(r.scores);
  for (size_t i = 0; i < idx.size(); ++i) {
    if (margin[i / kTopk] < 1e-5f) continue;  // a tie but for the last bits
    ASSERT_EQ(got[i], idx[i]) << i;
    EXPECT_NEAR(weights[i], golden[i], 1e-5f * golden[i]) << i;
  }
  // The margin is what the scores say: k-th best against the next.
  for (size_t t = 0; t < margin.size(); ++t) {
    std::vector<float> row(&scores[t * kExperts],
                           &scores[t * kExperts] + kExperts);
    std::sort(row.begin(), row.end(), std::greater<>());
    EXPECT_NEAR(row[kTopk - 1] - row[kTopk], margin[t], 1e-5) << t;
  }
}

TEST_P(MoeTest, GateByTable) {
  const auto device = Make(Official());
  const TensorView x = device->Put(Golden("module.x"));
  const Routing r = Route(*device, x, 0, ops::RouteBy::kTable);
  const auto idx = Golden("gate_hash.idx").as<int32_t>();
  EXPECT_EQ(device->GetInts(r.experts),
            std::vector<int32_t>(idx.begin(), idx.end()));
  EXPECT_TRUE(
      NearF32(device->Get(r.weights), GoldenFloats("gate_hash.w"), 1e-5));
  // Replay: forced experts get the same weights.
  const Routing forced = Route(*device, x, 0, ops::RouteBy::kForced, r.experts);
  EXPECT_TRUE(SameBits(device->Get(forced.weights), device->Get(r.weights)));
}

// Logits beyond softplus' threshold, ties, and a bias that must not leak into
// the weights: numbers that can be worked out by hand.
TEST_P(MoeTest, GateByHand) {
  const auto device = Make(Exact());
  ops::RouteParams p;
  p.x = device->Put(DType::kF32, {1, 1}, {1.0f});
  p.gate = device->BindBf16(4, 1, {25.0f, 4.0f, 4.0f, -100.0f});
  p.bias = device->Put(DType::kF32, {4}, {-10.0f, 0.0f, 0.0f, 2.0f});
  p.experts = device->Zeros(DType::kI32, {1, 3});
  p.weights = device->Zeros(DType::kF32, {1, 3});
  p.logits = device->Zeros(DType::kF32, {1, 4});
  p.route_scale = 2.0f;
  device->ops().Route(p);
  // s = 5, 2.0045, 2.0045, ~0; with bias -5, 2.0045, 2.0045, 2.
  EXPECT_EQ(device->GetInts(p.experts), (std::vector<int32_t>{1, 2, 3}));
  const std::vector<float> w = device->Get(p.weights);
  EXPECT_NEAR(w[0], 1.0f, 1e-6);
  EXPECT_EQ(w[0], w[1]);
  EXPECT_NEAR(w[2], 0.0f, 1e-20);
  p.by = ops::RouteBy::kForced;
  p.experts = device->PutInts({1, 3}, {0, 1, 3});
  device->ops().Route(p);
  const double s = std::sqrt(std::log1p(std::exp(4.0)));
  EXPECT_NEAR(device->Get(p.weights)[0], 2 * 5 / (5 + s), 1e-5);
}

TEST_P(MoeTest, ExpertWithClamps) {
  const auto device = Make(Official());
  const ConstTensorView x = Golden("expert.x");
  const int64_t n = x.dim(0);
  const TensorView dx = device->Put(x);
  const ops::ExpertSource source = WeightExpert("layers.1.ffn.experts.3");
  for (const auto& [linear, name] :
       {std::pair{source.w1, "expert.gate"}, {source.w3, "expert.up"}}) {
    const TensorView y = device->Zeros(DType::kBF16, {n, 128});
    device->ops().Linear({.weight = device->Bind(linear), .x = dx, .y = y});
    EXPECT_TRUE(NearBf16(device->Get(y), GoldenFloats(name))) << name;
  }
  // Expert 3 as the only local one; the second choice is another rank's.
  std::vector<int32_t> ids;
  std::vector<float> weights;
  for (const float w : GoldenFloats("expert.weight")) {
    ids.insert(ids.end(), {3, 4});
    weights.insert(weights.end(), {w, 100.0f});
  }
  const TensorView acc = Routed(*device, dx, device->Bind({source}, 3),
                                device->PutInts({n, kTopk}, ids),
                                device->Put(DType::kF32, {n, kTopk}, weights));
  const std::vector<float> golden = GoldenFloats("expert.y");
  EXPECT_TRUE(NearModule(device->Get(acc), golden, kDim));
  EXPECT_GE(EqualShare(device->Get(acc), golden), 0.95);
}

// The gate is clamped from above only, `up` on both sides; numbers by hand.
TEST_P(MoeTest, ClampsByHand) {
  const auto device = Make(Exact());
  const float gate[] = {-40.0f, 40.0f}, up[] = {5.0f, -40.0f};
  const float down[] = {1.0f};
  const auto linear = [](const float* value) {
    ops::LinearSource source;
    source.weight = ConstTensorView(value, DType::kF32, {1, 1});
    return source;
  };
  std::vector<ops::ExpertSource> experts;
  for (int e = 0; e < 2; ++e) {
    experts.push_back(
        {.w1 = linear(&gate[e]), .w2 = linear(down), .w3 = linear(&up[e])});
  }
  const TensorView acc = device->Zeros(DType::kF32, {2, 1});
  device->ops().RoutedExperts(
      {.x = device->Put(DType::kF32, {2, 1}, {1.0f, 1.0f}),
       .experts = device->Bind(experts),
       .ids = device->PutInts({2, 1}, {0, 1}),
       .weights = device->Put(DType::kF32, {2, 1}, {1.0f, 0.5f}),
       .acc = acc});
  const std::vector<float> got = device->Get(acc);
  EXPECT_NEAR(got[0], 0.0, 1e-9);  // silu(-40) * 5; silu(-10) * 5 = -2e-3
  EXPECT_NEAR(got[1], 10 / (1 + std::exp(-10.0)) * -10 * 0.5, 1e-4);
}

TEST_P(MoeTest, SharedExpertIsClamped) {
  const auto device = Make(Official());
  const TensorView x = device->Put(Golden("expert.x"));
  const TensorView y = device->Zeros(DType::kBF16, x.shape());
  device->ops().SharedExpert({.x = x,
                              .expert = Shared(*device, 1),
                              .acc = device->Zeros(DType::kF32, x.shape()),
                              .y = y});
  const std::vector<float> golden = GoldenFloats("shared_expert.y");
  EXPECT_TRUE(NearModule(device->Get(y), golden, kDim));
  EXPECT_GE(EqualShare(device->Get(y), golden), 0.95);
  // The first published revision did not clamp.
  EXPECT_FALSE(NearModule(
      GoldenFloats("shared_expert.y_initial_release_noclamp"), golden, kDim));
}

TEST_P(MoeTest, Module) {
  for (const int layer : {0, 1, 5}) {
    SCOPED_TRACE(layer);
    const auto device = Make(Official());
    const TensorView x = device->Put(Golden("module.x"));
    const Routing r =
        Route(*device, x, layer,
              layer == 0 ? ops::RouteBy::kTable : ops::RouteBy::kScore);
    const TensorView acc =
        Routed(*device, x, device->Bind(Experts(layer)), r.experts, r.weights);
    const TensorView y = device->Zeros(DType::kBF16, x.shape());
    device->ops().SharedExpert(
        {.x = x, .expert = Shared(*device, layer), .acc = acc, .y = y});
    const std::vector<float> golden =
        GoldenFloats("moe_module." + std::to_string(layer) + ".y");
    EXPECT_TRUE(NearModule(device->Get(y), golden, kDim));
    EXPECT_GE(EqualShare(device->Get(y), golden), 0.95);
  }
}

// Single tokens, and experts split over two ranks whose sums are added.
TEST_P(MoeTest, TokensAndRanksAreIndependent) {
  const auto device = Make(Official());
  const TensorView x = device->Put(Golden("module.x"));
  const Routing r = Route(*device, x, 1, ops::RouteBy::kScore);
  std::vector<ops::ExpertSource> experts = Experts(1);
  const auto* all = device->Bind(experts);
  const std::vector<float> whole =
      device->Get(Routed(*device, x, all, r.experts, r.weights));
  for (const int64_t t : {0, 17, 140}) {
    const std::vector<float> one =
        device->Get(Routed(*device, x.rows(t, 1), all, r.experts.rows(t, 1),
                           r.weights.rows(t, 1)));
    const auto first = whole.begin() + t * kDim;
    EXPECT_TRUE(SameBits(one, {first, first + kDim})) << t;
  }
  const std::vector<ops::ExpertSource> low(experts.begin(),
                                           experts.begin() + 5);
  const std::vector<ops::ExpertSource> high(experts.begin() + 5, experts.end());
  std::vector<float> sum =
      device->Get(Routed(*device, x, device->Bind(low), r.experts, r.weights));
  const std::vector<float> rest = device->Get(
      Routed(*device, x, device->Bind(high, 5), r.experts, r.weights));
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += rest[i];
  EXPECT_TRUE(SameValues(sum, whole));
}

BELAY_CONFORMANCE_SUITE(MoeTest);

}  // namespace
}  // namespace belay::conformance
