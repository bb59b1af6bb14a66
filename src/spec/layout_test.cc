// SPDX-License-Identifier: Apache-2.0
#include "spec/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/error_ids.h"

namespace belay::spec {
namespace {

ModelConfig FlashLike() {
  ModelConfig c;
  c.dim = 4096;
  c.n_layers = 4;
  c.n_mtp_layers = 1;
  c.vocab_size = 1024;
  c.n_heads = 64;
  c.q_lora_rank = 1024;
  c.o_groups = 8;
  c.o_lora_rank = 1024;
  c.compress_ratios = {0, 4, 128, 4, 0};
  c.index_n_heads = 64;
  c.index_topk = 512;
  c.n_routed_experts = 8;
  c.n_activated_experts = 2;
  c.moe_inter_dim = 2048;
  return c;
}

std::vector<Region> AllRegions(const Layout& layout) {
  std::vector<Region> all;
  for (const Region& r : layout.slots) {
    if (r.exists()) all.push_back(r);
  }
  for (const LayerRegions& l : layout.layers) {
    for (const Region& r :
         {l.window, l.state, l.pages, l.index_state, l.index_pages}) {
      if (r.exists()) all.push_back(r);
    }
  }
  return all;
}

TEST(LayoutTest, RegionsAreAlignedAndApart) {
  LayoutOptions options;
  options.n_slots = 3;
  options.mtp = true;
  options.draft_len = 1;
  options.workspace_bytes = 1000;
  const auto layout = MakeLayout(FlashLike(), Rank{}, options);
  ASSERT_TRUE(layout.ok()) << layout.status();
  auto regions = AllRegions(*layout);
  std::sort(regions.begin(), regions.end(),
            [](const Region& a, const Region& b) {
              return a.offset < b.offset ||
                     (a.offset == b.offset && a.bytes() < b.bytes());
            });
  size_t end = 0;
  for (const Region& r : regions) {
    EXPECT_EQ(r.offset % kRegionAlignment, 0u);
    EXPECT_GE(r.offset, end);
    end = r.offset + r.bytes();
  }
  EXPECT_LE(end, layout->total_bytes);
  size_t by_kind = 0;
  for (const size_t bytes : layout->bytes_by_kind) by_kind += bytes;
  EXPECT_EQ(by_kind, layout->total_bytes + 1000);
  EXPECT_EQ(layout->all_bytes(), by_kind);
}

TEST(LayoutTest, RowsHaveThePublishedSizes) {
  const auto layout = MakeLayout(FlashLike(), Rank{}, LayoutOptions{});
  ASSERT_TRUE(layout.ok());
  const LayerRegions& csa = layout->layers[1];
  EXPECT_EQ(csa.kv_format.bytes(), 583u);
  EXPECT_EQ(csa.index_format.bytes(), 68u);
  EXPECT_EQ(csa.window.shape, (Shape{1, 128, 583}));
  EXPECT_EQ(csa.pages.shape, (Shape{32, 32, 583}));
  EXPECT_EQ(csa.index_pages.shape, (Shape{32, 32, 68}));
  EXPECT_EQ(csa.state.shape, (Shape{1, 8, 2, 1024}));
  EXPECT_EQ(layout->layers[2].pages.shape, (Shape{32, 1, 583}));
  EXPECT_EQ(layout->layers[2].state.shape, (Shape{1, 128, 2, 512}));
  EXPECT_FALSE(layout->layers[0].pages.exists());
  EXPECT_FALSE(layout->layers[2].index_pages.exists());
}

// A window of 128 rows a layer, and at ratio 4 the block before: 4 raw rows of
// 2 x 1024 floats and 4 of 2 x 256 for the indexer.
TEST(LayoutTest, ResumePointsAreThinnedByTheirBudget) {
  LayoutOptions options;
  options.mtp = true;
  const size_t point = 5 * 128 * 583 + 2 * (4 * 2 * 1024 * 4 + 4 * 2 * 256 * 4);
  options.resume_bytes = 3 * point + point / 2;
  const auto layout = MakeLayout(FlashLike(), Rank{}, options);
  ASSERT_TRUE(layout.ok());
  EXPECT_EQ(layout->resume_point_bytes, point);
  EXPECT_EQ(layout->n_resume_points, 3);
  EXPECT_EQ(layout->all_bytes(), layout->total_bytes + 3 * point);
  EXPECT_EQ(
      layout->bytes_by_kind[static_cast<size_t>(MemoryKind::kResumePoints)],
      3 * point);
  EXPECT_EQ(layout->page_bytes, 2u * 32 * (583 + 68) + 583);
  const LayerRegions& csa = layout->layers[1];
  EXPECT_EQ(csa.resume_state.n_rows, 4);
  EXPECT_EQ(csa.resume_state.row_bytes, 2u * 1024 * 4);
  EXPECT_EQ(csa.resume_state.offset, 2u * 128 * 583);
  EXPECT_EQ(layout->layers[2].resume_state.n_rows, 0);
}

TEST(LayoutTest, ARankHasItsShare) {
  const auto whole = MakeLayout(FlashLike(), Rank{}, LayoutOptions{});
  const auto half = MakeLayout(FlashLike(), Rank{2, 1, 2, 1}, LayoutOptions{});
  ASSERT_TRUE(whole.ok() && half.ok());
  EXPECT_EQ(whole->at(Slot::kQ).shape, (Shape{512, 64, 512}));
  EXPECT_EQ(half->at(Slot::kQ).shape, (Shape{512, 32, 512}));
  EXPECT_EQ(half->at(Slot::kLogitsLocal).shape, (Shape{1, 512}));
  EXPECT_EQ(
      ErrorIdOf(
          MakeLayout(FlashLike(), Rank{3, 0, 1, 0}, LayoutOptions{}).status()),
      kCkptUnsliceable.id);
}

TEST(LayoutTest, RefusesCountsBelowOne) {
  LayoutOptions options;
  options.max_context = 0;
  EXPECT_EQ(ErrorIdOf(MakeLayout(FlashLike(), Rank{}, options).status()),
            kArgUsage.id);
}

TEST(LayoutTest, LargestContextIsTheLargest) {
  LayoutOptions options;
  options.n_slots = 2;
  const size_t budget = size_t{600} << 20;
  const int64_t context = LargestContext(FlashLike(), Rank{}, options, budget);
  ASSERT_GT(context, 0);
  options.max_context = context;
  EXPECT_LE(MakeLayout(FlashLike(), Rank{}, options)->total_bytes, budget);
  options.max_context = context + kPageTokens;
  EXPECT_GT(MakeLayout(FlashLike(), Rank{}, options)->total_bytes, budget);
  EXPECT_EQ(LargestContext(FlashLike(), Rank{}, options, 1000), 0);
}

}  // namespace
}  // namespace belay::spec
