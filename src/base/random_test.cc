// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

namespace belay {
namespace {

// Sampled tokens depend on these bits: a seed must give the same text in every
// release. Values from an implementation of the formula in Python.
TEST(RandomTest, BitsNeverChange) {
  EXPECT_EQ(RandomBits(0, 0), 0x46b73e79f0c37c00u);
  EXPECT_EQ(RandomBits(0, 1), 0x778b1aa9c29bc868u);
  EXPECT_EQ(RandomBits(1, 0), 0x79bed94d43a760d5u);
  EXPECT_EQ(RandomBits(20261130, 5), 0xa6bd16493099111du);
  EXPECT_EQ(RandomBits(UINT64_MAX, UINT64_MAX), 0x096e662920cc807du);
  static_assert(RandomBits(1, 2) == RandomBits(1, 2));  // usable in constexpr
}

TEST(RandomTest, UniformIsBelowOneAndExact) {
  for (uint64_t i = 0; i < 10000; ++i) {
    const float u = UniformFrom(7, i);
    ASSERT_GE(u, 0.0f);
    ASSERT_LT(u, 1.0f);
    ASSERT_EQ(u * 0x1p24f, std::floor(u * 0x1p24f));
    ASSERT_EQ(static_cast<uint64_t>(u * 0x1p24f), RandomBits(7, i) >> 40);
  }
}

// Ten buckets of 100,000 numbers, for consecutive counters and for consecutive
// seeds: chi square with 9 degrees of freedom exceeds 27.9 once in 1,000.
TEST(RandomTest, UniformIsUniform) {
  constexpr int kBuckets = 10, kNumbers = 100000;
  for (const bool by_seed : {false, true}) {
    int counts[kBuckets] = {};
    for (uint64_t i = 0; i < kNumbers; ++i) {
      const float u = by_seed ? UniformFrom(i, 3) : UniformFrom(3, i);
      ++counts[static_cast<int>(u * kBuckets)];
    }
    double chi2 = 0;
    for (const int count : counts) {
      const double expected = double{kNumbers} / kBuckets;
      chi2 += (count - expected) * (count - expected) / expected;
    }
    EXPECT_LT(chi2, 27.9);
  }
}

// One changed input bit changes about half of the output bits.
TEST(RandomTest, InputsAvalanche) {
  double n_flipped = 0;
  int n_pairs = 0;
  for (uint64_t i = 0; i < 200; ++i) {
    for (int bit = 0; bit < 64; ++bit) {
      const uint64_t base = RandomBits(i, i * i);
      n_flipped += std::popcount(base ^ RandomBits(i ^ (1ull << bit), i * i));
      n_flipped += std::popcount(base ^ RandomBits(i, (i * i) ^ (1ull << bit)));
      n_pairs += 2;
    }
  }
  EXPECT_NEAR(n_flipped / n_pairs, 32.0, 0.2);
}

TEST(RandomTest, NeighbouringStreamsDoNotOverlap) {
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (uint64_t counter = 0; counter < 500; ++counter) {
      seen.insert(RandomBits(seed, counter));
    }
  }
  EXPECT_EQ(seen.size(), 50u * 500u);
}

}  // namespace
}  // namespace belay
