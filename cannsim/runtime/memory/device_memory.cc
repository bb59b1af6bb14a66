// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/memory/device_memory.h"

#include <algorithm>
#include <cstring>

#include "acl/error_codes.h"
#include "cannsim/runtime/strict/findings.h"
#include "cannsim/runtime/strict/races.h"

namespace cannsim {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMiB = size_t{1} << 20;
// Longer buffers are left as they are: writing a pattern would make the system
// find memory for all of it.
constexpr size_t kMaxFill = 16 * kMiB;
constexpr int kPattern = 0xFF;  // NaN in every float format
constexpr size_t kMaxFreed = 1024;

size_t RoundUp(size_t x, size_t to) { return (x + to - 1) / to * to; }

uintptr_t AddressOf(const void* p) { return reinterpret_cast<uintptr_t>(p); }

}  // namespace

std::unique_ptr<DeviceMemory> DeviceMemory::Create(const Profile& profile,
                                                   bool strict,
                                                   std::string* error) {
  // Room between allocations (rounding, extra bytes, alignment) is address
  // space only; the budget counts what was asked for.
  const size_t budget = profile.memory_bytes - profile.reserved_bytes;
  const size_t heap =
      RoundUp(budget + budget / 8 + 64 * kMiB, profile.huge_page_bytes);
  const size_t reserve = 2 * heap;
  auto arena = Arena::Create(heap, reserve, error);
  if (arena == nullptr) return nullptr;
  return std::unique_ptr<DeviceMemory>(
      new DeviceMemory(std::move(arena), profile, strict, heap, reserve));
}

DeviceMemory::DeviceMemory(std::unique_ptr<Arena> arena, const Profile& profile,
                           bool strict, size_t heap_bytes, size_t reserve_bytes)
    : arena_(std::move(arena)),
      budget_(profile.memory_bytes - profile.reserved_bytes),
      reserved_(profile.reserved_bytes),
      rounding_(profile.size_rounding),
      extra_(profile.extra_bytes),
      alignment_(profile.address_alignment),
      strict_(strict),
      heap_(arena_->heap_begin(), heap_bytes),
      reserve_(arena_->reserve_begin(), reserve_bytes),
      physical_(arena_->physical_begin(), heap_bytes) {}

int DeviceMemory::NoMemory(size_t bytes) const {
  return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
              "out of device memory: {} bytes asked for, {} of {} bytes free",
              bytes, budget_ - used_, budget_);
}

// With the lock held.
bool DeviceMemory::Charge(size_t bytes) {
  if (bytes > budget_ - used_) return false;
  used_ += bytes;
  peak_ = std::max(peak_, used_);
  return true;
}

int DeviceMemory::Allocate(size_t bytes, bool extra, size_t waste, void** out) {
  if (bytes > budget_ || waste > budget_) {
    const std::lock_guard lock(mutex_);
    return NoMemory(bytes);
  }
  const std::lock_guard lock(mutex_);
  const size_t rounded = RoundUp(bytes, rounding_);
  const size_t charged = rounded + waste;
  const size_t taken = rounded + (extra ? extra_ : 0);
  // Long buffers begin at a huge page, as the real ones do.
  const size_t alignment =
      taken >= 2 * kMiB ? 2 * kMiB : std::max<size_t>(alignment_, 64);
  if (charged > budget_ - used_) return NoMemory(bytes);
  const auto address = heap_.Take(taken, alignment);
  if (!address) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION,
                "out of device memory: no free range of {} bytes "
                "(fragmentation; {} bytes are free in all)",
                taken, budget_ - used_);
  }
  Charge(charged);
  Block& block = blocks_[*address];
  block = {.bytes = bytes, .charged = charged, .taken = taken, .history = {}};
  block.history.Note("allocated");
  freed_.erase(*address);
  *out = reinterpret_cast<void*>(*address);
  if (strict_ && taken <= kMaxFill) {
    std::memset(arena_->Worker(*address), kPattern, taken);
  }
  return ACL_SUCCESS;
}

int DeviceMemory::Free(void* address) {
  const std::lock_guard lock(mutex_);
  const uintptr_t at = AddressOf(address);
  const auto it = blocks_.find(at);
  if (it == blocks_.end()) {
    TellIfFreed(at);
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "{} is not the begin of a live allocation\n{}", address,
                DescribeLocked(at));
  }
  Block block = std::move(it->second);
  blocks_.erase(it);
  used_ -= block.charged;
  heap_.Give(at, block.taken);
  if (strict_ && block.taken <= kMaxFill) {
    std::memset(arena_->Worker(at), kPattern, block.taken);
  } else if (block.taken >= kMiB) {
    const size_t offset = at - arena_->heap_begin();
    const size_t begin = RoundUp(offset, kPage);
    const size_t end = (offset + block.taken) / kPage * kPage;
    arena_->Discard(begin, end - begin);
  }
  block.history.Note("freed");
  if (freed_.size() >= kMaxFreed) freed_.erase(freed_.begin());
  freed_[at] = std::move(block);
  return ACL_SUCCESS;
}

// The live block that holds an address, or null. With the lock held.
DeviceMemory::Block* DeviceMemory::FindBlock(uintptr_t address) {
  auto it = blocks_.upper_bound(address);
  if (it == blocks_.begin()) return nullptr;
  --it;
  return address - it->first < it->second.taken ? &it->second : nullptr;
}

int DeviceMemory::CheckUse(const void* address, size_t bytes, const char* use) {
  const std::lock_guard lock(mutex_);
  const uintptr_t at = AddressOf(address);
  if (at >= arena_->reserve_begin()) return CheckMapped(at, bytes, use);
  auto it = blocks_.upper_bound(at);
  if (it != blocks_.begin()) --it;
  if (it == blocks_.end() || at < it->first ||
      at - it->first > it->second.taken ||
      bytes > it->second.taken - (at - it->first)) {
    TellIfFreed(at);
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "{} bytes at {} do not lie in one live allocation\n{}", bytes,
                address, DescribeLocked(at));
  }
  it->second.history.Note(use);
  if (strict_) Races::Use(it->first, at, bytes, use);
  return ACL_SUCCESS;
}

// Mapped pieces may follow each other. With the lock held.
int DeviceMemory::CheckMapped(uintptr_t address, size_t bytes,
                              const char* use) {
  size_t done = 0;
  while (done < bytes) {
    const uintptr_t at = address + done;
    auto it = mappings_.upper_bound(at);
    if (it != mappings_.begin()) --it;
    if (it == mappings_.end() || at < it->first ||
        at - it->first >= it->second.bytes) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID,
                  "{} bytes at {:#x}: {:#x} is reserved but nothing is mapped "
                  "there",
                  bytes, address, at);
    }
    it->second.history.Note(use);
    if (strict_) {
      const size_t left = it->second.bytes - (at - it->first);
      Races::Use(it->first, at, std::min(left, bytes - done), use);
    }
    done += it->second.bytes - (at - it->first);
  }
  return ACL_SUCCESS;
}

// Strict mode: the buffer that was there. With the lock held.
void DeviceMemory::TellIfFreed(uintptr_t address) const {
  if (!strict_) return;
  auto it = freed_.upper_bound(address);
  if (it == freed_.begin()) return;
  --it;
  if (address - it->first >= it->second.taken) return;
  Finding(
      "SIM-013", CurrentCall().caller,
      fmt::format("memory is used or freed after it was freed, by {}\n{}",
                  cannsim::Describe(CurrentCall()), DescribeLocked(address)));
}

size_t DeviceMemory::SizeOf(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto it = blocks_.find(AddressOf(address));
  return it == blocks_.end() ? 0 : it->second.bytes;
}

size_t DeviceMemory::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_ + reserved_;
}

size_t DeviceMemory::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_ + reserved_;
}

size_t DeviceMemory::n_live() const {
  const std::lock_guard lock(mutex_);
  return blocks_.size() + handles_.size();
}

std::string DeviceMemory::Describe(const void* address) const {
  const std::lock_guard lock(mutex_);
  return DescribeLocked(AddressOf(address));
}

std::string DeviceMemory::TryDescribe(const void* address) const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  return lock ? DescribeLocked(AddressOf(address)) : "";
}

std::string DeviceMemory::DescribeLocked(uintptr_t address) const {
  for (const auto* blocks : {&blocks_, &freed_}) {
    auto it = blocks->upper_bound(address);
    if (it == blocks->begin()) continue;
    --it;
    const Block& block = it->second;
    // A little behind the end is most likely this buffer, too.
    if (address - it->first > block.taken + kPage) continue;
    return fmt::format("  {} buffer of {} bytes at {:#x}, offset {}:\n{}",
                       blocks == &blocks_ ? "live" : "freed", block.bytes,
                       it->first, address - it->first, block.history.Text());
  }
  auto it = mappings_.upper_bound(address);
  if (it != mappings_.begin()) {
    --it;
    if (address - it->first < it->second.bytes) {
      return fmt::format("  mapping of {} bytes at {:#x}, offset {}:\n{}",
                         it->second.bytes, it->first, address - it->first,
                         it->second.history.Text());
    }
  }
  return "  no buffer is or was there\n";
}

}  // namespace cannsim
