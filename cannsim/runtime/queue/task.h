// SPDX-License-Identifier: Apache-2.0
// One piece of queued work.
#ifndef BELAY_CANNSIM_RUNTIME_QUEUE_TASK_H_
#define BELAY_CANNSIM_RUNTIME_QUEUE_TASK_H_

#include <atomic>
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
};

struct Task {
  TaskKind kind = TaskKind::kOther;
  const char* name = "";  // the call or the operator; a literal
  // Runs in the stream's thread. An error code of acl after Fail, or 0.
  std::function<int(const TaskRun&)> run;
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
