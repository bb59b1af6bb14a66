// SPDX-License-Identifier: Apache-2.0
#include "tensor/buffer.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "base/error_ids.h"

namespace belay {

void Buffer::Free::operator()(void* p) const { std::free(p); }

StatusOr<Buffer> Buffer::Create(size_t bytes) {
  Buffer buffer;
  if (bytes == 0) return buffer;
  // Not memory from calloc: the alignment; but large blocks are fresh from the
  // kernel, and the memset places the pages where this thread runs.
  void* data =
      std::aligned_alloc(kBufferAlignment, AlignUp(bytes, kBufferAlignment));
  if (data == nullptr) {
    return MakeError(kSysOutOfMemory,
                     {.where = "",
                      .what = "",
                      .expected = std::to_string(bytes) + " bytes",
                      .got = ""});
  }
  std::memset(data, 0, bytes);
  buffer.data_.reset(data);
  buffer.bytes_ = bytes;
  return buffer;
}

TensorView Buffer::view(DType dtype, const Shape& shape, size_t offset) const {
  const TensorView view(static_cast<std::byte*>(data()) + offset, dtype, shape);
  BELAY_CHECK(offset + view.bytes() <= bytes_);
  return view;
}

TensorView Arena::Allocate(DType dtype, const Shape& shape) {
  const TensorView view(data_ + used_, dtype, shape);
  used_ += AlignUp(view.bytes(), kBufferAlignment);
  BELAY_CHECK(used_ <= bytes_);
  return view;
}

}  // namespace belay
