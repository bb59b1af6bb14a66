// SPDX-License-Identifier: Apache-2.0
#include "tensor/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

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

void DiscardMemory(void* data, size_t bytes) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(data);
  const size_t skipped = AlignUp(begin, page) - begin;
  if (bytes < skipped + page) return;
  const size_t whole = (bytes - skipped) / page * page;
  // What cannot be given back stays: a wish, not a promise.
  static_cast<void>(
      madvise(static_cast<std::byte*>(data) + skipped, whole, MADV_DONTNEED));
}

TensorView Arena::Allocate(DType dtype, const Shape& shape) {
  const TensorView view(data_ + used_, dtype, shape);
  used_ += AlignUp(view.bytes(), kBufferAlignment);
  BELAY_CHECK(used_ <= bytes_);
  return view;
}

}  // namespace belay
