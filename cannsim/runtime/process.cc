// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/process.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/count/report.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/log/log.h"
#include "cannsim/runtime/memory/touch.h"
#include "cannsim/runtime/strict/findings.h"

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
  ReadFaults();
  if (settings_.strict) races_ = std::make_unique<Races>();
  if (settings_.strict || !settings_.report.empty()) {
    std::atexit([] { Process::Get().AtExit(); });
  }
}

void Process::AtExit() {
  if (!settings_.report.empty() && !WriteReport(settings_.report)) {
    Complain("SIM-004 " + settings_.report);
  }
  const size_t n_pinned = host_memory.n_live();
  if (settings_.strict && n_pinned > 0) {
    Finding("SIM-012", nullptr,
            fmt::format("{} pieces of pinned host memory live at the end",
                        n_pinned));
  }
  if (!settings_.strict_exit || CountFindings() == 0) return;
  Complain(fmt::format("{} findings of the strict mode: exit code 1",
                       CountFindings()));
  std::fflush(nullptr);
  _exit(1);
}

void Process::MarkOrder(Record& record, unsigned stream) {
  if (races_ != nullptr) record.SetOrder(races_->At(stream));
}

void Process::HostKnows(const Record& record) {
  const auto order = races_ == nullptr ? nullptr : record.order();
  if (order != nullptr) races_->HostWaits(*order);
}

// Strict mode: what the program made on a device and did not destroy.
void Process::TellLeaks(int id) {
  std::string text;
  size_t n = 0;
  const auto add = [&](const char* what, const Call& call) {
    constexpr size_t kShown = 8;
    if (++n <= kShown) {
      text += fmt::format("\n  {} made by {}", what, Describe(call));
    }
  };
  for (const auto& context : contexts.All()) {
    if (context->device != id) continue;
    for (const auto& stream : streams.All()) {
      if (stream->context() == context.get() &&
          stream != context->default_stream) {
        add("a stream", stream->made_by());
      }
    }
  }
  for (const auto& event : events.All()) {
    if (event->device() == id) add("an event", event->made_by());
  }
  if (n > 0) {
    Finding(
        "SIM-012", CurrentCall().caller,
        fmt::format("device {} is reset while {} handles live{}", id, n, text));
  }
}

// A script with a mistake stops the process from starting, since a fault that
// is silently not there would look like a program that survives it.
void Process::ReadFaults() {
  std::vector<FaultRule> rules;
  uint32_t quirks = 0;
  std::string why;
  if (!ParseFaultScript(settings_.faults, &rules, &why)) {
    fault_error_ = "SIM-003 CANNSIM_FAULTS: " + why;
  } else if (!ParseQuirks(settings_.quirks, &quirks, &why)) {
    fault_error_ = "SIM-003 CANNSIM_QUIRKS: " + why;
  }
  if (!fault_error_.empty()) {
    Complain(fault_error_);
    rules.clear();
    quirks = 0;
  }
  faults_ = std::make_unique<Faults>(std::move(rules), quirks);
}

// Why the simulator cannot run at all.
int Process::CheckUsable() {
  if (!settings_.error.empty()) {
    return Fail(ACL_ERROR_INTERNAL_ERROR, "SIM-001 {}", settings_.error);
  }
  if (!fault_error_.empty()) {
    return Fail(ACL_ERROR_INTERNAL_ERROR, fault_error_);
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
  if (n_inits_ == 1) {
    LogRun("ASCENDCL", "aclInit",
           fmt::format("cannsim, profile {}", profile().name));
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_REPEAT_INITIALIZE, "aclInit was called before");
}

int Process::Finalize() {
  const std::lock_guard lock(init_mutex_);
  if (n_inits_ == 0) {
    return Fail(ACL_ERROR_REPEAT_FINALIZE, "aclInit was not called");
  }
  n_inits_ = 0;
  LogRun("ASCENDCL", "aclFinalize", "done");
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
  if (const int code = faults_->CheckLost(id); code != 0) return code;
  if (one.primary == nullptr) {
    const int code = CreateContext(id, /*primary=*/true, &one.primary);
    if (code != 0) return code;
    one.waited = false;
    one.has_run = false;
    LogRun("RUNTIME", "SetDevice",
           fmt::format("device_id={}, physical id {}", id, one.physical_id));
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
  if (settings_.strict) TellLeaks(id);
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
    Finding(
        "SIM-011", CurrentCall().caller,
        fmt::format("device {} is reset while buffers live:\n{}", id, leaks));
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
  const auto order = races_ == nullptr ? nullptr : races_->At(stream->id());
  stream->Finish(/*abandon=*/force);
  if (order != nullptr) races_->HostWaits(*order);
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
  Add(Count().host_syncs);
  device(id).waited = true;
  int first =
      faults_->OnCall(FaultRule::What::kWait, "aclrtSynchronizeDevice", id, -1);
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
