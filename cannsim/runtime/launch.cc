// SPDX-License-Identifier: Apache-2.0
// Queueing and the rules of captures that are under way.
#include <algorithm>
#include <utility>

#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace cannsim {

int Process::Launch(const std::shared_ptr<Stream>& stream, Task task) {
  // Almost always there is neither a capture nor an update.
  if (n_captures_.load(std::memory_order_relaxed) > 0) {
    if (const auto capture = stream->capture()) {
      capture->Append(stream.get(), std::move(task));
      return ACL_SUCCESS;
    }
  }
  if (const auto collector = stream->collector()) {
    collector->push_back(std::move(task));
    return ACL_SUCCESS;
  }
  stream->Enqueue(std::move(task));
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
