// SPDX-License-Identifier: Apache-2.0
// Copies and fills. The addresses decide what a copy is; memory of the device
// is reached through its second mapping.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "acl/acl_rt.h"
#include "cannsim/runtime/count/clock.h"
#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"
#include "cannsim/runtime/strict/findings.h"

namespace {

using cannsim::Fail;
using cannsim::PeekLastError;
using cannsim::Process;
using cannsim::TaskKind;
using cannsim::TaskRun;

// One side of a copy.
struct Side {
  char* real = nullptr;  // where the bytes are
  int device = -1;       // -1: the host
  bool pinned = false;   // or on a device
};

int Locate(const void* address, size_t bytes, const char* use, Side* side) {
  Process& process = Process::Get();
  side->device = process.DeviceOf(address);
  if (side->device >= 0) {
    cannsim::DeviceMemory* memory = process.MemoryOf(address);
    side->real = memory->Worker(address);
    side->pinned = true;
    return memory->CheckUse(address, bytes, use);
  }
  side->real = const_cast<char*>(static_cast<const char*>(address));
  side->pinned = process.host_memory.IsPinned(address, bytes);
  return ACL_SUCCESS;
}

// What the clock is told of a copy of `bytes`.
cannsim::TaskCost CostOf(int to_device, int from_device, size_t bytes) {
  const bool is_inside = to_device >= 0 && to_device == from_device;
  // Inside a device they are read and written.
  return {.bytes = static_cast<double>(bytes) * (is_inside ? 2 : 1),
          .over_link = !is_inside};
}

struct Copy {
  Side dst;
  Side src;
  size_t bytes = 0;
  bool IsPinned() const { return dst.pinned && src.pinned; }
};

// Access between devices has to be enabled by the one that the thread is on.
int CheckPeers(const Copy& copy, int current) {
  if (copy.dst.device < 0 || copy.src.device < 0 ||
      copy.dst.device == copy.src.device) {
    return ACL_SUCCESS;
  }
  const int other =
      copy.dst.device == current ? copy.src.device : copy.dst.device;
  cannsim::Device& device = Process::Get().device(current);
  const std::lock_guard lock(device.mutex);
  if (device.peers.count(other) > 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              "device {} may not reach device {}: "
              "aclrtDeviceEnablePeerAccess was not called",
              current, other);
}

int Prepare(void* dst, size_t dest_max, const void* src, size_t count,
            Copy* copy) {
  const auto context = Process::Get().CurrentContext();
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  if (dst == nullptr || src == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is null",
                dst == nullptr ? "dst" : "src");
  }
  if (count > dest_max) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "count {} is more than the destination's {}", count, dest_max);
  }
  copy->bytes = count;
  int code = Locate(dst, count, "written", &copy->dst);
  if (code == 0) code = Locate(src, count, "read", &copy->src);
  if (code == 0) code = CheckPeers(*copy, context->device);
  return code;
}

// What an asynchronous copy says it is must be what it is.
int CheckKind(const Copy& copy, aclrtMemcpyKind kind) {
  const bool to_device = copy.dst.device >= 0;
  const bool from_device = copy.src.device >= 0;
  bool fits = false;
  switch (kind) {
    case ACL_MEMCPY_HOST_TO_HOST:
      fits = !to_device && !from_device;
      break;
    case ACL_MEMCPY_HOST_TO_DEVICE:
    case ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE:
      fits = to_device && !from_device;
      break;
    case ACL_MEMCPY_DEVICE_TO_HOST:
      fits = !to_device && from_device;
      break;
    case ACL_MEMCPY_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INNER_DEVICE_TO_DEVICE:
    case ACL_MEMCPY_INTER_DEVICE_TO_DEVICE:
      fits = to_device && from_device;
      break;
    case ACL_MEMCPY_DEFAULT:
      fits = true;
      break;
  }
  if (!fits) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "kind {} does not fit: the destination is on the {}, the "
                "source on the {}",
                static_cast<int>(kind), to_device ? "device" : "host",
                from_device ? "device" : "host");
  }
  if (!to_device && !from_device) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "asynchronous copies within the host are not supported");
  }
  return ACL_SUCCESS;
}

// Strict mode: one place of the program makes such copies again and again.
void NotePageable(size_t bytes) {
  constexpr int kMany = 8;
  static std::mutex mutex;
  static auto* const counts = new std::map<const void*, int>;
  const cannsim::Call& call = cannsim::CurrentCall();
  const std::lock_guard lock(mutex);
  if (++(*counts)[call.caller] != kMany) return;
  cannsim::Finding(
      "SIM-017", call.caller,
      fmt::format("{} asynchronous copies of pageable host memory ({} bytes): "
                  "each waits for its stream\n  by {}",
                  kMany, bytes, cannsim::Describe(call)));
}

// Queues the copy. One that touches pageable memory is done when the call
// returns, which is what makes it slow.
int Queue(const Copy& copy, aclrtStream stream) {
  Process& process = Process::Get();
  const auto on = process.FindStream(stream);
  if (on == nullptr) return PeekLastError();
  if (!copy.IsPinned()) {
    if (on->capture() != nullptr) {
      on->capture()->Invalidate();
      return Fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                  "a captured copy needs host memory of aclrtMallocHost");
    }
    if (const int code = process.CheckUnsafe(); code != 0) return code;
  }
  cannsim::CountCopy(copy.dst.device, copy.src.device, copy.bytes);
  const int code = process.Launch(
      on, {.kind = TaskKind::kCopy,
           .name = "aclrtMemcpyAsync",
           .run =
               [copy](const TaskRun&) {
                 std::memmove(copy.dst.real, copy.src.real, copy.bytes);
                 return ACL_SUCCESS;
               },
           .cost = CostOf(copy.dst.device, copy.src.device, copy.bytes)});
  if (code != 0 || copy.IsPinned()) return code;
  cannsim::Add(cannsim::Count().blocking_copies);
  if (process.settings().strict) NotePageable(copy.bytes);
  return on->Synchronize(-1, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

// A copy or fill that the calling thread does: faults of the script, and its
// time.
int HostWork(cannsim::FaultRule::What what, const char* name, int device,
             const cannsim::TaskCost& cost) {
  static std::atomic<uint64_t> draws{0};
  Process& process = Process::Get();
  const int code = process.faults().OnCall(what, name, device, -1);
  if (code != 0) return code;
  if (process.races() != nullptr) process.races()->OnHost();
  cannsim::Task task;
  task.cost = cost;
  const double ns = cannsim::CostNs(task, process.profile(), draws++);
  cannsim::HostReach(cannsim::HostNow() + ns);
  cannsim::NoteTime(name, ns);
  return ACL_SUCCESS;
}

int CopyNow(void* dst, size_t dest_max, const void* src, size_t count) {
  Copy copy;
  if (const int code = Process::Get().CheckUnsafe(); code != 0) return code;
  int code = Prepare(dst, dest_max, src, count, &copy);
  if (code != 0) return code;
  const int device = std::max(copy.dst.device, copy.src.device);
  if (device >= 0) {
    code = HostWork(cannsim::FaultRule::What::kCopy, "aclrtMemcpy", device,
                    CostOf(copy.dst.device, copy.src.device, count));
    if (code != 0) return code;
    cannsim::Add(cannsim::Count().blocking_copies);
    cannsim::CountCopy(copy.dst.device, copy.src.device, count);
  }
  std::memmove(copy.dst.real, copy.src.real, count);
  return ACL_SUCCESS;
}

int CopyLater(void* dst, size_t dest_max, const void* src, size_t count,
              aclrtMemcpyKind kind, aclrtStream stream) {
  Copy copy;
  int code = Prepare(dst, dest_max, src, count, &copy);
  if (code == 0) code = CheckKind(copy, kind);
  if (code == 0) code = Queue(copy, stream);
  return code;
}

// Only memory that the runtime knows can be filled.
int PrepareFill(void* dst, size_t max_count, size_t count, Side* side) {
  if (Process::Get().CurrentContext() == nullptr) {
    return ACL_ERROR_RT_CONTEXT_NULL;
  }
  if (dst == nullptr || count > max_count) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "the pointer is null, or count {} more than {}", count,
                max_count);
  }
  const int code = Locate(dst, count, "filled", side);
  if (code != 0) return code;
  if (side->pinned) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              "{} is neither device memory nor host memory of the runtime",
              dst);
}

}  // namespace

extern "C" {

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind) {
  CANNSIM_CALL(aclrtMemcpy);
  return CopyNow(dst, destMax, src, count);
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src,
                          size_t count, aclrtMemcpyKind kind,
                          aclrtStream stream) {
  CANNSIM_CALL(aclrtMemcpyAsync);
  return CopyLater(dst, destMax, src, count, kind, stream);
}

aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax,
                                       const void* src, size_t count,
                                       aclrtMemcpyKind kind,
                                       aclrtStream stream) {
  CANNSIM_CALL(aclrtMemcpyAsyncWithCondition);
  return CopyLater(dst, destMax, src, count, kind, stream);
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch,
                       size_t width, size_t height, aclrtMemcpyKind) {
  CANNSIM_CALL(aclrtMemcpy2d);
  if (width > dpitch || width > spitch) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "width {} is more than a pitch",
                width);
  }
  for (size_t row = 0; row < height; ++row) {
    const int code =
        CopyNow(static_cast<char*>(dst) + row * dpitch, width,
                static_cast<const char*>(src) + row * spitch, width);
    if (code != 0) return code;
  }
  return ACL_SUCCESS;
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src,
                            size_t spitch, size_t width, size_t height,
                            aclrtMemcpyKind kind, aclrtStream stream) {
  CANNSIM_CALL(aclrtMemcpy2dAsync);
  if (width > dpitch || width > spitch) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "width {} is more than a pitch",
                width);
  }
  for (size_t row = 0; row < height; ++row) {
    const int code = CopyLater(static_cast<char*>(dst) + row * dpitch, width,
                               static_cast<const char*>(src) + row * spitch,
                               width, kind, stream);
    if (code != 0) return code;
  }
  return ACL_SUCCESS;
}

aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs,
                          size_t* sizes, size_t numBatches,
                          aclrtMemcpyBatchAttr*, size_t*, size_t,
                          size_t* failIndex) {
  CANNSIM_CALL(aclrtMemcpyBatch);
  if (dsts == nullptr || destMaxs == nullptr || srcs == nullptr ||
      sizes == nullptr || failIndex == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  for (size_t i = 0; i < numBatches; ++i) {
    const int code = CopyNow(dsts[i], destMaxs[i], srcs[i], sizes[i]);
    *failIndex = i;
    if (code != 0) return code;
  }
  return ACL_SUCCESS;
}

aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs,
                               size_t* sizes, size_t numBatches,
                               aclrtMemcpyBatchAttr*, size_t*, size_t,
                               size_t* failIndex, aclrtStream stream) {
  CANNSIM_CALL(aclrtMemcpyBatchAsync);
  if (dsts == nullptr || destMaxs == nullptr || srcs == nullptr ||
      sizes == nullptr || failIndex == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument");
  }
  for (size_t i = 0; i < numBatches; ++i) {
    const int code = CopyLater(dsts[i], destMaxs[i], srcs[i], sizes[i],
                               ACL_MEMCPY_DEFAULT, stream);
    *failIndex = i;
    if (code != 0) return code;
  }
  return ACL_SUCCESS;
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value,
                     size_t count) {
  CANNSIM_CALL(aclrtMemset);
  Side side;
  if (const int code = Process::Get().CheckUnsafe(); code != 0) return code;
  int code = PrepareFill(devPtr, maxCount, count, &side);
  if (code != 0) return code;
  if (side.device >= 0) {
    code = HostWork(cannsim::FaultRule::What::kFill, "aclrtMemset", side.device,
                    {.bytes = static_cast<double>(count)});
    if (code != 0) return code;
  }
  std::memset(side.real, value, count);
  return ACL_SUCCESS;
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value,
                          size_t count, aclrtStream stream) {
  CANNSIM_CALL(aclrtMemsetAsync);
  Side side;
  const int code = PrepareFill(devPtr, maxCount, count, &side);
  if (code != 0) return code;
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  char* real = side.real;
  return Process::Get().Launch(on,
                               {.kind = TaskKind::kMemset,
                                .name = "aclrtMemsetAsync",
                                .run =
                                    [real, value, count](const TaskRun&) {
                                      std::memset(real, value, count);
                                      return ACL_SUCCESS;
                                    },
                                .cost = {.bytes = static_cast<double>(count)}});
}

}  // extern "C"
