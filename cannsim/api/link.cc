// SPDX-License-Identifier: Apache-2.0
// The runtime's side of private/runtime_link.h.
#include <utility>

#include "cannsim/private/runtime_link.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

using cannsim::Process;

extern "C" {

int cannsim_fail(int code, const char* text) {
  return cannsim::Fail(code, std::string(text));
}

void* cannsim_enter(const char* api, const void* caller) {
  return new cannsim::CallScope(api, caller);
}

void cannsim_leave(void* scope) {
  delete static_cast<cannsim::CallScope*>(scope);
}

int cannsim_launch(aclrtStream stream, const char* name,
                   std::function<int()> run) {
  Process& process = Process::Get();
  const auto on = process.FindStream(stream);
  if (on == nullptr) return cannsim::PeekLastError();
  const int code = process.Launch(
      on, {.kind = cannsim::TaskKind::kOperator,
           .name = name,
           .run = [run = std::move(run)](const cannsim::TaskRun&) {
             return run();
           }});
  if (code != 0 || stream != nullptr) return code;
  return on->Synchronize(-1, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

char* cannsim_worker(const void* address, size_t bytes, const char* use) {
  Process& process = Process::Get();
  if (cannsim::DeviceMemory* memory = process.MemoryOf(address)) {
    const int code = memory->CheckUse(address, bytes, use);
    return code == 0 ? memory->Worker(address) : nullptr;
  }
  if (process.host_memory.IsPinned(address, bytes)) {
    return const_cast<char*>(static_cast<const char*>(address));
  }
  cannsim::Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is not memory of a device",
                address);
  return nullptr;
}

const cannsim::Profile* cannsim_profile() { return &Process::Get().profile(); }

}  // extern "C"
