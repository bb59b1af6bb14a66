// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/queue/stream.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "acl/acl_rt.h"
#include "cannsim/runtime/count/clock.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/log/codes.h"
#include "cannsim/runtime/log/log.h"
#include "cannsim/runtime/process.h"

namespace cannsim {
namespace {

// Where a real machine would have it: in the log of the device, and in the
// host's.
void LogFailedTask(const TaskFailure& failure) {
  const std::string task_code = TaskCode(failure.code);
  const std::string ret =
      task_code.empty() ? "" : fmt::format(", retCode={}", task_code);
  if (failure.code == ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR) {
    LogDevice(failure.device, "DRV", "MemoryEvent",
              fmt::format("device_id={}, multi ecc err", failure.device));
  }
  LogDevice(failure.device, "TS", "TaskReport",
            fmt::format("device_id={}, stream_id={}, task_id={}, "
                        "errType=0x1{}, desc=[{}]",
                        failure.device, failure.stream, failure.task, ret,
                        CodeText(failure.code)));
  const std::string inner = InnerCode(failure.code);
  Log(LogLevel::kError, "RUNTIME", "TaskFailed",
      fmt::format("device_id={}, stream_id={}, task_id={}, OpName:[{}]{}, "
                  "ErrCode={}, desc=[{}]{}{}",
                  failure.device, failure.stream, failure.task, failure.name,
                  ret, failure.code, CodeText(failure.code),
                  inner.empty() ? "" : ", InnerCode=", inner));
}

// Messages of HCCL keep their place at the beginning of a line, where people
// and `belay logs` look for the code.
std::string TextOf(const Task& task, unsigned stream, unsigned number) {
  const std::string message = TakeMessage();
  return fmt::format("{} (stream {}, task {}):{}{}", task.name, stream, number,
                     message.starts_with("EI") ? "\n" : " ", message);
}

}  // namespace

Stream::Stream(Options options)
    : options_(std::move(options)), draws_(uint64_t{options_.id} << 40) {}

Stream::~Stream() { Finish(/*abandon=*/true); }

void Stream::Enqueue(Task task) {
  const std::lock_guard lock(mutex_);
  if (closing_) return;
  queue_.push_back(std::move(task));
  ++n_queued_;
  // Work on a persistent stream waits for a model that is bound to it.
  if ((options_.flags & ACL_STREAM_PERSISTENT) != 0) return;
  if (!thread_.joinable()) {
    thread_ = std::thread([this] { Run(); });
  } else if (sleeping_) {
    // A busy thread finds the task by itself: no system call.
    sleeping_ = false;
    work_.notify_one();
  }
}

void Stream::HoldBack(Task task) {
  const std::lock_guard lock(mutex_);
  held_.push_back(std::move(task));
}

void Stream::LetGo() {
  std::deque<Task> held;
  {
    const std::lock_guard lock(mutex_);
    held.swap(held_);
  }
  for (Task& task : held) Enqueue(std::move(task));
}

bool Stream::SyncReturnsAtOnce() const {
  constexpr unsigned kMask = ACL_STREAM_PERSISTENT |
                             ACL_STREAM_DEVICE_USE_ONLY |
                             ACL_STREAM_CPU_SCHEDULE;
  return (options_.flags & kMask) != 0;
}

int Stream::Synchronize(int timeout_ms, int timeout_code) {
  if (SyncReturnsAtOnce()) return ACL_SUCCESS;
  LetGo();
  Races* races = Process::Get().races();
  const auto order = races == nullptr ? nullptr : races->At(id());
  std::unique_lock lock(mutex_);
  const uint64_t target = n_queued_;
  const auto reached = [&] { return n_done_ >= target; };
  ++n_waiting_;
  bool in_time = true;
  if (timeout_ms < 0) {
    done_.wait(lock, reached);
  } else {
    in_time =
        done_.wait_for(lock, std::chrono::milliseconds(timeout_ms), reached);
  }
  --n_waiting_;
  if (!in_time) {
    return Fail(timeout_code,
                "stream {} is not done after {} ms; {} of {} tasks are", id(),
                timeout_ms, n_done_, target);
  }
  HostReach(now_ns());
  if (order != nullptr) races->HostWaits(*order);
  if (const int stopped = options_.failure->stopped.load(); stopped != 0) {
    const std::lock_guard text_lock(options_.failure->mutex);
    return Fail(stopped, "the context stopped at a failed task: {}",
                options_.failure->text);
  }
  const int error = std::exchange(error_, 0);
  if (error == 0) return ACL_SUCCESS;
  return Fail(error, "a task failed before: {}",
              std::exchange(error_text_, std::string()));
}

bool Stream::IsIdle() const {
  const std::lock_guard lock(mutex_);
  return n_done_ >= n_queued_;
}

void Stream::Finish(bool abandon) {
  if (!abandon) LetGo();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    if (abandon) abandoned_ = true;
    sleeping_ = false;
    work_.notify_all();
  }
  if (!thread_.joinable()) return;
  if (IsOwnThread()) {
    thread_.detach();  // the last reference went inside a task
  } else {
    thread_.join();
  }
}

bool Stream::IsOwnThread() const {
  const std::lock_guard lock(mutex_);  // Enqueue may be starting it
  return thread_.get_id() == std::this_thread::get_id();
}

void Stream::Run() {
  std::unique_lock lock(mutex_);
  unsigned number = 0;
  while (true) {
    while (queue_.empty() && !closing_) {
      sleeping_ = true;
      work_.wait(lock);
    }
    if (queue_.empty() || abandoned_) break;
    Task task = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    RunOne(task, ++number);
    task.run = nullptr;  // what it holds goes before it counts as done
    lock.lock();
    ++n_done_;
    if (n_waiting_ > 0) done_.notify_all();
  }
  // Nobody waits for what will never run.
  queue_.clear();
  n_done_ = n_queued_;
  done_.notify_all();
}

void Stream::RunOne(Task& task, unsigned number) {
  FailureState& shared = *options_.failure;
  if (shared.stopped.load() != 0) return;
  double now = std::max(now_ns_.load(), task.queued_ns);
  const int code = RunTimed(
      task, TaskRun{.abandoned = abandoned_, .now_ns = &now, .draws = &draws_});
  now_ns_ = now;
  if (code == 0) return;
  const TaskFailure failure{
      .code = code,
      .device = options_.device,
      .stream = options_.id,
      .task = number,
      .thread = static_cast<unsigned>(syscall(SYS_gettid)),
      .name = task.name,
      .text = TextOf(task, options_.id, number)};
  LogFailedTask(failure);
  {
    const std::lock_guard lock(mutex_);
    if (error_ == 0) {
      error_ = code;
      error_text_ = failure.text;
    }
  }
  if (shared.stop_on_failure.load()) {
    const std::lock_guard lock(shared.mutex);
    shared.text = failure.text;
    shared.stopped = code;
  }
  if (shared.report) shared.report(failure);
}

void Stream::SetCapture(std::shared_ptr<Capture> capture) {
  const std::lock_guard lock(mutex_);
  capture_ = std::move(capture);
}

std::shared_ptr<Capture> Stream::capture() const {
  const std::lock_guard lock(mutex_);
  return capture_;
}

void Stream::SetCollector(std::shared_ptr<std::vector<Task>> collector) {
  const std::lock_guard lock(mutex_);
  collector_ = std::move(collector);
}

std::shared_ptr<std::vector<Task>> Stream::collector() const {
  const std::lock_guard lock(mutex_);
  return collector_;
}

void Stream::SetUpdated(std::shared_ptr<TaskGroup> group) {
  const std::lock_guard lock(mutex_);
  updated_ = std::move(group);
}

std::shared_ptr<TaskGroup> Stream::updated() const {
  const std::lock_guard lock(mutex_);
  return updated_;
}

}  // namespace cannsim
