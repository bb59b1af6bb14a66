// SPDX-License-Identifier: Apache-2.0
// Queueing and the rules of captures that are under way.
#include <algorithm>
#include <string_view>
#include <utility>

#include "cannsim/runtime/count/clock.h"
#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace cannsim {
namespace {

// Operators that write a part of a tensor in place, as caches are written.
bool IsCacheWrite(std::string_view name) {
  constexpr std::string_view kParts[] = {"Scatter", "IndexCopy", "IndexPut",
                                         "InplaceCopy", "InplaceIndexFill"};
  return std::any_of(std::begin(kParts), std::end(kParts),
                     [name](std::string_view part) {
                       return name.find(part) != std::string_view::npos;
                     });
}

}  // namespace

// Quirks of work that is queued.
void Process::ArmFirst(Task* task, int id) {
  Device& one = device(id);
  if (task->kind != TaskKind::kOperator || one.has_run.exchange(true) ||
      one.waited || !faults_->Has(Quirk::kFirstRun)) {
    return;
  }
  faults_->Tell(Quirk::kFirstRun,
                fmt::format("{} is the first operator on device {}, and the "
                            "host did not wait after aclrtSetDevice: it fails",
                            task->name, id));
  task->run = [](const TaskRun&) {
    return Fail(ACL_ERROR_RT_TS_ERROR, "the device was not ready");
  };
}

int Process::Launch(const std::shared_ptr<Stream>& stream, Task task) {
  Add(Count().launches);
  task.queued_ns = HostNow();
  if (const int code = faults_->CheckLost(stream->device()); code != 0) {
    return code;
  }
  // Almost always there is neither a capture nor an update.
  if (n_captures_.load(std::memory_order_relaxed) > 0) {
    if (const auto capture = stream->capture()) {
      Races::Forget();
      capture->Append(stream.get(), std::move(task));
      return ACL_SUCCESS;
    }
  }
  if (const auto collector = stream->collector()) {
    collector->push_back(std::move(task));
    return ACL_SUCCESS;
  }
  if (races_ != nullptr) races_->Queued(stream->id(), task.name);
  ArmFirst(&task, stream->device());
  if (faults_->has_rules()) {
    faults_->Arm(&task, stream->device(), stream->id());
  }
  if (faults_->Has(Quirk::kCacheOrder)) return LaunchLate(stream, task);
  stream->Enqueue(std::move(task));
  return ACL_SUCCESS;
}

// A write into a cache is held back until the operator behind it has been
// queued; anything else that the program does to the stream lets it go.
int Process::LaunchLate(const std::shared_ptr<Stream>& stream, Task& task) {
  if (task.kind == TaskKind::kOperator && IsCacheWrite(task.name)) {
    faults_->Tell(Quirk::kCacheOrder,
                  fmt::format("{} on stream {} runs after the operator that "
                              "was queued behind it",
                              task.name, stream->id()));
    stream->HoldBack(std::move(task));
    return ACL_SUCCESS;
  }
  if (task.kind != TaskKind::kOperator) stream->LetGo();
  stream->Enqueue(std::move(task));
  stream->LetGo();
  return ACL_SUCCESS;
}

int Process::CheckUnsafe() {
  if (n_captures_.load() == 0) return ACL_SUCCESS;
  const Capture::Mode mine = ThisThread().capture_mode;
  if (mine == Capture::Mode::kRelaxed) return ACL_SUCCESS;
  const std::lock_guard lock(capture_mutex_);
  for (const auto& weak : captures_) {
    const auto capture = weak.lock();
    if (capture == nullptr || capture->mode() == Capture::Mode::kRelaxed) {
      continue;
    }
    const bool here = capture->thread() == std::this_thread::get_id();
    const bool everywhere = mine == Capture::Mode::kGlobal &&
                            capture->mode() == Capture::Mode::kGlobal;
    if (here || everywhere) {
      capture->Invalidate();
      return Fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                  "not allowed while stream {} is being captured",
                  capture->origin()->id());
    }
  }
  return ACL_SUCCESS;
}

int Process::CheckNoCapture(int device) {
  if (n_captures_.load() == 0) return ACL_SUCCESS;
  const std::lock_guard lock(capture_mutex_);
  for (const auto& weak : captures_) {
    const auto capture = weak.lock();
    if (capture != nullptr && capture->origin()->device() == device) {
      capture->Invalidate();
      return Fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                  "stream {} of device {} is being captured",
                  capture->origin()->id(), device);
    }
  }
  return ACL_SUCCESS;
}

void Process::CaptureStarted(const std::shared_ptr<Capture>& capture) {
  const std::lock_guard lock(capture_mutex_);
  captures_.push_back(capture);
  ++n_captures_;
}

void Process::CaptureEnded(const std::shared_ptr<Capture>& capture) {
  const std::lock_guard lock(capture_mutex_);
  std::erase_if(captures_, [&](const std::weak_ptr<Capture>& weak) {
    return weak.expired() || weak.lock() == capture;
  });
  --n_captures_;
}

}  // namespace cannsim
