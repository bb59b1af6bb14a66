// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/process.h"

#include <string>
#include <utility>

#include "cannsim/runtime/error.h"
#include "cannsim/runtime/memory/touch.h"

namespace cannsim {

ThreadState& ThisThread() {
  thread_local ThreadState state;
  return state;
}

Process& Process::Get() {
  static Process* const process = new Process;  // see the header
  return *process;
}

Process::Process()
    : settings_(SettingsFromEnvironment(
          ToolkitRoot(reinterpret_cast<const void*>(&aclrtMalloc)))),
      memories_(settings_.devices.size()) {
  for (const int physical_id : settings_.devices) {
    devices_.push_back(std::make_unique<Device>());
    devices_.back()->physical_id = physical_id;
  }
  for (auto& memory : memories_) memory = nullptr;
}

// Why the simulator cannot run at all.
int Process::CheckUsable() {
  if (!settings_.error.empty()) {
    return Fail(ACL_ERROR_INTERNAL_ERROR, "SIM-001 {}", settings_.error);
  }
  if (settings_.bad_visible_list) {
    return Fail(ACL_ERROR_RT_NO_DEVICE,
                "ASCEND_RT_VISIBLE_DEVICES is not an ascending list");
  }
  return ACL_SUCCESS;
}

int Process::Init() {
  const std::lock_guard lock(init_mutex_);
  if (const int code = CheckUsable(); code != 0) return code;
  ++n_inits_;
  if (n_inits_ == 1) return ACL_SUCCESS;
  return Fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called before");
}

int Process::Finalize() {
  const std::lock_guard lock(init_mutex_);
  if (n_inits_ == 0) {
    return Fail(ACL_ERROR_REPEAT_FINALIZE, "aclInit was not called");
  }
  n_inits_ = 0;
  return ACL_SUCCESS;
}

int Process::FinalizeReference(uint64_t* n_left) {
  const std::lock_guard lock(init_mutex_);
  if (n_inits_ == 0) {
    return Fail(ACL_ERROR_REPEAT_FINALIZE, "aclInit was not called");
  }
  --n_inits_;
  if (n_left != nullptr) *n_left = n_inits_;
  return ACL_SUCCESS;
}

int Process::CheckDevice(int id) {
  if (const int code = CheckUsable(); code != 0) return code;
  if (n_devices() == 0) {
    return Fail(ACL_ERROR_RT_NO_DEVICE, "no device is visible");
  }
  if (id < 0 || id >= n_devices()) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID,
                "device {} does not exist; there are 0 to {}", id,
                n_devices() - 1);
  }
  return ACL_SUCCESS;
}

DeviceMemory* Process::Memory(int id, std::string* error) {
  auto& memory = memories_[static_cast<size_t>(id)];
  if (DeviceMemory* known = memory.load()) return known;
  const std::lock_guard lock(memory_mutex_);
  if (memory.load() == nullptr) {
    auto made = DeviceMemory::Create(profile(), settings_.strict, error);
    if (made == nullptr) return nullptr;
    InstallTouchReporter();
    memory = made.release();  // lives as long as the process
  }
  return memory.load();
}

int Process::DeviceOf(const void* address) const {
  for (size_t id = 0; id < memories_.size(); ++id) {
    const DeviceMemory* memory = memories_[id].load();
    if (memory != nullptr && memory->Owns(address)) {
      return static_cast<int>(id);
    }
  }
  return -1;
}

DeviceMemory* Process::MemoryOf(const void* address) const {
  const int id = DeviceOf(address);
  return id < 0 ? nullptr : memories_[static_cast<size_t>(id)].load();
}

int Process::CreateContext(int id, bool primary,
                           std::shared_ptr<Context>* out) {
  std::string error;
  if (Memory(id, &error) == nullptr) {
    return Fail(ACL_ERROR_RT_DEV_SETUP_ERROR, "device {}: {}", id, error);
  }
  auto context = std::make_shared<Context>();
  context->device = id;
  context->primary = primary;
  context->failure->report = [this](const TaskFailure& f) { Report(f); };
  context->default_stream = MakeStream(context, 0);
  contexts.Add(context);
  *out = std::move(context);
  return ACL_SUCCESS;
}

int Process::SetDevice(int id) {
  if (const int code = CheckDevice(id); code != 0) return code;
  Device& one = device(id);
  const std::lock_guard lock(one.mutex);
  if (one.primary == nullptr) {
    const int code = CreateContext(id, /*primary=*/true, &one.primary);
    if (code != 0) return code;
  }
  ++one.n_uses;
  ThisThread().context = one.primary;
  return ACL_SUCCESS;
}

int Process::ResetDevice(int id, bool force) {
  if (const int code = CheckDevice(id); code != 0) return code;
  Device& one = device(id);
  {
    const std::lock_guard lock(one.mutex);
    if (one.n_uses == 0) {
      return Fail(ACL_ERROR_RT_CONTEXT_NULL,
                  "device {} is not set, or was reset before", id);
    }
    one.n_uses = force ? 0 : one.n_uses - 1;
    if (one.n_uses > 0) return ACL_SUCCESS;
    one.primary = nullptr;
    one.peers.clear();
  }
  // Without the lock: a callback that still runs may ask for the device.
  CloseDevice(id, force);
  return ACL_SUCCESS;
}

// All contexts, streams and buffers of the device end. The address space stays:
// a program's pointers into it keep their meaning for reports.
void Process::CloseDevice(int id, bool force) {
  for (const auto& context : contexts.All()) {
    if (context->device != id) continue;
    context->alive = false;
    contexts.Remove(context.get());
    for (const auto& stream : streams.All()) {
      if (stream->context() == context.get()) ForgetStream(stream, force);
    }
  }
  DeviceMemory* memory = memories_[static_cast<size_t>(id)].load();
  const std::string leaks = memory == nullptr ? "" : memory->FreeAll();
  if (settings_.strict && !leaks.empty()) {
    Complain(fmt::format("SIM-011 device {} is reset while buffers live:\n{}",
                         id, leaks));
  }
}

int Process::DestroyContext(const void* handle) {
  const auto context = contexts.Find(handle);
  if (context == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is no live context", handle);
  }
  if (context->primary) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "the default context ends with aclrtResetDevice only");
  }
  context->alive = false;
  contexts.Remove(handle);
  for (const auto& stream : streams.All()) {
    if (stream->context() == handle) ForgetStream(stream, false);
  }
  return ACL_SUCCESS;
}

std::shared_ptr<Context> Process::CurrentContext() {
  std::shared_ptr<Context>& context = ThisThread().context;
  if (context == nullptr) {
    Fail(ACL_ERROR_RT_CONTEXT_NULL,
         "this thread has no context: aclrtSetDevice was not called in it");
    return nullptr;
  }
  if (!context->alive) {
    Fail(ACL_ERROR_RT_CONTEXT_NULL,
         "the thread's context is gone: its device was reset or it was "
         "destroyed");
    return nullptr;
  }
  return context;
}

std::shared_ptr<Stream> Process::MakeStream(
    const std::shared_ptr<Context>& context, unsigned flags) {
  auto stream =
      std::make_shared<Stream>(Stream::Options{.device = context->device,
                                               .id = next_stream_.fetch_add(1),
                                               .flags = flags,
                                               .context = context.get(),
                                               .failure = context->failure});
  ++device(context->device).n_streams;
  streams.Add(stream);
  return stream;
}

int Process::CreateStream(unsigned flags, std::shared_ptr<Stream>* out) {
  const auto context = CurrentContext();
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  if (device(context->device).n_streams.load() >= profile().n_streams) {
    return Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE,
                "device {} has {} streams, and no more", context->device,
                profile().n_streams);
  }
  *out = MakeStream(context, flags);
  return ACL_SUCCESS;
}

void Process::ForgetStream(const std::shared_ptr<Stream>& stream, bool force) {
  if (streams.Remove(stream.get()) == nullptr) return;
  stream->Finish(/*abandon=*/force);
  --device(stream->device()).n_streams;
}

std::shared_ptr<Stream> Process::FindStream(aclrtStream stream) {
  const auto context = CurrentContext();
  if (context == nullptr) return nullptr;
  if (stream == nullptr) return context->default_stream;
  auto found = streams.Find(stream);
  if (found == nullptr) {
    Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is no live stream", stream);
    return nullptr;
  }
  if (found->context() != context.get()) {
    Fail(ACL_ERROR_RT_STREAM_CONTEXT,
         "stream {} belongs to another context than the thread's (device {})",
         found->id(), context->device);
    return nullptr;
  }
  return found;
}

std::shared_ptr<Event> Process::FindEvent(aclrtEvent event) {
  auto found = event == nullptr ? nullptr : events.Find(event);
  if (found == nullptr) {
    Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is no live event", event);
  }
  return found;
}

int Process::SynchronizeDevice(int id, int timeout_ms) {
  int first = ACL_SUCCESS;
  const auto all = streams.All();
  for (const auto& stream : all) {
    if (stream->device() == id && stream->IsOwnThread()) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID,
                  "called from a callback of stream {}, which would wait for "
                  "itself for ever",
                  stream->id());
    }
  }
  for (const auto& stream : all) {
    if (stream->device() != id) continue;
    const int code =
        stream->Synchronize(timeout_ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
    if (first == ACL_SUCCESS) first = code;
  }
  return first;
}

void Process::Report(const TaskFailure& failure) {
  const aclrtExceptionInfoCallback callback = exception_callback.load();
  if (callback == nullptr) return;
  aclrtExceptionInfo info{failure};
  callback(&info);
}

}  // namespace cannsim
