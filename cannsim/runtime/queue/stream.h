// SPDX-License-Identifier: Apache-2.0
// A stream: tasks in order, run by a thread of their own, so that streams
// really run at the same time and the caller never waits for work.
#ifndef BELAY_CANNSIM_RUNTIME_QUEUE_STREAM_H_
#define BELAY_CANNSIM_RUNTIME_QUEUE_STREAM_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cannsim/runtime/error.h"
#include "cannsim/runtime/queue/task.h"

namespace cannsim {

class Capture;
struct TaskGroup;

// What the streams of one context share about failed tasks.
struct FailureState {
  std::atomic<bool> stop_on_failure{false};
  std::atomic<int> stopped{0};  // the error that stopped the context
  std::mutex mutex;
  std::string text;  // of `stopped`
  std::function<void(const TaskFailure&)> report;
};

class Stream {
 public:
  struct Options {
    int device = 0;
    unsigned id = 0;
    unsigned flags = 0;  // ACL_STREAM_*
    const void* context = nullptr;
    std::shared_ptr<FailureState> failure;
  };

  explicit Stream(Options options);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  unsigned id() const { return options_.id; }
  int device() const { return options_.device; }
  const void* context() const { return options_.context; }
  const Call& made_by() const { return made_by_; }

  // Puts a task behind all others; starts the thread when it is the first.
  void Enqueue(Task task);

  // Keeps a task aside until LetGo puts it behind all others (a quirk).
  void HoldBack(Task task);
  void LetGo();

  // Waits until everything that was queued before the call is done; at most
  // `timeout_ms` (negative: for ever). Returns the first error of a task since
  // the last call, or `timeout_code`. Persistent streams and those of the
  // device's own scheduling return at once.
  int Synchronize(int timeout_ms, int timeout_code);

  bool IsIdle() const;

  // Its clock: when the last task that ran was done (runtime/count/clock.h).
  double now_ns() const { return now_ns_.load(); }

  // Ends the thread: after all tasks, or (abandon) after the running one.
  // Tasks queued later are dropped.
  void Finish(bool abandon);

  // While set, tasks are recorded into the capture, or collected for the
  // update of a task group, instead of run (Process::Launch).
  void SetCapture(std::shared_ptr<Capture> capture);
  std::shared_ptr<Capture> capture() const;
  void SetCollector(std::shared_ptr<std::vector<Task>> collector);
  std::shared_ptr<std::vector<Task>> collector() const;
  void SetUpdated(std::shared_ptr<TaskGroup> group);
  std::shared_ptr<TaskGroup> updated() const;

  // Whether the calling thread is this stream's.
  bool IsOwnThread() const;

  // Attributes that only have to be remembered.
  std::atomic<bool> failure_mode_set{false};
  std::atomic<unsigned> overflow_switch{0};
  std::atomic<unsigned> user_tag{0};
  std::atomic<unsigned> cache_op_info{0};
  std::atomic<int64_t> cube_limit{-1};
  std::atomic<int64_t> vector_limit{-1};
  std::atomic<uint64_t> subscribed_thread{0};

 private:
  void Run();
  void RunOne(Task& task, unsigned number);
  bool SyncReturnsAtOnce() const;

  const Options options_;
  const Call made_by_ = CurrentCall();
  mutable std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable done_;
  std::deque<Task> queue_;
  std::deque<Task> held_;
  std::thread thread_;
  uint64_t n_queued_ = 0;
  uint64_t n_done_ = 0;
  int n_waiting_ = 0;      // threads in Synchronize
  bool sleeping_ = false;  // the thread waits for work
  bool closing_ = false;
  std::atomic<bool> abandoned_{false};
  std::atomic<double> now_ns_{0};
  uint64_t draws_ = 0;  // of the stream's thread
  int error_ = 0;       // the first since the last Synchronize
  std::string error_text_;
  std::shared_ptr<Capture> capture_;
  std::shared_ptr<std::vector<Task>> collector_;
  std::shared_ptr<TaskGroup> updated_;
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_QUEUE_STREAM_H_
