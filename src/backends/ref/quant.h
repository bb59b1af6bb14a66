// SPDX-License-Identifier: Apache-2.0
// act_quant and fp4_act_quant of the official kernel.py, one group at a time.
#ifndef BELAY_BACKENDS_REF_QUANT_H_
#define BELAY_BACKENDS_REF_QUANT_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>

#include "base/float_formats.h"

namespace belay::ref {

inline float AbsMax(std::span<const float> x) {
  float amax = 0.0f;
  for (const float v : x) amax = std::max(amax, std::abs(v));
  return amax;
}

// e8m0 code of the scale of one FP8 group: P2(max(amax, 1e-4), 1 / 448).
inline uint8_t Fp8GroupScale(std::span<const float> x) {
  return ScaleCode(std::max(AbsMax(x), kActQuantFloor), kInvE4m3Max);
}

// e8m0 code of the scale of one FP4 group: P2(max(amax, 6 * 2^-126), 1 / 6).
inline uint8_t Fp4GroupScale(std::span<const float> x) {
  return ScaleCode(std::max(AbsMax(x), kFp4ActQuantFloor), kInvE2m1Max);
}

// All 256 values of e4m3fn: decoding is a look-up in the matmul's inner loop.
inline const std::array<float, 256>& E4m3Table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> t{};
    for (int code = 0; code < 256; ++code) {
      t[static_cast<size_t>(code)] = F32FromE4m3(static_cast<uint8_t>(code));
    }
    return t;
  }();
  return table;
}

// x = e4(x / s) * s for every group of `group` values, in place.
inline void ActQuantInPlace(std::span<float> x, int group) {
  for (size_t i = 0; i < x.size(); i += static_cast<size_t>(group)) {
    const std::span<float> g = x.subspan(i, static_cast<size_t>(group));
    const float scale = F32FromE8m0(Fp8GroupScale(g));
    for (float& v : g) v = F32FromE4m3(E4m3FromF32(v / scale)) * scale;
  }
}

// x = e2(x / s) * s for every group of `group` values, in place.
inline void Fp4ActQuantInPlace(std::span<float> x, int group) {
  for (size_t i = 0; i < x.size(); i += static_cast<size_t>(group)) {
    const std::span<float> g = x.subspan(i, static_cast<size_t>(group));
    const float scale = F32FromE8m0(Fp4GroupScale(g));
    for (float& v : g) v = F32FromE2m1(E2m1FromF32(v / scale)) * scale;
  }
}

}  // namespace belay::ref

#endif  // BELAY_BACKENDS_REF_QUANT_H_
