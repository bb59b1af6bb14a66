// SPDX-License-Identifier: Apache-2.0
// What the conformance suite does not see: bits that must not depend on the
// batch or the team, and memory that must not be allocated.
#include "backends/cpu/cpu.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "backends/cpu/alloc_count_test.h"
#include "backends/cpu/layer_test.h"

namespace belay::cpu {
namespace {

ops::Numerics NumericsOf(ops::NumericsMode mode) {
  ops::Numerics numerics;
  numerics.mode = mode;
  return numerics;
}

constexpr ops::NumericsMode kModes[] = {ops::NumericsMode::kOfficial,
                                        ops::NumericsMode::kExact};

// One sequence in one piece on one thread is the measure of everything else.
TEST(CpuTest, ChunksAndThreadsChangeNoBit) {
  struct Way {
    int n_threads;
    int32_t chunk;
  };
  for (const ops::NumericsMode mode : kModes) {
    SCOPED_TRACE(static_cast<int>(mode));
    const int32_t n = 67;
    TestLayer whole(NumericsOf(mode), 1);
    const std::vector<std::byte> expected = whole.Run({{0, 0, n}});
    ASSERT_TRUE(whole.OutputsAreSound());
    for (const auto [n_threads, chunk] : {Way{1, 7}, Way{2, 1}, Way{2, 64}}) {
      SCOPED_TRACE(testing::Message()
                   << n_threads << " threads, chunks of " << chunk);
      TestLayer layer(NumericsOf(mode), n_threads);
      std::vector<std::byte> got;
      for (int32_t at = 0; at < n; at += chunk) {
        const std::vector<std::byte> part =
            layer.Run({{0, at, std::min(chunk, n - at)}});
        got.insert(got.end(), part.begin(), part.end());
      }
      ASSERT_TRUE(got == expected);
    }
  }
}

// Three sequences at different positions in one batch, prefill beside decode.
TEST(CpuTest, CompanyChangesNoBit) {
  for (const ops::NumericsMode mode : kModes) {
    SCOPED_TRACE(static_cast<int>(mode));
    const std::vector<std::vector<Piece>> steps = {
        {{1, 0, 40}, {0, 0, 5}},
        {{2, 0, 70}, {1, 40, 1}, {0, 5, 1}},
        {{0, 6, 30}, {2, 70, 1}, {1, 41, 2}},
    };
    TestLayer together(NumericsOf(mode), 2);
    std::vector<TestLayer> alone;
    for (int slot = 0; slot < 3; ++slot)
      alone.emplace_back(NumericsOf(mode), 2);
    for (const std::vector<Piece>& step : steps) {
      const std::vector<std::byte> got = together.Run(step);
      std::vector<std::byte> expected;
      for (const Piece& piece : step) {
        const std::vector<std::byte> part =
            alone[static_cast<size_t>(piece.slot)].Run({piece});
        expected.insert(expected.end(), part.begin(), part.end());
      }
      ASSERT_TRUE(got == expected);
    }
  }
}

TEST(CpuTest, StepsAllocateNothing) {
  for (const ops::NumericsMode mode : kModes) {
    TestLayer layer(NumericsOf(mode), 2);
    layer.Run({{0, 0, 70}});
    layer.Prepare({{0, 70, 1}, {1, 0, 3}});
    const int64_t before = AllocationCount();
    layer.Step();
    EXPECT_EQ(AllocationCount() - before, 0);
    // The hook counts: a vector is an allocation.
    const std::vector<int> hooked(3);
    EXPECT_GT(AllocationCount() + static_cast<int64_t>(hooked[0]), before);
  }
}

TEST(CpuTest, RefusesBlocksThatTasksWouldSplit) {
  auto pool = ThreadPool::Create(1);
  ASSERT_TRUE(pool.ok());
  ops::Numerics numerics;
  numerics.act_block = 96;
  const auto backend = Create(numerics, pool->get());
  ASSERT_FALSE(backend.ok());
  EXPECT_EQ(ErrorIdOf(backend.status()), "BACK-002");
}

}  // namespace
}  // namespace belay::cpu
