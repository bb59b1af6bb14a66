// SPDX-License-Identifier: Apache-2.0
// Host memory that the runtime knows: allocated by it, or registered.
#ifndef BELAY_CANNSIM_RUNTIME_MEMORY_HOST_MEMORY_H_
#define BELAY_CANNSIM_RUNTIME_MEMORY_HOST_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace cannsim {

class HostMemory {
 public:
  int Allocate(size_t bytes, void** out);
  int Free(void* address);
  int Register(void* address, size_t bytes, void** device_address);
  int Unregister(void* address);

  // Whether [address, +bytes) is pinned: all of it in one piece that was
  // allocated or registered here.
  bool IsPinned(const void* address, size_t bytes) const;
  size_t n_live() const;

 private:
  struct Piece {
    size_t bytes = 0;
    bool registered = false;
  };

  mutable std::mutex mutex_;
  std::map<uintptr_t, Piece> pieces_;
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_MEMORY_HOST_MEMORY_H_
