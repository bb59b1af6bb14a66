// SPDX-License-Identifier: Apache-2.0
// Views never own. A view is a dtype, a shape, the bytes between rows, and a
// pointer into somebody else's memory (host memory, or device memory of the
// back end that made it).
#ifndef BELAY_TENSOR_VIEW_H_
#define BELAY_TENSOR_VIEW_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace belay {

// A tensor whose rows (all dimensions but the first) are contiguous, and whose
// first dimension has a stride of its own, so that a rank's slice of a mapped
// weight is a view too. `Void` is void or const void.
template <typename Void>
class BasicTensorView {
 public:
  constexpr BasicTensorView() = default;
  // Contiguous.
  BasicTensorView(Void* data, DType dtype, const Shape& shape)
      : data_(data), dtype_(dtype), shape_(shape) {
    row_bytes_stride_ = row_bytes();
  }
  // With `row_bytes_stride` bytes between the starts of two rows.
  BasicTensorView(Void* data, DType dtype, const Shape& shape,
                  size_t row_bytes_stride)
      : data_(data),
        dtype_(dtype),
        shape_(shape),
        row_bytes_stride_(row_bytes_stride) {}
  // A mutable view is a const view.
  template <typename Other>
  requires(std::is_const_v<Void> && !std::is_const_v<Other>)
      BasicTensorView(const BasicTensorView<Other>& other)  // NOLINT: implicit
      : data_(other.data()),
        dtype_(other.dtype()),
        shape_(other.shape()),
        row_bytes_stride_(other.row_bytes_stride()) {}

  Void* data() const { return data_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t dim(int i) const { return shape_[i]; }
  bool empty() const { return data_ == nullptr; }
  int64_t n_rows() const { return shape_.rank() == 0 ? 1 : shape_[0]; }
  int64_t n_elements() const { return shape_.n_elements(); }

  // Elements and bytes of one row; a stride may be larger.
  int64_t row_elements() const {
    int64_t n = 1;
    for (int i = 1; i < shape_.rank(); ++i) n *= shape_[i];
    return n;
  }
  size_t row_bytes() const {
    return static_cast<size_t>(row_elements()) * DtypeBytes(dtype_);
  }
  size_t row_bytes_stride() const { return row_bytes_stride_; }
  // Bytes of all elements, gaps not counted.
  size_t bytes() const {
    return static_cast<size_t>(n_elements()) * DtypeBytes(dtype_);
  }
  bool is_contiguous() const {
    return n_rows() <= 1 || row_bytes_stride_ == row_bytes();
  }

  // Row `i` as T. Host views only; T must have the dtype's size.
  template <typename T>
  auto* row(int64_t i) const {
    using Byte =
        std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
    using Elem = std::conditional_t<std::is_const_v<Void>, const T, T>;
    return reinterpret_cast<Elem*>(static_cast<Byte*>(data_) +
                                   static_cast<size_t>(i) * row_bytes_stride_);
  }

  // All elements as T. Host, contiguous views only.
  template <typename T>
  auto as() const {
    using Elem = std::conditional_t<std::is_const_v<Void>, const T, T>;
    return std::span<Elem>(static_cast<Elem*>(data_),
                           static_cast<size_t>(n_elements()));
  }

  // Rows [begin, begin + n) as a view.
  BasicTensorView rows(int64_t begin, int64_t n) const {
    Shape shape = shape_;
    shape.set_dim(0, n);
    return BasicTensorView(row<std::byte>(begin), dtype_, shape,
                           row_bytes_stride_);
  }

  // The same contiguous memory under another shape of as many elements.
  BasicTensorView reshaped(const Shape& shape) const {
    return BasicTensorView(data_, dtype_, shape);
  }

 private:
  Void* data_ = nullptr;
  DType dtype_ = DType::kF32;
  Shape shape_;
  size_t row_bytes_stride_ = 0;
};

using TensorView = BasicTensorView<void>;
using ConstTensorView = BasicTensorView<const void>;

}  // namespace belay

#endif  // BELAY_TENSOR_VIEW_H_
