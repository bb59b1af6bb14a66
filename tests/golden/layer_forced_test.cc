// SPDX-License-Identifier: Apache-2.0
// One layer at a time in official numerics: every layer gets the golden's
// hidden state and the golden's selections, and its output is held against the
// golden's next hidden state. A wrong rounding rule shows here and nowhere else
// (it would drown in the flips of a free run).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "apps/belay/trace/trace.h"
#include "support/compare.h"
#include "support/golden_set.h"
#include "support/stepper.h"
#include "support/value.h"

namespace belay::test {
namespace {

// What comes out of a layer depends on its own input and caches only, so one
// pass can force all layers: look at the state, then put the golden's in its
// place.
class ForceLayers final : public model::Hooks {
 public:
  ForceLayers(const GoldenFile& golden, std::string prompt,
              ops::Backend& backend)
      : golden_(golden),
        backend_(backend),
        prompt_(std::move(prompt)),
        hidden_(golden.Get(prompt_ + "hidden")),
        experts_(golden.Get(prompt_ + "experts")) {}

  bool has_hidden() const { return !hidden_.empty(); }
  const std::vector<HiddenDiff>& diffs() const { return diffs_; }

  void Hidden(int layer, TensorView h) override {
    const ConstTensorView golden(hidden_.row<std::byte>(layer), DType::kBF16,
                                 h.shape());
    std::vector<std::byte> bytes(h.bytes());
    backend_.CopyOut(bytes.data(), h);
    ASSERT_TRUE(backend_.Finish().ok());
    const ConstTensorView got(bytes.data(), DType::kBF16, h.shape());
    diffs_.push_back(CompareHidden(golden, got));
    backend_.CopyIn(h, golden.data());
  }

  bool ForceExperts(int layer, TensorView experts) override {
    if (layer >= experts_.dim(0)) return false;  // an MTP block
    backend_.CopyIn(experts, experts_.row<std::byte>(layer));
    return true;
  }

  void Selected(int layer, TensorView selection) override {
    const ConstTensorView rows =
        golden_.Get(prompt_ + "index_topk." + std::to_string(layer));
    ASSERT_FALSE(rows.empty());
    const int64_t k = selection.dim(1);
    std::vector<int32_t> all(static_cast<size_t>(selection.n_elements()), -1);
    for (int64_t t = 0; t < selection.n_rows(); ++t) {
      int32_t* chosen = all.data() + t * k;
      std::copy_n(rows.row<int32_t>(t), std::min(rows.dim(1), k), chosen);
    }
    backend_.CopyIn(selection, all.data());
  }

 private:
  const GoldenFile& golden_;
  ops::Backend& backend_;
  const std::string prompt_;
  const ConstTensorView hidden_;   // [n_layers + 1, n_tokens, hc, dim] bf16
  const ConstTensorView experts_;  // [n_layers, n_tokens, k] i32
  std::vector<HiddenDiff> diffs_;  // before each layer, and after the last
};

class LayerForcedTest
    : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  TestModel Open() const {
    ModelOptions options;
    options.backend = std::get<1>(GetParam());
    return TestModel(GoldenFolder() + "/" + std::get<0>(GetParam()), options);
  }
};

TEST_P(LayerForcedTest, EveryLayer) {
  TestModel model = Open();
  const GoldenFile golden(std::get<0>(GetParam()), "official");
  int n_prompts = 0;
  // The share of exact tokens is held over all prompts: of one with 7 tokens, 3
  // are less than half.
  std::vector<double> exact(static_cast<size_t>(model.config().n_layers));
  double n_tokens = 0;
  const auto length_of = [&](const std::string& prompt) {
    return golden.Ids(prompt + "ids").size();
  };
  for (const std::string& prompt : golden.Prompts()) {
    SCOPED_TRACE(prompt);
    ForceLayers force(golden, prompt, model.backend());
    if (!force.has_hidden()) continue;
    ++n_prompts;
    StepperOptions options;
    options.hooks = &force;
    Stepper stepper(model, options);
    stepper.Run({{0, 0, golden.Ids(prompt + "ids")}});
    const auto n_layers = static_cast<size_t>(model.config().n_layers);
    ASSERT_EQ(force.diffs().size(), n_layers + 1);
    EXPECT_EQ(force.diffs()[0].exact, 1.0) << "embedding";
    for (size_t layer = 0; layer < n_layers; ++layer) {
      SCOPED_TRACE("after layer " + std::to_string(layer));
      const HiddenDiff& d = force.diffs()[layer + 1];
      std::printf("  %slayer %zu: rel rms %.5f, worst token %.4f, exact %.3f\n",
                  prompt.c_str(), layer, d.rel_rms, d.worst_token, d.exact);
      EXPECT_LE(d.rel_rms, 0.008);
      EXPECT_LE(d.worst_token, 0.04);
      exact[layer] += d.exact * static_cast<double>(length_of(prompt));
    }
    n_tokens += static_cast<double>(length_of(prompt));
  }
  for (const double share : exact) EXPECT_GE(share / n_tokens, 0.5);
  EXPECT_GE(n_prompts, 2);
}

// `belay trace --inject` does the same one layer at a time.
TEST_P(LayerForcedTest, TraceInjectsOneLayer) {
  TestModel model = Open();
  const GoldenFile golden(std::get<0>(GetParam()), "official");
  const ConstTensorView hidden = golden.Get("p7.hidden");
  ASSERT_FALSE(hidden.empty());
  const int64_t layer = model.config().n_layers - 1;
  const ConstTensorView before = hidden.rows(layer, 1);
  const ConstTensorView after = hidden.rows(layer + 1, 1);
  const Shape shape{hidden.dim(1), hidden.dim(2), hidden.dim(3)};
  trace::TraceOptions options;
  options.prompt = golden.Ids("p7.ids");
  options.inject = before.reshaped(shape);
  options.inject_layer = static_cast<int>(layer);
  options.replay = [&](const std::string& name) -> StatusOr<ConstTensorView> {
    return golden.Get("p7." + name);
  };
  trace::Tensors trace =
      Value(trace::RunTrace(model.parts<trace::TraceParts>(), options));
  const TensorView got = trace.at("hidden").view().rows(layer + 1, 1);
  const HiddenDiff d =
      CompareHidden(after.reshaped(shape), got.reshaped(shape));
  EXPECT_LE(d.rel_rms, 0.008);
}

INSTANTIATE_TEST_SUITE_P(
    All, LayerForcedTest,
    ::testing::Combine(::testing::Values("tiny_fp4", "tiny_base_fp8"),
                       ::testing::ValuesIn(BackendAndTargetNames())),
    [](const auto& test) {
      return std::get<0>(test.param) + "_" + std::get<1>(test.param);
    });

}  // namespace
}  // namespace belay::test
