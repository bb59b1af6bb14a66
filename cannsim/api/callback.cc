// SPDX-License-Identifier: Apache-2.0
// Host callbacks: run by the stream's thread, or handed to a thread of the
// program that asked for them. And the exception callback.
#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "acl/acl_rt.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace {

using cannsim::Fail;
using cannsim::PeekLastError;
using cannsim::Process;
using cannsim::TaskKind;
using cannsim::TaskRun;

constexpr size_t kMaxThreads = 1024;

// One callback on its way to a thread of the program.
struct Delivery {
  aclrtCallback function = nullptr;
  void* data = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
};

// What waits for one thread.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Delivery>> waiting;
};

std::mutex g_mutex;

std::map<uint64_t, std::shared_ptr<Mailbox>>& Mailboxes() {
  static auto* const boxes = new std::map<uint64_t, std::shared_ptr<Mailbox>>;
  return *boxes;
}

std::shared_ptr<Mailbox> FindMailbox(uint64_t thread) {
  const std::lock_guard lock(g_mutex);
  const auto it = Mailboxes().find(thread);
  return it == Mailboxes().end() ? nullptr : it->second;
}

int Deliver(const std::shared_ptr<Mailbox>& box,
            const std::shared_ptr<Delivery>& delivery, bool block,
            const TaskRun& run) {
  {
    const std::lock_guard lock(box->mutex);
    box->waiting.push_back(delivery);
    box->changed.notify_one();
  }
  if (!block) return ACL_SUCCESS;
  std::unique_lock lock(delivery->mutex);
  while (!delivery->done && !run.abandoned.load()) {
    delivery->changed.wait_for(lock, std::chrono::milliseconds(20));
  }
  return ACL_SUCCESS;
}

}  // namespace

extern "C" {

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void* args) {
  CANNSIM_CALL(aclrtLaunchHostFunc);
  if (fn == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "the function is null");
  }
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  if (on->subscribed_thread.load() != 0) {
    return Fail(ACL_ERROR_RT_STREAM_SUBSCRIBE,
                "stream {} hands its callbacks to a subscribed thread; the two "
                "ways must not be mixed",
                on->id());
  }
  return Process::Get().Launch(on, {.kind = TaskKind::kCallback,
                                    .name = "aclrtLaunchHostFunc",
                                    .run = [fn, args](const TaskRun&) {
                                      fn(args);
                                      return ACL_SUCCESS;
                                    }});
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream) {
  CANNSIM_CALL(aclrtSubscribeReport);
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  if (threadId == 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "the thread is 0");
  }
  if (on->subscribed_thread.load() != 0) {
    return Fail(ACL_ERROR_RT_STREAM_SUBSCRIBE, "stream {} is subscribed",
                on->id());
  }
  const std::lock_guard lock(g_mutex);
  auto& box = Mailboxes()[threadId];
  if (box == nullptr) {
    if (Mailboxes().size() > kMaxThreads) {
      Mailboxes().erase(threadId);
      return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE, "more than {} threads",
                  kMaxThreads);
    }
    box = std::make_shared<Mailbox>();
  }
  on->subscribed_thread = threadId;
  return ACL_SUCCESS;
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream) {
  CANNSIM_CALL(aclrtUnSubscribeReport);
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  if (threadId == 0 || on->subscribed_thread.load() != threadId) {
    return Fail(ACL_ERROR_RT_STREAM_SUBSCRIBE,
                "stream {} is not subscribed by thread {}", on->id(), threadId);
  }
  on->subscribed_thread = 0;
  return ACL_SUCCESS;
}

aclError aclrtLaunchCallback(aclrtCallback fn, void* userData,
                             aclrtCallbackBlockType blockType,
                             aclrtStream stream) {
  CANNSIM_CALL(aclrtLaunchCallback);
  if (fn == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "the function is null");
  }
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  const auto box = FindMailbox(on->subscribed_thread.load());
  if (box == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_NO_CB_REG,
                "no thread has subscribed to stream {}", on->id());
  }
  const bool block = blockType == ACL_CALLBACK_BLOCK;
  return Process::Get().Launch(
      on, {.kind = TaskKind::kCallback,
           .name = "aclrtLaunchCallback",
           .run = [box, fn, userData, block](const TaskRun& run) {
             auto delivery = std::make_shared<Delivery>();
             delivery->function = fn;
             delivery->data = userData;
             return Deliver(box, delivery, block, run);
           }});
}

aclError aclrtProcessReport(int32_t timeout) {
  CANNSIM_CALL(aclrtProcessReport);
  if (timeout < -1 || timeout == 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "timeout {} is not -1 or positive",
                timeout);
  }
  const auto box = FindMailbox(static_cast<uint64_t>(pthread_self()));
  if (box == nullptr) {
    return Fail(ACL_ERROR_RT_THREAD_SUBSCRIBE,
                "this thread has subscribed to no stream");
  }
  std::unique_lock lock(box->mutex);
  const auto ready = [&] { return !box->waiting.empty(); };
  if (timeout < 0) {
    box->changed.wait(lock, ready);
  } else if (!box->changed.wait_for(lock, std::chrono::milliseconds(timeout),
                                    ready)) {
    return Fail(ACL_ERROR_RT_REPORT_TIMEOUT, "no callback came within {} ms",
                timeout);
  }
  const auto delivery = std::move(box->waiting.front());
  box->waiting.pop_front();
  lock.unlock();
  delivery->function(delivery->data);
  const std::lock_guard done_lock(delivery->mutex);
  delivery->done = true;
  delivery->changed.notify_all();
  return ACL_SUCCESS;
}

aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback) {
  CANNSIM_CALL(aclrtSetExceptionInfoCallback);
  Process::Get().exception_callback = callback;
  return ACL_SUCCESS;
}

uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? 0xFFFFFFFFU : info->failure.task;
}

uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? 0xFFFFFFFFU : info->failure.stream;
}

uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? 0xFFFFFFFFU : info->failure.thread;
}

uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? 0xFFFFFFFFU
                         : static_cast<uint32_t>(info->failure.device);
}

uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info) {
  return info == nullptr ? 0xFFFFFFFFU
                         : static_cast<uint32_t>(info->failure.code);
}

}  // extern "C"
