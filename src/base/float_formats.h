// SPDX-License-Identifier: Apache-2.0
// Number formats of DeepSeek-V4 checkpoints and activations: bf16, f16, e4m3fn,
// e2m1, e8m0, with the official rounding and scale rules. Scalar and exact; the
// SIMD versions in kernels/ are held against these.
//
// Source of the rules: DeepSeek-V4 inference/kernel.py (act_quant,
// fp4_act_quant), OCP Microscaling Formats v1.0 for e2m1 and e8m0, OFP8 for
// e4m3.
#ifndef BELAY_BASE_FLOAT_FORMATS_H_
#define BELAY_BASE_FLOAT_FORMATS_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace belay {

// --- bf16: the high half of a float32, round to nearest even. ---

inline uint16_t Bf16FromF32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((bits >> 16) | 0x40u);  // quiet NaN, sign kept
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float F32FromBf16(uint16_t x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

// The float32 nearest to `x` among the bf16 numbers.
inline float RoundToBf16(float x) { return F32FromBf16(Bf16FromF32(x)); }

// Rounds a double to bf16 in one step (through float32 it could round twice:
// round-to-odd keeps the float32 step from hiding the tie).
inline uint16_t Bf16FromF64(double x) {
  float f = static_cast<float>(x);
  if (static_cast<double>(f) != x && std::isfinite(f)) {
    uint32_t bits = std::bit_cast<uint32_t>(f);
    const bool too_far = std::abs(static_cast<double>(f)) > std::abs(x);
    if (too_far) --bits;  // now the neighbour towards zero
    f = std::bit_cast<float>(bits | 1u);
  }
  return Bf16FromF32(f);
}

inline float RoundF64ToBf16(double x) { return F32FromBf16(Bf16FromF64(x)); }

// --- f16 (IEEE binary16), round to nearest even, overflow to infinity. ---

inline uint16_t F16FromF32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t mag = bits & 0x7fffffffu;
  if (mag > 0x7f800000u) return static_cast<uint16_t>(sign | 0x7e00u);
  if (mag >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
  if (mag < 0x38800000u) {  // subnormal: the addition rounds to even
    const float shifted =
        std::bit_cast<float>(mag) + std::bit_cast<float>(0x3f000000u);
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000u));
  }
  const uint32_t rounded = mag + 0xfffu + ((mag >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

inline float F32FromF16(uint16_t x) {
  const uint32_t sign = static_cast<uint32_t>(x & 0x8000u) << 16;
  const uint32_t exponent = (x >> 10) & 0x1fu;
  const uint32_t mantissa = x & 0x3ffu;
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -value : value;
  }
  const uint32_t biased = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (biased << 23) | (mantissa << 13));
}

// --- e4m3fn: s eeee mmm, bias 7, no infinity, 0x7f / 0xff = NaN. ---

inline constexpr float kE4m3Max = 448.0f;

inline float F32FromE4m3(uint8_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x80u) << 24;
  const uint32_t exponent = (code >> 3) & 0xfu;
  const uint32_t mantissa = code & 7u;
  if (exponent == 0) {
    const float value = static_cast<float>(mantissa) * 0x1p-9f;
    return sign != 0 ? -value : value;
  }
  if (exponent == 15 && mantissa == 7) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  return std::bit_cast<float>(sign | ((exponent + 120u) << 23) |
                              (mantissa << 20));
}

// Round to nearest even; beyond +-448 saturates; NaN stays NaN.
inline uint8_t E4m3FromF32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t sign = (bits >> 24) & 0x80u;
  const uint32_t mag = bits & 0x7fffffffu;
  if (mag > 0x7f800000u) return static_cast<uint8_t>(sign | 0x7fu);
  if (mag >= 0x43e00000u) return static_cast<uint8_t>(sign | 0x7eu);  // 448
  if (mag < 0x3c800000u) {  // below 2^-6: steps of 2^-9, ties to even
    const float steps = std::bit_cast<float>(mag) * 512.0f;
    return static_cast<uint8_t>(sign |
                                static_cast<uint32_t>(std::nearbyint(steps)));
  }
  const uint32_t rounded = mag + 0x7ffffu + ((mag >> 20) & 1u);
  const uint32_t code = (rounded - (120u << 23)) >> 20;
  return static_cast<uint8_t>(sign | std::min(code, 0x7eu));
}

// --- e2m1: s ee m; values 0 .5 1 1.5 2 3 4 6. ---

inline constexpr std::array<float, 16> kE2m1Values = {
    0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
    -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

inline float F32FromE2m1(uint8_t code) { return kE2m1Values[code & 15u]; }

// Nearest, ties to the even code (.25 -> 0, .75 -> 1, 2.5 -> 2, 5 -> 4);
// saturates at 6. The sign of zero is kept.
inline uint8_t E2m1FromF32(float x) {
  const uint8_t sign = std::signbit(x) ? 8 : 0;
  const float mag = std::abs(x);
  uint8_t code = 0;
  if (mag > 5.0f) {
    code = 7;
  } else if (mag >= 3.5f) {
    code = 6;
  } else if (mag > 2.5f) {
    code = 5;
  } else if (mag >= 1.75f) {
    code = 4;
  } else if (mag > 1.25f) {
    code = 3;
  } else if (mag >= 0.75f) {
    code = 2;
  } else if (mag > 0.25f) {
    code = 1;
  }
  return sign | code;
}

// Two e2m1 codes a byte: the low nibble is the even index.
inline uint8_t PackE2m1(uint8_t even, uint8_t odd) {
  return static_cast<uint8_t>((even & 15u) | (odd << 4));
}

// --- e8m0: 2^(code - 127), code 255 = NaN. ---

inline constexpr uint8_t kE8m0Nan = 255;

inline float F32FromE8m0(uint8_t code) {
  if (code == kE8m0Nan) return std::numeric_limits<float>::quiet_NaN();
  if (code == 0) return 0x1p-127f;  // a float32 subnormal
  return std::bit_cast<float>(static_cast<uint32_t>(code) << 23);
}

// --- The official scale rule: 2^ceil(log2(fl(amax * c))) as an e8m0 code, from
// the float bits, with c = fl(1/448) or fl(1/6): a multiply, not a divide. ---

inline constexpr float kInvE4m3Max = 0.0022321429569274187f;
inline constexpr float kInvE2m1Max = 0.1666666716337204f;
inline constexpr float kActQuantFloor = 1e-4f;  // of amax, FP8 activations
inline constexpr float kFp4ActQuantFloor = 0x1.8p-124f;  // 6 * 2^-126

inline uint8_t ScaleCode(float amax, float inv_max) {
  const uint32_t bits = std::bit_cast<uint32_t>(amax * inv_max);
  const uint32_t exponent = (bits >> 23) & 0xffu;
  return static_cast<uint8_t>(exponent + ((bits & 0x7fffffu) != 0 ? 1u : 0u));
}

}  // namespace belay

#endif  // BELAY_BASE_FLOAT_FORMATS_H_
