// SPDX-License-Identifier: Apache-2.0
// Scales of quantised numbers.
#ifndef BELAY_CANNSIM_OPS_V4_SCALE_H_
#define BELAY_CANNSIM_OPS_V4_SCALE_H_

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "cannsim/ops/at.h"

namespace cannsim {

inline constexpr double kE4m3Largest = 448;
// What an all-zero block is taken for, where the scale is a power of two.
inline constexpr double kSmallestPeak = 1e-4;

inline double PeakOf(const double* first, size_t n) {
  double peak = 0;
  for (size_t i = 0; i < n; ++i) peak = std::max(peak, std::abs(first[i]));
  return peak;
}

// The least e with 2^e >= x > 0, exact.
inline int CeilLog2(double x) {
  int e = 0;
  return std::frexp(x, &e) == 0.5 ? e - 1 : e;
}

// A row to INT8 (limit 127) or INT4 (7), symmetric: scale = max|x| / limit as
// a float32, codes = rint(x / scale). A row of zeros has scale 0.
inline double QuantiseRow(const std::vector<double>& row, double limit,
                          std::vector<double>* codes) {
  const double scale =
      RoundTo(ACL_FLOAT, PeakOf(row.data(), row.size()) / limit);
  codes->clear();
  for (const double x : row) {
    codes->push_back(
        scale == 0 ? 0
                   : std::clamp(std::nearbyint(x / scale), -limit - 1, limit));
  }
  return scale;
}

// A scale that CANN's products take as INT64 or UINT64: a float32 in the lower
// half. Other dtypes as they are.
inline double LoadScale(const Array& a, int64_t at) {
  if (a.dtype != ACL_INT64 && a.dtype != ACL_UINT64) return LoadF(a, at);
  return std::bit_cast<float>(static_cast<uint32_t>(LoadI(a, at)));
}

inline bool IsScale(aclDataType dtype) {
  return dtype == ACL_FLOAT || dtype == ACL_BF16 || dtype == ACL_FLOAT16 ||
         dtype == ACL_INT64 || dtype == ACL_UINT64;
}

inline bool IsFp8(aclDataType dtype) {
  return dtype == ACL_FLOAT8_E4M3FN || dtype == ACL_FLOAT8_E5M2;
}

// Scale of number `k` in an MX tensor whose scales lie [..., pair, 2] after the
// leading place `first`: one a block of 32, two blocks a pair.
inline double MxScale(const Array& scale, int64_t first, int64_t k,
                      size_t pair_axis) {
  const int64_t block = k / 32;
  return LoadF(scale, first + block / 2 * scale.strides[pair_axis] +
                          block % 2 * scale.strides.back());
}

}  // namespace cannsim

#endif  // BELAY_CANNSIM_OPS_V4_SCALE_H_
