// SPDX-License-Identifier: Apache-2.0
// Products of matrices whose numbers were made dense doubles first.
#ifndef BELAY_CANNSIM_OPS_V4_PRODUCT_H_
#define BELAY_CANNSIM_OPS_V4_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cannsim/ops/v4/scale.h"

namespace cannsim {

// Row-major.
struct Dense {
  size_t rows = 0;
  size_t columns = 0;
  std::vector<double> numbers;

  double* row(size_t i) { return numbers.data() + i * columns; }
  const double* row(size_t i) const { return numbers.data() + i * columns; }
};

// Number (i, j) = f(i, j).
template <typename F>
Dense MakeDense(int64_t rows, int64_t columns, const F& f) {
  Dense m{static_cast<size_t>(rows), static_cast<size_t>(columns), {}};
  m.numbers.reserve(m.rows * m.columns);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) m.numbers.push_back(f(i, j));
  }
  return m;
}

inline Dense Multiply(const Dense& a, const Dense& b) {
  Dense out{a.rows, b.columns, std::vector<double>(a.rows * b.columns, 0.0)};
  for (size_t i = 0; i < a.rows; ++i) {
    double* sums = out.row(i);
    for (size_t k = 0; k < a.columns; ++k) {
      const double x = a.row(i)[k];
      const double* right = b.row(k);
      for (size_t j = 0; j < b.columns; ++j) sums[j] += x * right[j];
    }
  }
  return out;
}

}  // namespace cannsim

#endif  // BELAY_CANNSIM_OPS_V4_PRODUCT_H_
