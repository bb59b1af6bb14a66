// SPDX-License-Identifier: Apache-2.0
// The address space of one device: one memory file mapped twice. Addresses
// that a program gets lie in the first mapping, which nobody may touch, as on a
// real card; the simulator works in the second, at a fixed distance.
#ifndef BELAY_CANNSIM_RUNTIME_MEMORY_ARENA_H_
#define BELAY_CANNSIM_RUNTIME_MEMORY_ARENA_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace cannsim {

class Arena {
 public:
  // `heap_bytes` of memory, and addresses for `reserve_bytes` more that are
  // backed by nothing until Map. Null and a sentence when the system refuses.
  static std::unique_ptr<Arena> Create(size_t heap_bytes, size_t reserve_bytes,
                                       std::string* error);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // Addresses as the program sees them.
  uintptr_t heap_begin() const { return device_; }
  uintptr_t reserve_begin() const { return device_ + heap_bytes_; }
  size_t heap_bytes() const { return heap_bytes_; }
  bool Owns(uintptr_t address) const {
    return address >= device_ && address - device_ < total_bytes();
  }

  // Where the simulator reads and writes what the program calls `address`.
  char* Worker(uintptr_t address) const {
    return worker_ + (address - device_);
  }

  // Physical memory for Map lies in the file at [heap_bytes, 2 heap_bytes).
  size_t physical_begin() const { return heap_bytes_; }

  // Backs [address, +bytes) of the reserve with the file from `file_offset`
  // (all multiples of the page size), or with nothing again.
  bool Map(uintptr_t address, size_t bytes, size_t file_offset);
  bool Unmap(uintptr_t address, size_t bytes);

  // Gives the pages of the file back to the system; they read as zero.
  void Discard(size_t file_offset, size_t bytes);

 private:
  Arena(int fd, char* device, char* worker, size_t heap_bytes,
        size_t reserve_bytes);
  size_t total_bytes() const { return heap_bytes_ + reserve_bytes_; }

  int fd_;
  uintptr_t device_;
  char* worker_;
  size_t heap_bytes_;
  size_t reserve_bytes_;
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_MEMORY_ARENA_H_
