// SPDX-License-Identifier: Apache-2.0
// One piece of queued work.
#ifndef BELAY_CANNSIM_RUNTIME_QUEUE_TASK_H_
#define BELAY_CANNSIM_RUNTIME_QUEUE_TASK_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace cannsim {

enum class TaskKind {
  kOperator,
  kCopy,
  kMemset,
  kCallback,
  kRecord,
  kWait,
  kReset,
  kGraph,
  kOther,
};

// What a running task may look at.
struct TaskRun {
  // Set when the stream is destroyed by force: who waits gives up.
  const std::atomic<bool>& abandoned;
  double* now_ns;   // the stream's clock (runtime/count/clock.h)
  uint64_t* draws;  // numbers the jitter of its copies
};

// What the clock needs to know of a task.
struct TaskCost {
  double bytes = 0;  // that it moves
  double flops = 0;
  bool over_link = false;  // between host and device
  double extra_ns = 0;     // of a compilation, for instance
};

struct Task {
  TaskKind kind = TaskKind::kOther;
  const char* name = "";  // the call or the operator; a literal
  // Runs in the stream's thread. An error code of acl after Fail, or 0.
  std::function<int(const TaskRun&)> run;
  TaskCost cost = {};
  double slow = 1;       // times as long (fault scripts)
  double queued_ns = 0;  // when the program queued it
};

// A task that failed, for the exception callback.
struct TaskFailure {
  int code = 0;
  int device = 0;
  unsigned stream = 0;
  unsigned task = 0;  // number in its stream, from 1
  unsigned thread = 0;
  const char* name = "";
  std::string text;
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_QUEUE_TASK_H_
