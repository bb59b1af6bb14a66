// SPDX-License-Identifier: Apache-2.0
#include "spec/cost.h"

#include <gtest/gtest.h>

#include "spec/layout.h"
#include "spec/presets.h"

namespace belay::spec {
namespace {

ModelConfig Get(std::string_view preset) { return *PresetConfig(preset); }

StepCost Cost(const ModelConfig& config, const StepShape& step) {
  return CostOfStep(config, step, OfficialKvRow(config),
                    OfficialIndexRow(config));
}

// 21 layers of ratio 4 with 583 + 68 bytes a row, 20 of ratio 128 with 583.
TEST(CacheCostTest, FlashByHand) {
  const ModelConfig flash = Get("flash");
  const CacheCost cost =
      CostOfCache(flash, OfficialKvRow(flash), OfficialIndexRow(flash));
  EXPECT_EQ(cost.bytes_per_page, 21u * 32 * (583 + 68) + 20u * 583);
  EXPECT_DOUBLE_EQ(cost.bytes_per_token,
                   static_cast<double>(cost.bytes_per_page) / 128);
  EXPECT_EQ(cost.window_bytes, 43u * 128 * 583);
  EXPECT_EQ(cost.compressor_bytes,
            21u * 8 * 2 * (1024 + 256) * 4 + 20u * 128 * 2 * 512 * 4);
}

// The planner's figure and the layout that the engine obeys are the same bytes
// but for alignment.
TEST(CacheCostTest, AgreesWithTheLayout) {
  for (const char* preset : {"golden", "small", "flash", "pro"}) {
    const ModelConfig config = Get(preset);
    LayoutOptions options;
    options.n_slots = 3;
    options.max_context = 1024;
    options.mtp = true;
    const auto layout = MakeLayout(config, Rank{}, options);
    ASSERT_TRUE(layout.ok());
    const CacheCost cost = CostOfCache(config, OfficialKvRow(config),
                                       OfficialIndexRow(config), true);
    uint64_t window = 0;
    uint64_t compressor = 0;
    uint64_t pages = 0;
    for (const LayerRegions& layer : layout->layers) {
      window += layer.window.bytes();
      const auto bytes = [](const Region& r) {
        return r.exists() ? r.bytes() : 0;
      };
      compressor += bytes(layer.state) + bytes(layer.index_state);
      pages += bytes(layer.pages) + bytes(layer.index_pages);
    }
    EXPECT_EQ(window, 3 * cost.window_bytes) << preset;
    EXPECT_EQ(compressor, 3 * cost.compressor_bytes) << preset;
    EXPECT_EQ(pages, static_cast<uint64_t>(layout->options.n_pages) *
                         cost.bytes_per_page)
        << preset;
  }
}

// One token multiplies with each active parameter once.
TEST(StepCostTest, OneTokenUsesTheActiveParameters) {
  const ModelConfig flash = Get("flash");
  const StepCost cost = Cost(flash, {.context = 0});
  const double linear =
      cost.flops() - cost.attention_flops - cost.indexer_flops;
  const auto active = static_cast<double>(CountParameters(flash).active);
  // Norms and biases are no products.
  EXPECT_NEAR(linear / (2 * active), 1, 1e-3);
  // 6 of 256 experts.
  const auto experts = static_cast<size_t>(Family::kExperts);
  EXPECT_NEAR(cost.families[experts].bytes,
              43.0 * 6 * 3 * 4096 * 2048 * (0.5 + 1.0 / 32), 1e3);
  // Position 0: itself in every window, no compressed rows.
  EXPECT_EQ(cost.attention_flops, 43.0 * 4 * 64 * 512);
  EXPECT_EQ(cost.cache_bytes, 43.0 * 583);
}

TEST(StepCostTest, LongContextReadsWhatTheIndexerChooses) {
  const ModelConfig flash = Get("flash");
  const int64_t context = 1 << 20;
  const StepCost cost = Cost(flash, {.context = context - 1});
  const double csa = 21.0 * (512 * 583 + (1 << 18) * 68);
  const double hca = 20.0 * (1 << 13) * 583;
  EXPECT_EQ(cost.cache_bytes, 43.0 * 128 * 583 + csa + hca);
  EXPECT_EQ(cost.indexer_flops, 21.0 * (1 << 18) * 2 * 64 * 128);
}

TEST(StepCostTest, ABatchSharesTheWeights) {
  const ModelConfig flash = Get("flash");
  const StepCost one = Cost(flash, {.context = 1000});
  const StepCost many = Cost(flash, {.n_sequences = 64, .context = 1000});
  const auto attention = static_cast<size_t>(Family::kAttention);
  const auto experts = static_cast<size_t>(Family::kExperts);
  EXPECT_EQ(one.families[attention].bytes, many.families[attention].bytes);
  EXPECT_NEAR(many.flops() / one.flops(), 64, 1e-6);
  // 64 tokens meet 78 % of the experts: 256 (1 - (250 / 256)^64).
  EXPECT_NEAR(many.families[experts].bytes / one.families[experts].bytes,
              256 * 0.78082 / 6, 0.05);
  EXPECT_EQ(many.cache_bytes, 64 * one.cache_bytes);
}

TEST(StepCostTest, APrefillSeesWhatItsStepsWouldSee) {
  const ModelConfig golden = Get("golden");
  double attention = 0;
  double indexer = 0;
  for (int64_t t = 0; t < 300; ++t) {
    const StepCost step = Cost(golden, {.context = t});
    attention += step.attention_flops;
    indexer += step.indexer_flops;
  }
  const StepCost prefill = Cost(golden, {.n_tokens = 300});
  EXPECT_DOUBLE_EQ(prefill.attention_flops, attention);
  EXPECT_DOUBLE_EQ(prefill.indexer_flops, indexer);
}

}  // namespace
}  // namespace belay::spec
