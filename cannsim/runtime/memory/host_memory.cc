// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/memory/host_memory.h"

#include <sys/mman.h>

#include "acl/error_codes.h"
#include "cannsim/runtime/error.h"

namespace cannsim {

int HostMemory::Allocate(size_t bytes, void** out) {
  // Pages of its own: a write behind the end may meet the guard of the next.
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                "the host has no {} bytes of memory", bytes);
  }
  const std::lock_guard lock(mutex_);
  pieces_[reinterpret_cast<uintptr_t>(at)] = {.bytes = bytes,
                                              .registered = false};
  *out = at;
  return ACL_SUCCESS;
}

int HostMemory::Free(void* address) {
  const std::lock_guard lock(mutex_);
  const auto it = pieces_.find(reinterpret_cast<uintptr_t>(address));
  if (it == pieces_.end() || it->second.registered) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "{} did not come from aclrtMallocHost, or was freed before",
                address);
  }
  munmap(address, it->second.bytes);
  pieces_.erase(it);
  return ACL_SUCCESS;
}

int HostMemory::Register(void* address, size_t bytes, void** device_address) {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<uintptr_t>(address);
  const auto next = pieces_.lower_bound(at);
  if (next != pieces_.end() && next->first - at < bytes) {
    return Fail(ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED,
                "{} overlaps memory that is pinned already", address);
  }
  pieces_[at] = {.bytes = bytes, .registered = true};
  *device_address = address;
  return ACL_SUCCESS;
}

int HostMemory::Unregister(void* address) {
  const std::lock_guard lock(mutex_);
  const auto it = pieces_.find(reinterpret_cast<uintptr_t>(address));
  if (it == pieces_.end() || !it->second.registered) {
    return Fail(ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED, "{} is not registered",
                address);
  }
  pieces_.erase(it);
  return ACL_SUCCESS;
}

bool HostMemory::IsPinned(const void* address, size_t bytes) const {
  const std::lock_guard lock(mutex_);
  const auto at = reinterpret_cast<uintptr_t>(address);
  auto it = pieces_.upper_bound(at);
  if (it == pieces_.begin()) return false;
  --it;
  const size_t offset = at - it->first;
  return offset <= it->second.bytes && bytes <= it->second.bytes - offset;
}

size_t HostMemory::n_live() const {
  const std::lock_guard lock(mutex_);
  return pieces_.size();
}

}  // namespace cannsim
