// SPDX-License-Identifier: Apache-2.0
// A tensor in device memory as operators of CANN take it: an address, dims and
// strides in elements. A small value; never owns.
#ifndef BELAY_BACKENDS_CANN_DEVICE_ARRAY_H_
#define BELAY_BACKENDS_CANN_DEVICE_ARRAY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "base/error.h"
#include "cann_api/abi/types.h"
#include "tensor/view.h"

namespace belay::cann {

using cann_api::aclDataType;
using Dims = std::initializer_list<int64_t>;

constexpr size_t BytesOf(aclDataType dtype) {
  switch (dtype) {
    case cann_api::ACL_INT64:
    case cann_api::ACL_DOUBLE:
      return 8;
    case cann_api::ACL_FLOAT:
    case cann_api::ACL_INT32:
      return 4;
    case cann_api::ACL_BF16:
    case cann_api::ACL_FLOAT16:
    case cann_api::ACL_INT16:
      return 2;
    default:
      return 1;
  }
}

constexpr aclDataType AclDtype(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return cann_api::ACL_FLOAT;
    case DType::kF64:
      return cann_api::ACL_DOUBLE;
    case DType::kBF16:
      return cann_api::ACL_BF16;
    case DType::kF16:
      return cann_api::ACL_FLOAT16;
    case DType::kI16:
      return cann_api::ACL_INT16;
    case DType::kI32:
      return cann_api::ACL_INT32;
    case DType::kI64:
      return cann_api::ACL_INT64;
    case DType::kBool:
      return cann_api::ACL_BOOL;
    case DType::kI8:
      return cann_api::ACL_INT8;
    default:
      return cann_api::ACL_UINT8;
  }
}

struct Array {
  static constexpr int kMaxRank = 6;

  std::byte* data = nullptr;
  aclDataType dtype = cann_api::ACL_FLOAT;
  int rank = 0;
  std::array<int64_t, kMaxRank> dims = {};
  std::array<int64_t, kMaxRank> strides = {};

  Array() = default;
  // Contiguous.
  Array(void* address, aclDataType type, Dims shape)
      : data(static_cast<std::byte*>(address)), dtype(type) {
    BELAY_CHECK(shape.size() <= kMaxRank);
    for (const int64_t n : shape) dims[static_cast<size_t>(rank++)] = n;
    SetStrides();
  }

  int64_t dim(int i) const { return dims[static_cast<size_t>(i)]; }
  int64_t stride(int i) const { return strides[static_cast<size_t>(i)]; }
  bool empty() const { return data == nullptr; }
  int64_t n_elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dim(i);
    return n;
  }
  // Elements from the first to the last, both included.
  int64_t extent() const {
    int64_t last = 0;
    for (int i = 0; i < rank; ++i) last += (dim(i) - 1) * stride(i);
    return last + 1;
  }

  // Another shape of the same contiguous memory.
  Array Reshaped(Dims shape) const { return Array(data, dtype, shape); }
  // The same bytes as another dtype of that size.
  Array As(aclDataType type) const {
    Array a = *this;
    a.dtype = type;
    return a;
  }
  // [start, start + n) along an axis.
  Array Part(int axis, int64_t start, int64_t n) const {
    Array a = *this;
    a.data += static_cast<size_t>(start * stride(axis)) * BytesOf(dtype);
    a.dims[static_cast<size_t>(axis)] = n;
    return a;
  }
  // An axis of size n and stride `step` in front of `axis`; step 0 repeats.
  Array Insert(int axis, int64_t n = 1, int64_t step = 0) const {
    BELAY_CHECK(rank < kMaxRank);
    Array a = *this;
    ++a.rank;
    for (int i = a.rank - 1; i > axis; --i) {
      a.dims[static_cast<size_t>(i)] = dim(i - 1);
      a.strides[static_cast<size_t>(i)] = stride(i - 1);
    }
    a.dims[static_cast<size_t>(axis)] = n;
    a.strides[static_cast<size_t>(axis)] = step;
    return a;
  }
  Array Swapped(int i, int j) const {
    Array a = *this;
    std::swap(a.dims[static_cast<size_t>(i)], a.dims[static_cast<size_t>(j)]);
    std::swap(a.strides[static_cast<size_t>(i)],
              a.strides[static_cast<size_t>(j)]);
    return a;
  }

 private:
  void SetStrides() {
    int64_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      strides[static_cast<size_t>(i)] = step;
      step *= dim(i);
    }
  }
};

// A view of ours; its rows may be strided.
inline Array ArrayOf(const ConstTensorView& view) {
  Array a;
  a.data = static_cast<std::byte*>(const_cast<void*>(view.data()));  // NOLINT
  a.dtype = AclDtype(view.dtype());
  a.rank = view.shape().rank();
  int64_t step = 1;
  for (int i = a.rank - 1; i >= 0; --i) {
    a.dims[static_cast<size_t>(i)] = view.dim(i);
    a.strides[static_cast<size_t>(i)] = step;
    step *= view.dim(i);
  }
  if (a.rank > 0) {
    a.strides[0] = static_cast<int64_t>(view.row_bytes_stride() /
                                        DtypeBytes(view.dtype()));
  }
  return a;
}

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_DEVICE_ARRAY_H_
