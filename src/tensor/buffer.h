// SPDX-License-Identifier: Apache-2.0
// Buffers own host memory; an arena hands out aligned pieces of one buffer.
#ifndef BELAY_TENSOR_BUFFER_H_
#define BELAY_TENSOR_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "tensor/view.h"

namespace belay {

// Alignment of every buffer and arena piece: a cache line twice over, and what
// 512-bit loads want.
inline constexpr size_t kBufferAlignment = 128;

constexpr size_t AlignUp(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Zeroed host memory, aligned to kBufferAlignment. Movable, not copyable.
class Buffer {
 public:
  Buffer() = default;

  // Fails with SYS-003 when the system has no memory. `bytes` may be 0.
  static StatusOr<Buffer> Create(size_t bytes);

  void* data() const { return data_.get(); }
  size_t bytes() const { return bytes_; }

  // A contiguous view at `offset` bytes.
  TensorView view(DType dtype, const Shape& shape, size_t offset = 0) const;

 private:
  struct Free {
    void operator()(void* p) const;
  };
  std::unique_ptr<void, Free> data_;
  size_t bytes_ = 0;
};

// Gives the whole pages inside [data, data + bytes) of anonymous memory back to
// the system; they read as zeros when they are touched again.
void DiscardMemory(void* data, size_t bytes);

// Places tensors one after another in memory that it borrows. Allocate() past
// the end is a bug of the layout, hence a CHECK.
class Arena {
 public:
  Arena() = default;
  Arena(void* data, size_t bytes)
      : data_(static_cast<std::byte*>(data)), bytes_(bytes) {}

  TensorView Allocate(DType dtype, const Shape& shape);
  size_t used_bytes() const { return used_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  size_t used_ = 0;
};

}  // namespace belay

#endif  // BELAY_TENSOR_BUFFER_H_
