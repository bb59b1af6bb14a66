// SPDX-License-Identifier: Apache-2.0
// Packed codes (kernels/pack.h) to vectors of bf16 pairs. Only for files that
// are compiled for AVX-512.
//
// Nothing in those files may be an inline function that other files use too
// (std::min, say): the linker keeps one copy of it, which may be theirs.
#ifndef BELAY_KERNELS_AVX512_FORMATS_INL_H_
#define BELAY_KERNELS_AVX512_FORMATS_INL_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace belay::kernels::avx512 {

// What tiles-inl.h asks of a format, for x in bf16: a unit is a pair of
// columns.
struct Bf16Products {
  using Part = __m512;
  using Operand = __m512bh;
  static constexpr int64_t kXBlockBytes = 256;
  static constexpr bool kStreams = true;
  static constexpr int kGroupTokens = 8;
  static constexpr bool kInRegisters = false;

  static inline __attribute__((always_inline)) Part Start(const std::byte*,
                                                          int) {
    return _mm512_setzero_ps();
  }
  static inline __attribute__((always_inline)) Operand FromUnit(__m512i unit) {
    return reinterpret_cast<__m512bh>(unit);
  }
  static inline __attribute__((always_inline)) Part Dot(Part part, Operand w,
                                                        Operand x) {
    return _mm512_dpbf16_ps(part, w, x);
  }
  static inline __attribute__((always_inline)) __m512 AddPart(Part part,
                                                              __m512 scale,
                                                              const std::byte*,
                                                              int, __m512 sum) {
    return _mm512_fmadd_ps(part, scale, sum);
  }
};

// bf16 of a float that bf16 holds exactly.
constexpr uint16_t HighHalf(float x) {
  return static_cast<uint16_t>(__builtin_bit_cast(uint32_t, x) >> 16);
}

// The two bytes of the bf16 of every positive e4m3 code.
struct E4m3Table {
  alignas(64) uint8_t low[128] = {};
  alignas(64) uint8_t high[128] = {};

  constexpr E4m3Table() {
    for (int code = 0; code < 128; ++code) {
      const int mantissa = code & 7;
      const int exponent = code >> 3;
      float value =
          static_cast<float>(exponent > 0 ? 8 + mantissa : mantissa) * 0x1p-9f;
      for (int i = 1; i < exponent; ++i) value *= 2.0f;
      const uint16_t bits = HighHalf(value);
      low[code] = static_cast<uint8_t>(bits);
      high[code] = static_cast<uint8_t>(bits >> 8);
    }
  }
};

// Decoded blocks: as bf16 weights lie, a unit a step.
struct DecodedBf16 : Bf16Products {
  static constexpr bool kStreams = false;
  static constexpr int64_t kPanelTokens = 0;
  static constexpr int kStepUnits = 1;
  static constexpr int kSteps = 64;
  static constexpr int kScaleBytes = 0;

  inline __attribute__((always_inline)) void Decode(
      const std::byte* p, __m512bh (&w)[kStepUnits]) const {
    w[0] = reinterpret_cast<__m512bh>(_mm512_load_si512(p));
  }
};

struct Fp8Panel : DecodedBf16 {
  static constexpr int kParts = 1;
  static constexpr bool kOuterScale = true;
};

// With the scales of the parts in the weights.
struct Fp4Panel : DecodedBf16 {
  static constexpr int kParts = 4;
  static constexpr bool kOuterScale = false;
  static constexpr int kGroupTokens = 6;
  static constexpr bool kInRegisters = true;
  static constexpr bool kFinishScale = false;

  static inline __attribute__((always_inline)) __m512 Begin(__m512 sum) {
    return sum;
  }
  static inline __attribute__((always_inline)) __m512 AddPart(Part part, __m512,
                                                              const std::byte*,
                                                              int, __m512 sum) {
    return _mm512_add_ps(part, sum);
  }
  static inline __attribute__((always_inline)) __m512 Finish(__m512 block,
                                                             __m512, __m512) {
    return block;
  }
};

struct Fp8 : Bf16Products {
  using Panel = Fp8Panel;
  static constexpr int64_t kPanelTokens = 128;
  static constexpr E4m3Table kTable = {};
  static constexpr int kStepUnits = 2;
  static constexpr int kSteps = 32;
  static constexpr int kParts = 1;
  static constexpr int kScaleBytes = 0;
  static constexpr bool kOuterScale = true;
  static constexpr int64_t kVectorBytes = int64_t{kSteps} * 64;
  __m512i low0, low1, high0, high1;

  Fp8()
      : low0(_mm512_load_si512(kTable.low)),
        low1(_mm512_load_si512(kTable.low + 64)),
        high0(_mm512_load_si512(kTable.high)),
        high1(_mm512_load_si512(kTable.high + 64)) {}

  inline __attribute__((always_inline)) void Decode(
      const std::byte* p, __m512bh (&w)[kStepUnits]) const {
    Decode(_mm512_loadu_si512(p), w);
  }
  inline __attribute__((always_inline)) void Decode(
      __m512i codes, __m512bh (&w)[kStepUnits]) const {
    const __m512i low = _mm512_permutex2var_epi8(low0, codes, low1);
    const __m512i positive = _mm512_permutex2var_epi8(high0, codes, high1);
    // positive | (codes & 0x80)
    const __m512i high = _mm512_ternarylogic_epi32(
        positive, codes, _mm512_set1_epi8(static_cast<char>(0x80)), 0xf8);
    w[0] = reinterpret_cast<__m512bh>(_mm512_unpacklo_epi8(low, high));
    w[1] = reinterpret_cast<__m512bh>(_mm512_unpackhi_epi8(low, high));
  }
};

// The bf16 of the 16 codes, twice: VPERMW looks at five bits of the index, so
// that the neighbour's lowest bit does not matter.
struct E2m1Table {
  alignas(64) uint16_t values[32] = {};

  constexpr E2m1Table() {
    constexpr float kValues[8] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    for (int i = 0; i < 32; ++i) {
      const uint16_t sign = (i & 8) != 0 ? 0x8000 : 0;
      values[i] = static_cast<uint16_t>(HighHalf(kValues[i & 7]) | sign);
    }
  }
};

struct Fp4 : Bf16Products {
  using Panel = Fp4Panel;
  static constexpr int64_t kPanelTokens = 16;
  static constexpr E2m1Table kTable = {};
  static constexpr int kStepUnits = 4;
  static constexpr int kSteps = 16;
  static constexpr int kParts = 4;
  static constexpr int kScaleBytes = 1;
  static constexpr bool kOuterScale = false;
  static constexpr int64_t kVectorBytes =
      int64_t{kSteps} * 64 + int64_t{kParts} * 16;
  __m512i table;

  Fp4() : table(_mm512_load_si512(kTable.values)) {}

  inline __attribute__((always_inline)) void Decode(
      const std::byte* p, __m512bh (&w)[kStepUnits]) const {
    const __m512i words = _mm512_loadu_si512(p);
    const auto look_up = [this](__m512i index) {
      return reinterpret_cast<__m512bh>(_mm512_permutexvar_epi16(index, table));
    };
    w[0] = look_up(words);
    w[1] = look_up(_mm512_srli_epi16(words, 4));
    w[2] = look_up(_mm512_srli_epi16(words, 8));
    w[3] = look_up(_mm512_srli_epi16(words, 12));
  }

  // e8m0 codes of 16 rows as float32: their exponents; code 0 is the subnormal
  // 2^-127.
  static inline __m512 Scale(const std::byte* codes) {
    const __m512i lanes = _mm512_cvtepu8_epi32(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)));
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_slli_epi32(lanes, 23),
                                                _mm512_set1_epi32(0x00400000)));
  }
};

struct Bf16 : Bf16Products {
  static constexpr int64_t kPanelTokens = 0;
  static constexpr int kStepUnits = 1;
  static constexpr int kSteps = 64;
  static constexpr int kParts = 1;
  static constexpr int kScaleBytes = 0;
  static constexpr bool kOuterScale = false;
  static constexpr int64_t kVectorBytes = int64_t{kSteps} * 64;

  static inline __attribute__((always_inline)) __m512 AddPart(Part part, __m512,
                                                              const std::byte*,
                                                              int, __m512 sum) {
    return _mm512_add_ps(part, sum);
  }

  inline __attribute__((always_inline)) void Decode(
      const std::byte* p, __m512bh (&w)[kStepUnits]) const {
    w[0] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(p));
  }
};

}  // namespace belay::kernels::avx512

#endif  // BELAY_KERNELS_AVX512_FORMATS_INL_H_
