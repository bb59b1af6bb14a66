// SPDX-License-Identifier: Apache-2.0
// Elements by index, and small questions that operators with many arguments
// ask again and again.
#ifndef BELAY_CANNSIM_OPS_AT_H_
#define BELAY_CANNSIM_OPS_AT_H_

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include "cannsim/ops/define.h"

namespace cannsim {

// Where the element at an index lies, in elements. Fewer indices than axes
// leave the last ones at 0.
template <typename... I>
int64_t Place(const Array& a, I... index) {
  int64_t at = 0;
  size_t axis = 0;
  ((at += static_cast<int64_t>(index) * a.strides[axis++]), ...);
  return at;
}

template <typename... I>
double At(const Array& a, I... index) {
  return LoadF(a, Place(a, index...));
}

template <typename... I>
int64_t AtI(const Array& a, I... index) {
  return LoadI(a, Place(a, index...));
}

template <typename... I>
void Put(const Array& a, double value, I... index) {
  StoreF(a, Place(a, index...), value);
}

// Where each row begins: an entry for every index of all axes but the last
// `n_inner`, in row-major order.
inline std::vector<int64_t> RowsOf(const Array& a, int n_inner) {
  std::vector<int> axes(static_cast<size_t>(std::max(a.rank() - n_inner, 0)));
  std::iota(axes.begin(), axes.end(), 0);
  const Array outer = Only(a, axes);
  std::vector<int64_t> rows;
  Walk1(outer, [&](int64_t at) { rows.push_back(at); });
  return rows;
}

// A row of n numbers along the last axis.
inline std::vector<double> ReadRow(const Array& a, int64_t first) {
  std::vector<double> row(static_cast<size_t>(a.dims.back()));
  for (size_t i = 0; i < row.size(); ++i) {
    row[i] = LoadF(a, first + static_cast<int64_t>(i) * a.strides.back());
  }
  return row;
}

inline void WriteRow(const Array& a, int64_t first,
                     const std::vector<double>& row) {
  for (size_t i = 0; i < row.size(); ++i) {
    StoreF(a, first + static_cast<int64_t>(i) * a.strides.back(), row[i]);
  }
}

// Orders with NaN as the largest: a sort may meet any number.
inline bool IsLess(double a, double b) {
  return std::isnan(b) ? !std::isnan(a) : a < b;
}
inline bool IsGreater(double a, double b) { return IsLess(b, a); }

// Clients pass an empty tensor where they mean none.
inline bool Given(const aclTensor* t) {
  return t != nullptr && t->n_elements() > 0;
}
inline bool Given(const Array& a) { return a.present && a.n_elements() > 0; }

inline void NeedsDtype(Phase1& call, const aclTensor* t, aclDataType dtype,
                       const char* otherwise) {
  if (call.ok()) call.Require(t->dtype == dtype, otherwise);
}

// [n] or [n, 1].
inline bool IsColumn(const aclTensor* t, int64_t n) {
  return t->rank() >= 1 && t->dims[0] == n && t->n_elements() == n;
}

// `dims` without the last n, and `dims` with more behind.
inline Dims Leading(const Dims& dims, size_t n_last) {
  return {dims.begin(),
          dims.end() - static_cast<long>(std::min(n_last, dims.size()))};
}
inline Dims With(Dims dims, std::initializer_list<int64_t> more) {
  dims.insert(dims.end(), more);
  return dims;
}

inline bool IsText(const char* text, const char* wanted) {
  return text != nullptr && std::string(text) == wanted;
}

// A tensor whose first stride is given apart, as caches are: `stride` 0 or
// less leaves the tensor's own.
inline aclTensor WithFirstStride(const aclTensor& tensor, int64_t stride) {
  aclTensor changed = tensor;
  if (stride > 0 && !changed.strides.empty()) changed.strides[0] = stride;
  return changed;
}

// An index that an operator finds while it runs, as an AI core's exception.
int IndexOutOfRange(const char* what, int64_t index, int64_t n);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_OPS_AT_H_
