// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/count/clock.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace cannsim {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<double> g_latest{0};

double& Mine() {
  thread_local double now = g_latest.load();
  return now;
}

// SplitMix64's mixing: equal inputs, equal outputs, no pattern to see.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// In [-1, 1).
double Draw(uint64_t seed, uint64_t n) {
  const uint64_t bits = Mix(Mix(seed) ^ n) >> 11;
  return static_cast<double>(bits) * 0x1p-52 - 1;
}

double RealNs(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

bool HasCost(TaskKind kind) {
  return kind == TaskKind::kOperator || kind == TaskKind::kCopy ||
         kind == TaskKind::kMemset;
}

}  // namespace

double HostNow() { return Mine(); }

void HostReach(double ns) {
  double& now = Mine();
  now = std::max(now, ns);
  double latest = g_latest.load();
  while (latest < ns && !g_latest.compare_exchange_weak(latest, ns)) {
  }
}

double CostNs(const Task& task, const Profile& profile, uint64_t draw) {
  const TaskCost& cost = task.cost;
  if (cost.over_link) {
    const double jitter =
        profile.copy_jitter_us * Draw(Process::Get().settings().seed, draw);
    return 1e3 * (profile.copy_latency_us + jitter) +
           1e9 * cost.bytes / profile.host_link_bytes_per_s + cost.extra_ns;
  }
  const double by_bytes = cost.bytes / profile.memory_bytes_per_s;
  const double by_flops =
      profile.fp16_flops > 0 ? cost.flops / profile.fp16_flops : 0;
  return 1e3 * profile.launch_us + 1e9 * std::max(by_bytes, by_flops) +
         cost.extra_ns;
}

int RunTimed(Task& task, const TaskRun& run) {
  const Process& process = Process::Get();
  const auto begin = Clock::now();
  if (task.kind == TaskKind::kOperator) Add(Count().operators);
  if (task.kind == TaskKind::kGraph) Add(Count().graph_replays);
  const bool before = SetInTask(true);
  const int code = task.run(run);
  SetInTask(before);
  double ns = 0;
  if (HasCost(task.kind)) {
    ns = CostNs(task, process.profile(), (*run.draws)++) * task.slow;
  } else if (task.kind == TaskKind::kCallback) {
    ns = RealNs(begin);
  } else {
    return code;  // marks, waits and graphs set the clock themselves
  }
  *run.now_ns += ns;
  NoteTime(task.name, ns);
  if (process.settings().pace && !run.abandoned.load()) {
    std::this_thread::sleep_until(
        begin + std::chrono::nanoseconds(static_cast<int64_t>(ns)));
  }
  return code;
}

}  // namespace cannsim
