// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix/tree.h"

#include <gtest/gtest.h>

#include <vector>

namespace belay::engine {
namespace {

using Ids = std::vector<int32_t>;

Ids Page(int32_t seed) {
  Ids ids(kPageTokens);
  for (int32_t i = 0; i < kPageTokens; ++i) {
    ids[static_cast<size_t>(i)] = seed * 1000 + i;
  }
  return ids;
}

constexpr PrefixKey kAnyone = {};

// With the bits of the hash that are used: with none all pages collide, and
// only what is compared tells them apart.
class PrefixTreeTest : public ::testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(HashBits, PrefixTreeTest,
                         ::testing::Values(~uint64_t{0}, uint64_t{3},
                                           uint64_t{0}));

TEST_P(PrefixTreeTest, FindsByEveryIdParentAndKey) {
  PrefixTree tree(8, GetParam());
  EXPECT_EQ(tree.Find(-1, kAnyone, Page(1)), -1);
  const int32_t a = tree.Insert(-1, kAnyone, Page(1), 10);
  const int32_t b = tree.Insert(a, kAnyone, Page(1), 11);
  EXPECT_EQ(tree.Find(-1, kAnyone, Page(1)), a);
  EXPECT_EQ(tree.Find(a, kAnyone, Page(1)), b);
  EXPECT_EQ(tree.Find(b, kAnyone, Page(1)), -1);
  EXPECT_EQ(tree.node(b).depth, 2);
  EXPECT_EQ(tree.node(b).page, 11);
  for (size_t i = 0; i < kPageTokens; ++i) {
    Ids other = Page(1);
    ++other[i];
    EXPECT_EQ(tree.Find(-1, kAnyone, other), -1) << i;
  }
  EXPECT_EQ(tree.Find(-1, {.salt = 1}, Page(1)), -1);
  EXPECT_EQ(tree.Find(-1, {.adapter = 0}, Page(1)), -1);
  const int32_t salted = tree.Insert(-1, {.salt = 1}, Page(1), 12);
  EXPECT_EQ(tree.Find(-1, {.salt = 1}, Page(1)), salted);
  EXPECT_EQ(tree.Find(-1, kAnyone, Page(1)), a);
}

TEST_P(PrefixTreeTest, TheLongestUnusedLeafGoesFirst) {
  PrefixTree tree(8, GetParam());
  const int32_t a = tree.Insert(-1, kAnyone, Page(1), 0);
  const int32_t b = tree.Insert(a, kAnyone, Page(2), 1);
  const int32_t c = tree.Insert(-1, kAnyone, Page(3), 2);
  EXPECT_EQ(tree.n_unused(), 3);
  EXPECT_EQ(tree.Oldest(), b) << "a has a child";
  tree.Hold(b);
  EXPECT_EQ(tree.n_unused(), 1);
  EXPECT_EQ(tree.Oldest(), c);
  tree.Release(b);
  EXPECT_EQ(tree.n_unused(), 3);
  EXPECT_EQ(tree.Oldest(), c) << "b was used later";
  tree.Remove(c);
  EXPECT_EQ(tree.Oldest(), b);
  tree.Remove(b);
  EXPECT_EQ(tree.Oldest(), a);
  tree.Remove(a);
  EXPECT_EQ(tree.Oldest(), -1);
  EXPECT_EQ(tree.size(), 0);
  EXPECT_EQ(tree.Find(-1, kAnyone, Page(1)), -1);
}

TEST_P(PrefixTreeTest, HoldsCount) {
  PrefixTree tree(4, GetParam());
  const int32_t a = tree.Insert(-1, kAnyone, Page(1), 0);
  tree.Hold(a);
  const int32_t b = tree.Insert(a, kAnyone, Page(2), 1);
  tree.HoldChild(b);  // the hold on a moves down
  tree.Hold(a);
  tree.Release(b);
  EXPECT_EQ(tree.Oldest(), b);
  EXPECT_EQ(tree.n_unused(), 1);
  tree.Remove(b);
  EXPECT_EQ(tree.Oldest(), -1) << "a is held";
  tree.Release(a);
  EXPECT_EQ(tree.Oldest(), a);
  tree.Hold(-1);
  tree.Release(-1);
}

// Fills, removes the oldest and fills again, so that buckets and free nodes are
// used many times; a model of the expected order beside it.
TEST_P(PrefixTreeTest, ManyRounds) {
  constexpr int32_t kNodes = 16;
  PrefixTree tree(kNodes, GetParam());
  std::vector<int32_t> order;  // seeds, oldest first
  for (int32_t seed = 0; seed < 200; ++seed) {
    if (tree.size() == kNodes) {
      const int32_t oldest = tree.Oldest();
      ASSERT_EQ(tree.ids(oldest)[0], order.front() * 1000);
      tree.Remove(oldest);
      EXPECT_EQ(tree.Find(-1, kAnyone, Page(order.front())), -1);
      order.erase(order.begin());
    }
    const int32_t added = tree.Insert(-1, kAnyone, Page(seed), seed);
    order.push_back(seed);
    if (seed % 3 == 0) {  // the one in the middle is used again
      const int32_t again = order[order.size() / 2];
      const int32_t node = tree.Find(-1, kAnyone, Page(again));
      ASSERT_GE(node, 0);
      tree.Hold(node);
      tree.Release(node);
      order.erase(order.begin() + static_cast<int64_t>(order.size() / 2));
      order.push_back(again);
    }
    ASSERT_EQ(tree.Find(-1, kAnyone, Page(seed)), added);
  }
}

}  // namespace
}  // namespace belay::engine
