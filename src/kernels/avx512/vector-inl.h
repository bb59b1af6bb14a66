// SPDX-License-Identifier: Apache-2.0
// Small things on vectors. Only for files that are compiled for AVX-512.
#ifndef BELAY_KERNELS_AVX512_VECTOR_INL_H_
#define BELAY_KERNELS_AVX512_VECTOR_INL_H_

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace belay::kernels::avx512 {

// The four bytes at x + 4 * i in every lane.
inline __attribute__((always_inline)) __m512i UnitOf(const void* x, int64_t i) {
  int32_t unit;
  __builtin_memcpy(&unit, static_cast<const char*>(x) + 4 * i, sizeof(unit));
  return _mm512_set1_epi32(unit);
}

// Pair `i` of bf16 numbers at x in every lane.
inline __attribute__((always_inline)) __m512bh PairOf(const void* x,
                                                      int64_t i) {
  return reinterpret_cast<__m512bh>(UnitOf(x, i));
}

// The bits of the nearest bf16, ties to even, in the high half of each lane and
// something below. Not for NaN. VCVTNEPS2BF16 would lose subnormals.
inline __attribute__((always_inline)) __m512i NearestBf16(__m512 v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd =
      _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  return _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)),
                          odd);
}

// The nearest bf16 as float32.
inline __attribute__((always_inline)) __m512 RoundLanes(__m512 v) {
  return _mm512_castsi512_ps(_mm512_and_si512(
      NearestBf16(v), _mm512_set1_epi32(static_cast<int>(0xffff0000u))));
}

// 16 bf16; NaN stays NaN.
inline __attribute__((always_inline)) __m256i ToBf16(__m512 v) {
  const __m512i quiet =
      _mm512_or_si512(_mm512_castps_si512(v), _mm512_set1_epi32(0x400000));
  const __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(
      _mm512_srli_epi32(_mm512_mask_mov_epi32(NearestBf16(v), nan, quiet), 16));
}

}  // namespace belay::kernels::avx512

#endif  // BELAY_KERNELS_AVX512_VECTOR_INL_H_
