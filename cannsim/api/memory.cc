// SPDX-License-Identifier: Apache-2.0
// Allocation on the device and on the host, and what is known of it.
#include <algorithm>
#include <cstring>

#include "acl/acl_rt.h"
#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace {

using cannsim::DeviceMemory;
using cannsim::Fail;
using cannsim::Process;
using cannsim::Quirk;

// The memory of the thread's device, or null after Fail.
DeviceMemory* CurrentMemory() {
  Process& process = Process::Get();
  const auto context = process.CurrentContext();
  if (context == nullptr) return nullptr;
  std::string error;
  DeviceMemory* memory = process.Memory(context->device, &error);
  if (memory == nullptr) Fail(ACL_ERROR_RT_DEV_SETUP_ERROR, error);
  return memory;
}

// Allocates as the quirks want it.
int Quirky(DeviceMemory& memory, int id, size_t size, bool extra, void** out) {
  cannsim::Faults& faults = Process::Get().faults();
  const cannsim::Device& device = Process::Get().device(id);
  if (faults.Has(Quirk::kEarlyMalloc) && !device.waited) {
    faults.Tell(Quirk::kEarlyMalloc,
                fmt::format("aclrtMalloc of {} bytes before the host waited "
                            "for device {} returns an address with nothing "
                            "behind it",
                            size, id));
    return memory.Reserve(size, out);
  }
  size_t waste = 0;
  if (faults.Has(Quirk::kFragmentedMalloc) && device.has_run) {
    faults.Tell(Quirk::kFragmentedMalloc,
                fmt::format("aclrtMalloc of {} bytes after operators were "
                            "queued on device {} loses as much again to "
                            "fragmentation",
                            size, id));
    waste = size;
  }
  return memory.Allocate(size, extra, waste, out);
}

int Malloc(void** out, size_t size, bool extra) {
  if (out == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "the pointer's place is null");
  }
  *out = nullptr;
  if (size == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "size is 0");
  DeviceMemory* memory = CurrentMemory();
  if (memory == nullptr) return cannsim::PeekLastError();
  Process& process = Process::Get();
  const int id = process.CurrentContext()->device;
  int code = process.faults().OnMalloc(id, memory->used_bytes() + size);
  if (code == 0) code = Quirky(*memory, id, size, extra, out);
  if (code == 0) cannsim::Add(cannsim::Count().allocations);
  return code;
}

int MallocHost(void** out, size_t size) {
  if (out == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "the pointer's place is null");
  }
  *out = nullptr;
  if (size == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "size is 0");
  if (Process::Get().CurrentContext() == nullptr) {
    return ACL_ERROR_RT_CONTEXT_NULL;
  }
  const int code = Process::Get().host_memory.Allocate(size, out);
  if (code == 0) cannsim::Add(cannsim::Count().host_allocations);
  return code;
}

bool IsHbm(aclrtMemAttr attr) {
  switch (attr) {
    case ACL_HBM_MEM:
    case ACL_HBM_MEM_HUGE:
    case ACL_HBM_MEM_NORMAL:
    case ACL_HBM_MEM_P2P_HUGE:
    case ACL_HBM_MEM_P2P_NORMAL:
    case ACL_HBM_MEM_HUGE1G:
    case ACL_HBM_MEM_P2P_HUGE1G:
      return true;
    default:
      return false;
  }
}

bool IsDdr(aclrtMemAttr attr) {
  return attr == ACL_DDR_MEM || attr == ACL_DDR_MEM_HUGE ||
         attr == ACL_DDR_MEM_NORMAL || attr == ACL_DDR_MEM_P2P_HUGE ||
         attr == ACL_DDR_MEM_P2P_NORMAL;
}

bool IsAny(aclrtMemAttr attr) {
  return attr >= ACL_MEM_NORMAL && attr <= ACL_MEM_P2P_HUGE1G;
}

}  // namespace

extern "C" {

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  CANNSIM_CALL(aclrtMalloc);
  return Malloc(devPtr, size, /*extra=*/true);
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy) {
  CANNSIM_CALL(aclrtMallocAlign32);
  return Malloc(devPtr, size, /*extra=*/false);
}

aclError aclrtFree(void* devPtr) {
  CANNSIM_CALL(aclrtFree);
  if (devPtr == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "the pointer is null");
  }
  Process& process = Process::Get();
  if (process.CurrentContext() == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  DeviceMemory* memory = process.MemoryOf(devPtr);
  if (memory == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is not device memory", devPtr);
  }
  const size_t bytes = memory->SizeOf(devPtr);
  if (bytes > 0 && process.races() != nullptr) {
    process.races()->Freed(reinterpret_cast<uintptr_t>(devPtr), bytes);
  }
  const int code = memory->Free(devPtr);
  if (code == 0) cannsim::Add(cannsim::Count().frees);
  return code;
}

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  CANNSIM_CALL(aclrtMallocHost);
  return MallocHost(hostPtr, size);
}

aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig*) {
  CANNSIM_CALL(aclrtMallocHostWithCfg);
  return MallocHost(ptr, size);
}

aclError aclrtFreeHost(void* hostPtr) {
  CANNSIM_CALL(aclrtFreeHost);
  if (hostPtr == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "the pointer is null");
  }
  const int code = Process::Get().host_memory.Free(hostPtr);
  if (code == 0) cannsim::Add(cannsim::Count().host_frees);
  return code;
}

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType,
                           void** devPtr) {
  CANNSIM_CALL(aclrtHostRegister);
  if (ptr == nullptr || devPtr == nullptr || size == 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null pointer or size 0");
  }
  if (Process::Get().DeviceOf(ptr) >= 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is device memory", ptr);
  }
  return Process::Get().host_memory.Register(ptr, size, devPtr);
}

aclError aclrtHostUnregister(void* ptr) {
  CANNSIM_CALL(aclrtHostUnregister);
  return Process::Get().host_memory.Unregister(ptr);
}

aclError aclrtPointerGetAttributes(const void* ptr,
                                   aclrtPtrAttributes* attributes) {
  CANNSIM_CALL(aclrtPointerGetAttributes);
  if (ptr == nullptr || attributes == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  const Process& process = Process::Get();
  *attributes = {};
  attributes->pageSize = 4096;
  const int device = process.DeviceOf(ptr);
  if (device >= 0) {
    attributes->location = {.id = static_cast<uint32_t>(device),
                            .type = ACL_MEM_LOCATION_TYPE_DEVICE};
    attributes->pageSize =
        static_cast<uint32_t>(process.profile().huge_page_bytes);
  } else if (process.host_memory.IsPinned(ptr, 1)) {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_HOST;
  } else {
    attributes->location.type = ACL_MEM_LOCATION_TYPE_UNREGISTERED;
  }
  return ACL_SUCCESS;
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  CANNSIM_CALL(aclrtGetMemInfo);
  if (free == nullptr || total == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  const DeviceMemory* memory = CurrentMemory();
  if (memory == nullptr) return cannsim::PeekLastError();
  const bool has_hbm = Process::Get().profile().has_hbm;
  *free = 0;
  *total = 0;
  // A question for HBM is answered for LPDDR where there is nothing else.
  if (!IsAny(attr) && !IsHbm(attr) && (has_hbm || !IsDdr(attr))) {
    return ACL_SUCCESS;
  }
  *total = memory->total_bytes();
  *free = *total - memory->used_bytes();
  return ACL_SUCCESS;
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo,
                              size_t inputNum, size_t* outputNum) {
  CANNSIM_CALL(aclrtGetMemUsageInfo);
  if (memUsageInfo == nullptr || outputNum == nullptr || inputNum == 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument or no room");
  }
  Process& process = Process::Get();
  if (const int code = process.CheckDevice(deviceId); code != 0) return code;
  std::string error;
  const DeviceMemory* memory = process.Memory(deviceId, &error);
  if (memory == nullptr) return Fail(ACL_ERROR_RT_DEV_SETUP_ERROR, error);
  // One entry: the simulator has no modules that allocate for themselves.
  memUsageInfo[0] = {};
  std::strcpy(memUsageInfo[0].name, "APP");
  memUsageInfo[0].curMemSize = memory->used_bytes();
  memUsageInfo[0].memPeakSize = memory->peak_bytes();
  *outputNum = 1;
  return ACL_SUCCESS;
}

// --- Virtual memory ---

aclError aclrtMemGetAllocationGranularity(aclrtPhysicalMemProp* prop,
                                          aclrtMemGranularityOptions option,
                                          size_t* granularity) {
  CANNSIM_CALL(aclrtMemGetAllocationGranularity);
  if (prop == nullptr || granularity == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  if (option != ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM &&
      option != ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "option {} does not exist",
                static_cast<int>(option));
  }
  const bool normal = prop->memAttr == ACL_HBM_MEM_NORMAL ||
                      prop->memAttr == ACL_DDR_MEM_NORMAL ||
                      prop->memAttr == ACL_MEM_NORMAL;
  const bool one_gib =
      prop->memAttr == ACL_HBM_MEM_HUGE1G || prop->memAttr == ACL_MEM_HUGE1G;
  const size_t huge = Process::Get().profile().huge_page_bytes;
  const bool minimum = option == ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM;
  *granularity = one_gib             ? size_t{1} << 30
                 : normal && minimum ? size_t{4096}
                                     : huge;
  return ACL_SUCCESS;
}

aclError aclrtReserveMemAddress(void** virPtr, size_t size, size_t alignment,
                                void* expectPtr, uint64_t flags) {
  CANNSIM_CALL(aclrtReserveMemAddress);
  if (virPtr == nullptr || size == 0 || alignment != 0 ||
      expectPtr != nullptr || flags > 1) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "size and pointer must be given, alignment must be 0, "
                "expectPtr null and flags 0 or 1");
  }
  DeviceMemory* memory = CurrentMemory();
  if (memory == nullptr) return cannsim::PeekLastError();
  return memory->Reserve(size, virPtr);
}

aclError aclrtReleaseMemAddress(void* virPtr) {
  CANNSIM_CALL(aclrtReleaseMemAddress);
  DeviceMemory* memory = Process::Get().MemoryOf(virPtr);
  if (memory == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} was not reserved", virPtr);
  }
  return memory->Release(virPtr);
}

aclError aclrtMallocPhysical(aclrtDrvMemHandle* handle, size_t size,
                             const aclrtPhysicalMemProp* prop, uint64_t flags) {
  CANNSIM_CALL(aclrtMallocPhysical);
  if (handle == nullptr || prop == nullptr || flags != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument or flags not 0");
  }
  Process& process = Process::Get();
  if (prop->location.type != ACL_MEM_LOCATION_TYPE_DEVICE) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "physical memory of the host is not simulated");
  }
  const int id = static_cast<int>(prop->location.id);
  if (const int code = process.CheckDevice(id); code != 0) return code;
  size_t granularity = 0;
  aclrtPhysicalMemProp copy = *prop;
  aclrtMemGetAllocationGranularity(&copy, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM,
                                   &granularity);
  std::string error;
  DeviceMemory* memory = process.Memory(id, &error);
  if (memory == nullptr) return Fail(ACL_ERROR_RT_DEV_SETUP_ERROR, error);
  int code = process.faults().OnMalloc(id, memory->used_bytes() + size);
  if (code == 0) code = memory->MallocPhysical(size, granularity, handle);
  if (code == 0) cannsim::Add(cannsim::Count().allocations);
  return code;
}

aclError aclrtFreePhysical(aclrtDrvMemHandle handle) {
  CANNSIM_CALL(aclrtFreePhysical);
  // A handle does not say which device it is of; only one knows it.
  Process& process = Process::Get();
  for (int id = 0; id < process.n_devices(); ++id) {
    DeviceMemory* memory = process.MemoryIfAny(id);
    if (memory == nullptr || !memory->HasPhysical(handle)) continue;
    const int code = memory->FreePhysical(handle);
    if (code == 0) cannsim::Add(cannsim::Count().frees);
    return code;
  }
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "{} is no live handle", handle);
}

aclError aclrtMapMem(void* virPtr, size_t size, size_t offset,
                     aclrtDrvMemHandle handle, uint64_t flags) {
  CANNSIM_CALL(aclrtMapMem);
  if (offset != 0 || flags != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "offset and flags must be 0");
  }
  DeviceMemory* memory = Process::Get().MemoryOf(virPtr);
  if (memory == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} was not reserved", virPtr);
  }
  return memory->Map(virPtr, size, handle);
}

aclError aclrtUnmapMem(void* virPtr) {
  CANNSIM_CALL(aclrtUnmapMem);
  DeviceMemory* memory = Process::Get().MemoryOf(virPtr);
  if (memory == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is not mapped", virPtr);
  }
  return memory->Unmap(virPtr);
}

}  // extern "C"
