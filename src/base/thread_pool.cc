// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/cpu_count.h"
#include "base/error_ids.h"
#include "hwy/cache_control.h"

namespace belay {
namespace {

constexpr int kMaxThreads = 1024;

// How often a thread looks for work (or for the end of it) before it sleeps:
// some 50 us, longer than the gaps between the operators of a decode step and
// far shorter than a user's pause.
constexpr int kSpins = 2000;
constexpr int kSpinsBetweenYields = 64;  // lets others have the core

// One job at a time, described by plain fields that only the caller writes.
// `remaining_` is the hand-out counter: whoever takes it from r to r - 1 owns
// task n_tasks - r, and the fields cannot change before that task is counted
// in `n_done_`. A worker that wakes late finds 0, or tasks of the next job,
// which are as good; so the caller never waits for workers without a task.
class Team final : public ThreadPool {
 public:
  Team() = default;
  ~Team() override { Stop(); }
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  Status Start(int n_threads, std::span<const int> cpus);
  int n_threads() const override { return n_threads_; }

 protected:
  void Run(size_t n_tasks, const void* fn, TaskFn call) override;

 private:
  void Stop();
  void Work(int thread);
  void RunTasks(int thread);
  template <typename Condition>
  bool SpinUntil(const Condition& condition) const;

  int n_threads_ = 1;
  int n_spins_ = 0;
  std::vector<std::thread> workers_;

  // The job.
  const void* fn_ = nullptr;
  TaskFn call_ = nullptr;
  size_t n_tasks_ = 0;

  // On lines of their own: all threads write to these.
  alignas(64) std::atomic<size_t> remaining_{0};  // tasks not handed out yet
  alignas(64) std::atomic<size_t> n_done_{0};     // tasks finished

  // Sleeping. Both sides write their own flag and then read the other's, all
  // sequentially consistent: at least one of them sees the other.
  alignas(64) std::mutex mutex_;
  std::condition_variable work_;  // for workers
  std::condition_variable done_;  // for the caller
  std::atomic<int> n_asleep_{0};
  std::atomic<bool> caller_asleep_{false};
  std::atomic<bool> stop_{false};
};

// A wish: whoever may not bind threads runs them as the system likes.
void Bind(std::thread& thread, int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < 0 || cpu >= CPU_SETSIZE) return;
  CPU_SET(cpu, &set);
  (void)pthread_setaffinity_np(thread.native_handle(), sizeof(set), &set);
}

Status Team::Start(int n_threads, std::span<const int> cpus) {
  const int n_cores = DefaultThreads();
  // With more threads than cores a spinning thread keeps a working one waiting.
  n_spins_ = n_threads <= n_cores ? kSpins : 0;
  n_threads_ = n_threads;
  workers_.reserve(static_cast<size_t>(n_threads - 1));
  for (int thread = 1; thread < n_threads; ++thread) {
    try {
      workers_.emplace_back([this, thread] { Work(thread); });
      const auto i = static_cast<size_t>(thread);
      if (i < cpus.size()) Bind(workers_.back(), cpus[i]);
    } catch (const std::system_error& error) {
      Stop();
      return MakeError(kArgThreads,
                       {.where = "threads",
                        .what = error.code().message(),
                        .expected = "at most " + std::to_string(thread),
                        .got = std::to_string(n_threads)});
    }
  }
  return absl::OkStatus();
}

void Team::Stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_.store(true);
  }
  work_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
}

template <typename Condition>
bool Team::SpinUntil(const Condition& condition) const {
  for (int spin = 0; spin < n_spins_; ++spin) {
    if (condition()) return true;
    hwy::Pause();
    if (spin % kSpinsBetweenYields == kSpinsBetweenYields - 1) {
      std::this_thread::yield();
    }
  }
  return condition();
}

void Team::RunTasks(int thread) {
  size_t remaining = remaining_.load(std::memory_order_acquire);
  while (remaining > 0) {
    if (!remaining_.compare_exchange_weak(remaining, remaining - 1,
                                          std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      continue;
    }
    // Read before this task is counted: afterwards the job may be over.
    const size_t n_tasks = n_tasks_;
    call_(fn_, n_tasks - remaining, thread);
    const bool last = n_done_.fetch_add(1) + 1 == n_tasks;
    if (last && caller_asleep_.load()) {
      { const std::lock_guard<std::mutex> lock(mutex_); }
      done_.notify_one();
    }
    remaining = remaining_.load(std::memory_order_acquire);
  }
}

void Team::Work(int thread) {
  const auto has_work = [this] {
    return remaining_.load() > 0 || stop_.load();
  };
  while (true) {
    if (!SpinUntil(has_work)) {
      std::unique_lock<std::mutex> lock(mutex_);
      n_asleep_.fetch_add(1);
      work_.wait(lock, has_work);
      n_asleep_.fetch_sub(1);
    }
    if (stop_.load()) return;
    RunTasks(thread);
  }
}

void Team::Run(size_t n_tasks, const void* fn, TaskFn call) {
  if (workers_.empty() || n_tasks <= 1) {
    for (size_t task = 0; task < n_tasks; ++task) call(fn, task, 0);
    return;
  }
  fn_ = fn;
  call_ = call;
  n_tasks_ = n_tasks;
  n_done_.store(0);
  remaining_.store(n_tasks);  // publishes the job
  if (n_asleep_.load() > 0) {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    work_.notify_all();
  }
  RunTasks(0);
  const auto all_done = [this, n_tasks] { return n_done_.load() == n_tasks; };
  if (SpinUntil(all_done)) return;
  std::unique_lock<std::mutex> lock(mutex_);
  caller_asleep_.store(true);
  done_.wait(lock, all_done);
  caller_asleep_.store(false);
}

}  // namespace

StatusOr<std::unique_ptr<ThreadPool>> ThreadPool::Create(
    int n_threads, std::span<const int> cpus) {
  if (n_threads < 1 || n_threads > kMaxThreads) {
    return MakeError(kArgThreads, {.where = "threads",
                                   .what = "",
                                   .expected = "1 to 1024",
                                   .got = std::to_string(n_threads)});
  }
  auto team = std::make_unique<Team>();
  BELAY_RETURN_IF_ERROR(team->Start(n_threads, cpus));
  return team;
}

int DefaultThreads() {
  const std::vector<int> cpus = AllowedCpus();
  if (cpus.empty()) {
    return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }
  return std::min(CountUsableCores(cpus), kMaxThreads);
}

}  // namespace belay
