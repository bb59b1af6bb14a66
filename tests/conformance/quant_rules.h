// SPDX-License-Identifier: Apache-2.0
// The quantisation rules in the suite's own words, from base/float_formats.h
// only; format_test.cc holds them to the golden vectors bit for bit.
#ifndef BELAY_TESTS_CONFORMANCE_QUANT_RULES_H_
#define BELAY_TESTS_CONFORMANCE_QUANT_RULES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "base/float_formats.h"

namespace belay::conformance {

inline uint8_t ScaleRule(std::span<const float> group, float floor,
                         float inv_max) {
  float amax = floor;
  for (const float v : group) amax = std::max(amax, std::fabs(v));
  return ScaleCode(amax, inv_max);
}

inline uint8_t Fp8ScaleRule(std::span<const float> group) {
  return ScaleRule(group, kActQuantFloor, kInvE4m3Max);
}

inline uint8_t Fp4ScaleRule(std::span<const float> group) {
  return ScaleRule(group, kFp4ActQuantFloor, kInvE2m1Max);
}

inline void Fp8InPlaceRule(std::span<float> x, size_t group) {
  float scale = 0.0f;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % group == 0) scale = F32FromE8m0(Fp8ScaleRule(x.subspan(i, group)));
    x[i] = F32FromE4m3(E4m3FromF32(x[i] / scale)) * scale;
  }
}

inline void Fp4InPlaceRule(std::span<float> x, size_t group) {
  float scale = 0.0f;
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % group == 0) scale = F32FromE8m0(Fp4ScaleRule(x.subspan(i, group)));
    x[i] = F32FromE2m1(E2m1FromF32(x[i] / scale)) * scale;
  }
}

}  // namespace belay::conformance

#endif  // BELAY_TESTS_CONFORMANCE_QUANT_RULES_H_
