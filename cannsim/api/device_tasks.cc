// SPDX-License-Identifier: Apache-2.0
// Small tasks of the device itself: values in its memory, hints to its cache.
#include <chrono>
#include <cstring>
#include <thread>

#include "acl/acl_rt.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace {

using cannsim::Fail;
using cannsim::PeekLastError;
using cannsim::Process;
using cannsim::TaskKind;
using cannsim::TaskRun;

enum WaitOp { kGreaterOrEqual = 0, kEqual = 1, kAnd = 2, kNor = 3 };

bool Holds(uint64_t memory, uint64_t value, uint32_t op) {
  switch (op) {
    case kGreaterOrEqual:
      // Signed distance: counters may wrap.
      return static_cast<int64_t>(memory - value) >= 0;
    case kEqual:
      return memory == value;
    case kAnd:
      return (memory & value) != 0;
    default:
      return ~(memory | value) != 0;
  }
}

// Another stream may write while this one looks.
uint64_t Load(char* at) {
  return __atomic_load_n(reinterpret_cast<uint64_t*>(at), __ATOMIC_ACQUIRE);
}

// The 8 bytes of device memory at an address, or null after Fail.
char* Cell(void* address, const char* use) {
  cannsim::DeviceMemory* memory = Process::Get().MemoryOf(address);
  if (memory == nullptr) {
    Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is not device memory", address);
    return nullptr;
  }
  if (reinterpret_cast<uintptr_t>(address) % 8 != 0) {
    Fail(ACL_ERROR_RT_ADDR_UNALIGNED, "{} is not a multiple of 8", address);
    return nullptr;
  }
  return memory->CheckUse(address, 8, use) == 0 ? memory->Worker(address)
                                                : nullptr;
}

}  // namespace

extern "C" {

aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag,
                         aclrtStream stream) {
  CANNSIM_CALL(aclrtValueWrite);
  if (flag != 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "flag must be 0");
  char* cell = Cell(devAddr, "written");
  if (cell == nullptr) return PeekLastError();
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  return Process::Get().Launch(on, {.kind = TaskKind::kOther,
                                    .name = "aclrtValueWrite",
                                    .run = [cell, value](const TaskRun&) {
                                      __atomic_store_n(
                                          reinterpret_cast<uint64_t*>(cell),
                                          value, __ATOMIC_RELEASE);
                                      return ACL_SUCCESS;
                                    }});
}

aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag,
                        aclrtStream stream) {
  CANNSIM_CALL(aclrtValueWait);
  if (flag > kNor) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "condition {} does not exist",
                flag);
  }
  char* cell = Cell(devAddr, "waited for");
  if (cell == nullptr) return PeekLastError();
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  return Process::Get().Launch(
      on, {.kind = TaskKind::kOther,
           .name = "aclrtValueWait",
           .run = [cell, value, flag](const TaskRun& run) {
             while (!Holds(Load(cell), value, flag) && !run.abandoned.load()) {
               std::this_thread::sleep_for(std::chrono::microseconds(50));
             }
             return ACL_SUCCESS;
           }});
}

aclError aclrtCmoAsync(void* src, size_t size, aclrtCmoType cmoType,
                       aclrtStream stream) {
  CANNSIM_CALL(aclrtCmoAsync);
  cannsim::DeviceMemory* memory = Process::Get().MemoryOf(src);
  if (memory == nullptr || size == 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "{} is not device memory, or the size is 0", src);
  }
  if (cmoType != ACL_RT_CMO_TYPE_PREFETCH) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "only prefetching is supported");
  }
  if (const int code = memory->CheckUse(src, size, "prefetched"); code != 0) {
    return code;
  }
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  // There is no cache to fill; the task keeps its place in the order.
  return Process::Get().Launch(
      on, {.kind = TaskKind::kOther,
           .name = "aclrtCmoAsync",
           .run = [](const TaskRun&) { return ACL_SUCCESS; }});
}

}  // extern "C"
