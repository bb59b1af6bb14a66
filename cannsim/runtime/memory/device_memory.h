// SPDX-License-Identifier: Apache-2.0
// HBM of one device: allocations, virtual memory, the budget of the profile.
// Rules: acl.md of the facts, "Memory" and "VMM"; docs/cannsim.md restates
// them. All functions may be called from any thread and return error codes of
// acl after Fail (runtime/error.h).
#ifndef BELAY_CANNSIM_RUNTIME_MEMORY_DEVICE_MEMORY_H_
#define BELAY_CANNSIM_RUNTIME_MEMORY_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "cannsim/config/profile.h"
#include "cannsim/runtime/memory/arena.h"
#include "cannsim/runtime/memory/history.h"
#include "cannsim/runtime/memory/ranges.h"

namespace cannsim {

// A piece of physical memory of the VMM interface.
struct Physical {
  size_t file_offset = 0;
  size_t bytes = 0;
  int n_mappings = 0;
  bool given_back = false;  // freed when the last mapping goes
};

class DeviceMemory {
 public:
  // `strict` fills new and freed memory with a pattern, so that nobody relies
  // on zeros.
  static std::unique_ptr<DeviceMemory> Create(const Profile& profile,
                                              bool strict, std::string* error);

  // aclrtMalloc: `extra` adds the profile's extra bytes behind the rounded
  // size; `waste` bytes are charged to the budget as well (a quirk).
  int Allocate(size_t bytes, bool extra, size_t waste, void** out);
  int Free(void* address);
  // The device is reset: everything goes. A line for each buffer that the
  // program had not freed.
  std::string FreeAll();

  bool Owns(const void* address) const {
    return arena_->Owns(reinterpret_cast<uintptr_t>(address));
  }

  // Where the bytes really are. Only for addresses that it owns.
  char* Worker(const void* address) const {
    return arena_->Worker(reinterpret_cast<uintptr_t>(address));
  }

  // Whether [address, +bytes) lies in one live allocation or in mapped memory;
  // notes the use in the buffer's history. 107000 and a message if not.
  int CheckUse(const void* address, size_t bytes, const char* use);

  // Virtual memory.
  int Reserve(size_t bytes, void** out);
  int Release(void* address);
  int MallocPhysical(size_t bytes, size_t granularity, void** handle);
  int FreePhysical(void* handle);
  bool HasPhysical(void* handle) const;
  int Map(void* address, size_t bytes, void* handle);
  int Unmap(void* address);

  size_t total_bytes() const { return budget_ + reserved_; }
  size_t used_bytes() const;  // with what the profile reserves
  size_t peak_bytes() const;
  size_t n_live() const;
  // Of the live allocation that begins there; else 0.
  size_t SizeOf(const void* address) const;

  // What is known about an address: the buffer around it or the freed one that
  // was there, and its calls. For reports.
  std::string Describe(const void* address) const;
  // The same when another thread may hold the lock for ever: "" then.
  std::string TryDescribe(const void* address) const;

 private:
  struct Block {
    size_t bytes = 0;    // asked for
    size_t charged = 0;  // of the budget
    size_t taken = 0;    // of the heap
    History history;
  };
  struct Mapping {
    size_t bytes = 0;
    Physical* physical = nullptr;
    History history;
  };

  DeviceMemory(std::unique_ptr<Arena> arena, const Profile& profile,
               bool strict, size_t heap_bytes, size_t reserve_bytes);
  int NoMemory(size_t bytes) const;
  bool Charge(size_t bytes);
  void FreePhysicalLocked(Physical* physical);
  Block* FindBlock(uintptr_t address);
  void TellIfFreed(uintptr_t address) const;
  int CheckMapped(uintptr_t address, size_t bytes, const char* use);
  std::string DescribeLocked(uintptr_t address) const;

  std::unique_ptr<Arena> arena_;
  const size_t budget_;
  const size_t reserved_;
  const size_t rounding_;
  const size_t extra_;
  const size_t alignment_;
  const bool strict_;

  mutable std::mutex mutex_;
  Ranges heap_;
  Ranges reserve_;
  Ranges physical_;
  std::map<uintptr_t, Block> blocks_;
  std::map<uintptr_t, Block> freed_;  // the last ones, for reports
  std::map<uintptr_t, size_t> reservations_;
  std::map<uintptr_t, Mapping> mappings_;
  std::map<Physical*, std::unique_ptr<Physical>> handles_;
  size_t used_ = 0;
  size_t peak_ = 0;
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_MEMORY_DEVICE_MEMORY_H_
