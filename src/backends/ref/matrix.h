// SPDX-License-Identifier: Apache-2.0
// float32 rows, in which ref computes, and the way in and out of views.
#ifndef BELAY_BACKENDS_REF_MATRIX_H_
#define BELAY_BACKENDS_REF_MATRIX_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/float_formats.h"
#include "tensor/block_format.h"
#include "tensor/view.h"

namespace belay::ref {

// [n_rows, n_cols] float32, zeroed, owned.
class Matrix {
 public:
  Matrix(int64_t n_rows, int64_t n_cols)
      : n_rows_(n_rows),
        n_cols_(n_cols),
        values_(static_cast<size_t>(n_rows * n_cols)) {}

  int64_t n_rows() const { return n_rows_; }
  int64_t n_cols() const { return n_cols_; }
  std::span<float> row(int64_t i) {
    return {values_.data() + i * n_cols_, static_cast<size_t>(n_cols_)};
  }
  std::span<const float> row(int64_t i) const {
    return {values_.data() + i * n_cols_, static_cast<size_t>(n_cols_)};
  }

 private:
  int64_t n_rows_;
  int64_t n_cols_;
  std::vector<float> values_;
};

// One element of a bf16 or f32 row.
inline float LoadElement(const ConstTensorView& view, int64_t row,
                         int64_t column) {
  if (view.dtype() == DType::kF32) return view.row<float>(row)[column];
  BELAY_CHECK(view.dtype() == DType::kBF16);
  return F32FromBf16(view.row<uint16_t>(row)[column]);
}

// Row `row` of a bf16 or f32 view, all dimensions but the first flattened.
inline void LoadRow(const ConstTensorView& view, int64_t row,
                    std::span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    out[i] = LoadElement(view, row, static_cast<int64_t>(i));
  }
}

// Rounds once to the dtype of `view` (bf16 or f32).
inline void StoreRow(std::span<const float> values, const TensorView& view,
                     int64_t row) {
  if (view.dtype() == DType::kF32) {
    std::copy(values.begin(), values.end(), view.row<float>(row));
    return;
  }
  BELAY_CHECK(view.dtype() == DType::kBF16);
  uint16_t* out = view.row<uint16_t>(row);
  for (size_t i = 0; i < values.size(); ++i) out[i] = Bf16FromF32(values[i]);
}

inline Matrix Load(const ConstTensorView& view) {
  Matrix out(view.n_rows(), view.row_elements());
  for (int64_t i = 0; i < out.n_rows(); ++i) LoadRow(view, i, out.row(i));
  return out;
}

inline void Store(const Matrix& values, const TensorView& view) {
  for (int64_t i = 0; i < values.n_rows(); ++i) {
    StoreRow(values.row(i), view, i);
  }
}

// A [n] bf16 or f32 vector.
inline std::vector<float> LoadVector(const ConstTensorView& view) {
  std::vector<float> out(static_cast<size_t>(view.n_elements()));
  LoadRow(view.reshaped({1, view.n_elements()}), 0, out);
  return out;
}

}  // namespace belay::ref

#endif  // BELAY_BACKENDS_REF_MATRIX_H_
