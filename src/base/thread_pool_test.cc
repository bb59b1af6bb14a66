// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

#include "base/error_ids.h"

namespace {

std::atomic<size_t> g_n_allocations{0};

}  // namespace

// Counts for JobsDoNotAllocate. Not inlined, or GCC 12 takes the free for one
// of memory from another allocator.
[[gnu::noinline]] void* operator new(size_t n_bytes) {
  g_n_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(n_bytes)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, size_t) noexcept {
  std::free(p);
}

namespace belay {
namespace {

std::unique_ptr<ThreadPool> MakePool(int n_threads) {
  auto pool = ThreadPool::Create(n_threads);
  EXPECT_TRUE(pool.ok()) << pool.status();
  return std::move(pool).value();
}

TEST(ThreadPoolTest, RefusesBadCounts) {
  for (const int n : {-1, 0, 1025, 1 << 30}) {
    EXPECT_EQ(ErrorIdOf(ThreadPool::Create(n).status()), kArgThreads.id) << n;
  }
}

class ThreadPoolSizeTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolSizeTest, EachTaskRunsOnceOnAKnownThread) {
  const int n_threads = GetParam();
  const auto pool = MakePool(n_threads);
  EXPECT_EQ(pool->n_threads(), n_threads);
  for (const size_t n_tasks : {0, 1, 2, 3, 7, 64, 1000}) {
    std::vector<std::atomic<int>> runs(n_tasks);
    std::atomic<bool> thread_in_range{true};
    pool->ParallelFor(n_tasks, [&](size_t task, int thread) {
      if (thread < 0 || thread >= n_threads) thread_in_range = false;
      runs[task].fetch_add(1);
    });
    EXPECT_TRUE(thread_in_range);
    for (size_t task = 0; task < n_tasks; ++task) EXPECT_EQ(runs[task], 1);
  }
}

// What tasks wrote is visible afterwards, and what the caller wrote between two
// jobs is visible in the tasks, all with plain memory (tsan watches).
TEST_P(ThreadPoolSizeTest, JobsHappenAfterEachOther) {
  const auto pool = MakePool(GetParam());
  std::vector<int> values(17, 0);
  int step = 0;
  for (; step < 500; ++step) {
    pool->ParallelFor(values.size(), [&](size_t task, int) {
      EXPECT_EQ(values[task], step);
      values[task] = step + 1;
    });
  }
  for (const int value : values) EXPECT_EQ(value, step);
}

// A thread never runs two tasks at a time, so per-thread scratch is safe.
TEST_P(ThreadPoolSizeTest, ScratchOfAThreadIsItsOwn) {
  const auto pool = MakePool(GetParam());
  std::vector<int> scratch(static_cast<size_t>(GetParam()) * 16, 0);
  pool->ParallelFor(2000, [&](size_t, int thread) { ++scratch[thread * 16]; });
  int sum = 0;
  for (const int n : scratch) sum += n;
  EXPECT_EQ(sum, 2000);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolSizeTest,
                         testing::Values(1, 2, 3, 8, 33));

TEST(ThreadPoolTest, WorkersThatSleepWakeUp) {
  const auto pool = MakePool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    std::atomic<int> n_runs{0};
    pool->ParallelFor(6, [&](size_t, int) { n_runs.fetch_add(1); });
    EXPECT_EQ(n_runs, 6);
  }
}

// The caller sleeps while a worker finishes alone, and comes back.
TEST(ThreadPoolTest, CallerWaitsForALongTask) {
  const auto pool = MakePool(2);
  std::atomic<int> n_finished{0};
  std::atomic<int> n_started{0};
  pool->ParallelFor(2, [&](size_t, int thread) {
    n_started.fetch_add(1);
    // Both threads take a task: neither returns before the other has begun.
    while (n_started.load() < 2) std::this_thread::yield();
    if (thread == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    n_finished.fetch_add(1);
  });
  EXPECT_EQ(n_finished, 2);
}

// With a static split the slow task would hold up those behind it.
TEST(ThreadPoolTest, TasksGoToWhoeverIsFree) {
  const auto pool = MakePool(2);
  std::atomic<int> n_others{0};
  pool->ParallelFor(100, [&](size_t task, int) {
    if (task == 0) {
      while (n_others.load() < 99) std::this_thread::yield();
    } else {
      n_others.fetch_add(1);
    }
  });
  EXPECT_EQ(n_others, 99);
}

TEST(ThreadPoolTest, DestroyedWhileAsleepOrSpinning) {
  for (int round = 0; round < 20; ++round) {
    const auto pool = MakePool(4);
    if (round % 2 == 0) pool->ParallelFor(4, [](size_t, int) {});
    if (round % 4 == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
}

TEST(ThreadPoolTest, JobsDoNotAllocate) {
  const auto pool = MakePool(4);
  std::atomic<size_t> sum{0};
  const size_t before = g_n_allocations.load();
  for (int round = 0; round < 100; ++round) {
    pool->ParallelFor(64, [&](size_t task, int) { sum.fetch_add(task); });
  }
  EXPECT_EQ(g_n_allocations.load(), before);
  EXPECT_EQ(sum.load(), 100u * 63 * 64 / 2);
}

TEST(DefaultThreadsTest, IsAtLeastOneAndNotMoreThanTheMachine) {
  EXPECT_GE(DefaultThreads(), 1);
  EXPECT_LE(DefaultThreads(),
            static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace belay
