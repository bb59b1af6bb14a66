// SPDX-License-Identifier: Apache-2.0
// The virtual-memory half of DeviceMemory: addresses and memory apart.
#include "acl/error_codes.h"
#include "cannsim/runtime/memory/device_memory.h"

namespace cannsim {
namespace {

constexpr size_t kAddressGranule = size_t{2} << 20;

uintptr_t AddressOf(const void* p) { return reinterpret_cast<uintptr_t>(p); }

}  // namespace

int DeviceMemory::Reserve(size_t bytes, void** out) {
  const std::lock_guard lock(mutex_);
  if (bytes > arena_->heap_begin()) {  // keeps the rounding from wrapping
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "size {} is too large", bytes);
  }
  const size_t rounded =
      (bytes + kAddressGranule - 1) / kAddressGranule * kAddressGranule;
  const auto address = reserve_.Take(rounded, kAddressGranule);
  if (!address) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                "no free addresses for {} bytes", bytes);
  }
  reservations_[*address] = rounded;
  *out = reinterpret_cast<void*>(*address);
  return ACL_SUCCESS;
}

int DeviceMemory::Release(void* address) {
  const std::lock_guard lock(mutex_);
  const auto it = reservations_.find(AddressOf(address));
  if (it == reservations_.end()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} was not reserved", address);
  }
  const auto mapping = mappings_.lower_bound(it->first);
  if (mapping != mappings_.end() && mapping->first < it->first + it->second) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "{:#x} is still mapped: unmap before releasing",
                mapping->first);
  }
  reserve_.Give(it->first, it->second);
  reservations_.erase(it);
  return ACL_SUCCESS;
}

int DeviceMemory::MallocPhysical(size_t bytes, size_t granularity,
                                 void** handle) {
  const std::lock_guard lock(mutex_);
  if (bytes == 0 || bytes % granularity != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "size {} is not a multiple of the granularity {}", bytes,
                granularity);
  }
  if (bytes > budget_ || !Charge(bytes)) return NoMemory(bytes);
  const auto offset = physical_.Take(bytes, 4096);
  if (!offset) {
    used_ -= bytes;
    return NoMemory(bytes);
  }
  auto physical = std::make_unique<Physical>();
  physical->file_offset = *offset;
  physical->bytes = bytes;
  Physical* key = physical.get();
  handles_[key] = std::move(physical);
  *handle = key;
  return ACL_SUCCESS;
}

// With the lock held.
void DeviceMemory::FreePhysicalLocked(Physical* physical) {
  arena_->Discard(physical->file_offset, physical->bytes);
  physical_.Give(physical->file_offset, physical->bytes);
  used_ -= physical->bytes;
  handles_.erase(physical);
}

bool DeviceMemory::HasPhysical(void* handle) const {
  const std::lock_guard lock(mutex_);
  return handles_.count(static_cast<Physical*>(handle)) > 0;
}

int DeviceMemory::FreePhysical(void* handle) {
  const std::lock_guard lock(mutex_);
  const auto it = handles_.find(static_cast<Physical*>(handle));
  if (it == handles_.end() || it->second->given_back) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE,
                "{} is no live handle of physical memory", handle);
  }
  it->second->given_back = true;
  if (it->second->n_mappings == 0) FreePhysicalLocked(it->first);
  return ACL_SUCCESS;
}

int DeviceMemory::Map(void* address, size_t bytes, void* handle) {
  const std::lock_guard lock(mutex_);
  const uintptr_t at = AddressOf(address);
  const auto physical = handles_.find(static_cast<Physical*>(handle));
  if (physical == handles_.end() || physical->second->given_back) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE,
                "{} is no live handle of physical memory", handle);
  }
  if (bytes != physical->second->bytes) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "size {} is not the handle's size {}", bytes,
                physical->second->bytes);
  }
  auto reservation = reservations_.upper_bound(at);
  if (reservation != reservations_.begin()) --reservation;
  if (reservation == reservations_.end() || at < reservation->first ||
      at - reservation->first >= reservation->second ||
      bytes > reservation->second - (at - reservation->first) ||
      at % 4096 != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "{} bytes at {} do not lie in one reservation", bytes, address);
  }
  auto next = mappings_.lower_bound(at);
  const bool hits_next = next != mappings_.end() && next->first < at + bytes;
  const bool hits_before = next != mappings_.begin() && [&] {
    const auto before = std::prev(next);
    return at - before->first < before->second.bytes;
  }();
  if (hits_next || hits_before) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is mapped already", address);
  }
  if (!arena_->Map(at, bytes, physical->second->file_offset)) {
    return Fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR, "the system refuses to map");
  }
  ++physical->second->n_mappings;
  Mapping& mapping = mappings_[at];
  mapping = {.bytes = bytes, .physical = physical->first, .history = {}};
  mapping.history.Note("mapped");
  return ACL_SUCCESS;
}

int DeviceMemory::Unmap(void* address) {
  const std::lock_guard lock(mutex_);
  const auto it = mappings_.find(AddressOf(address));
  if (it == mappings_.end()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "nothing is mapped at {}", address);
  }
  arena_->Unmap(it->first, it->second.bytes);
  Physical* physical = it->second.physical;
  mappings_.erase(it);
  --physical->n_mappings;
  if (physical->n_mappings == 0 && physical->given_back) {
    FreePhysicalLocked(physical);
  }
  return ACL_SUCCESS;
}

std::string DeviceMemory::FreeAll() {
  const std::lock_guard lock(mutex_);
  std::string leaks;
  for (auto& [address, block] : blocks_) {
    leaks += fmt::format("  {} bytes at {:#x}\n{}", block.bytes, address,
                         block.history.Text());
    heap_.Give(address, block.taken);
    used_ -= block.charged;
  }
  blocks_.clear();
  for (const auto& [address, mapping] : mappings_) {
    arena_->Unmap(address, mapping.bytes);
  }
  mappings_.clear();
  for (const auto& [address, bytes] : reservations_) {
    reserve_.Give(address, bytes);
  }
  reservations_.clear();
  while (!handles_.empty()) FreePhysicalLocked(handles_.begin()->first);
  arena_->Discard(0, 2 * arena_->heap_bytes());
  return leaks;
}

}  // namespace cannsim
