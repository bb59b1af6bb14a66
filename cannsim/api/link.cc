// SPDX-License-Identifier: Apache-2.0
// The runtime's side of private/runtime_link.h.
#include <utility>

#include "cannsim/private/runtime_link.h"
#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/log/log.h"
#include "cannsim/runtime/process.h"
#include "cannsim/runtime/strict/findings.h"

using cannsim::Process;

extern "C" {

int cannsim_fail(int code, const char* text) {
  return cannsim::Fail(code, std::string(text));
}

void cannsim_say(const char* letters, int code, const char* text) {
  cannsim::Say(letters, code, text);
}

void* cannsim_enter(const char* api, const void* caller) {
  return new cannsim::CallScope(api, caller);
}

void cannsim_leave(void* scope) {
  delete static_cast<cannsim::CallScope*>(scope);
}

int cannsim_launch(aclrtStream stream, const char* name,
                   std::function<int()> run) {
  return cannsim_launch_op(stream, name, {}, std::move(run));
}

int cannsim_launch_op(aclrtStream stream, const char* name,
                      const cannsim::TaskCost& cost, std::function<int()> run) {
  Process& process = Process::Get();
  const auto on = process.FindStream(stream);
  if (on == nullptr) return cannsim::PeekLastError();
  const int code = process.Launch(
      on,
      {.kind = cannsim::TaskKind::kOperator,
       .name = name,
       .run = [run = std::move(run)](const cannsim::TaskRun&) { return run(); },
       .cost = cost});
  if (code != 0 || stream != nullptr) return code;
  return on->Synchronize(-1, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

int cannsim_launch_task(aclrtStream stream, const char* name,
                        const cannsim::TaskCost& cost,
                        std::function<int(const cannsim::TaskRun&)> run) {
  Process& process = Process::Get();
  const auto on = process.FindStream(stream);
  if (on == nullptr) return cannsim::PeekLastError();
  return process.Launch(on, {.kind = cannsim::TaskKind::kOperator,
                             .name = name,
                             .run = std::move(run),
                             .cost = cost});
}

bool cannsim_is_recorded(aclrtStream stream) {
  const auto on = Process::Get().FindStream(stream);
  return on != nullptr &&
         (on->capture() != nullptr || on->collector() != nullptr);
}

bool cannsim_missing(const char* op) {
  return Process::Get().faults().IsMissing(op);
}

bool cannsim_quirk(cannsim::Quirk quirk) {
  return Process::Get().faults().Has(quirk);
}

void cannsim_tell(cannsim::Quirk quirk, const char* what) {
  Process::Get().faults().Tell(quirk, what);
}

void cannsim_compiled() { cannsim::Add(cannsim::Count().compilations); }

void cannsim_log(const char* module, const char* function, const char* text) {
  cannsim::Log(cannsim::LogLevel::kError, module, function, text);
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

uint64_t cannsim_workspace() {
  return Process::Get().settings().workspace_bytes;
}

bool cannsim_strict() { return Process::Get().settings().strict; }

void cannsim_finding(const char* id, const void* place, const char* text) {
  cannsim::Finding(id, place,
                   fmt::format("{} {}", text, cannsim::PlaceOf(place)));
}

const cannsim::Profile* cannsim_profile() { return &Process::Get().profile(); }

void cannsim_hccl_settings(cannsim::HcclSettings* settings) {
  *settings = cannsim::HcclSettingsFromEnvironment();
}

}  // extern "C"
