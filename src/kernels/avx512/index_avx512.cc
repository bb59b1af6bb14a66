// SPDX-License-Identifier: Apache-2.0
// The indexer: 64 rows in the lanes of four vectors, pairs of columns in each,
// as packed weights stand (kernels/pack.h).
#include "kernels/avx512/attention_avx512.h"

#if defined(__x86_64__)

#include "kernels/avx512/vector-inl.h"

namespace belay::kernels::avx512 {
namespace {

constexpr int kVectors = static_cast<int>(kTileRows) / 16;
constexpr size_t kHeads = 6;  // with four vectors each, they fill the registers

// Adds the shares of kT heads.
template <int kT>
void AddHeads(const IndexScoreParams& p, size_t head, __m512 (&sum)[kVectors]) {
  __m512 dot[kT][kVectors];
  for (auto& row : dot) {
    for (__m512& v : row) v = _mm512_setzero_ps();
  }
  const uint16_t* q = p.q + head * p.n_cols;
  for (size_t i = 0; i < p.n_cols / 2; ++i) {
    __m512bh rows[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      rows[v] = reinterpret_cast<__m512bh>(
          _mm512_loadu_si512(p.tile + 32 * (i * kVectors + v)));
    }
    for (int t = 0; t < kT; ++t) {
      const __m512bh pair = PairOf(q + static_cast<size_t>(t) * p.n_cols,
                                   static_cast<int64_t>(i));
      for (int v = 0; v < kVectors; ++v) {
        dot[t][v] = _mm512_dpbf16_ps(dot[t][v], rows[v], pair);
      }
    }
  }
  for (int t = 0; t < kT; ++t) {
    const __m512 weight =
        _mm512_set1_ps(p.weights[head + static_cast<size_t>(t)]);
    for (int v = 0; v < kVectors; ++v) {
      const __m512 relu =
          _mm512_max_ps(RoundLanes(dot[t][v]), _mm512_setzero_ps());
      sum[v] = _mm512_add_ps(sum[v], RoundLanes(_mm512_mul_ps(relu, weight)));
    }
  }
}

using AddFn = void (*)(const IndexScoreParams&, size_t, __m512 (&)[kVectors]);
constexpr AddFn kAddHeads[kHeads] = {AddHeads<1>, AddHeads<2>, AddHeads<3>,
                                     AddHeads<4>, AddHeads<5>, AddHeads<6>};

// 16 rows of 16 pairs to 16 pairs of 16 rows.
void Transpose(const __m512i (&rows)[16], __m512i (&out)[16]) {
  __m512i a[16];
  for (int i = 0; i < 16; i += 2) {
    a[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
    a[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
  }
  __m512i b[16];  // b[4 g + k]: pair k of each 128 bits, rows 4 g to 4 g + 3
  for (int i = 0; i < 16; i += 4) {
    b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
    b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
    b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
    b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
  }
  for (int k = 0; k < 4; ++k) {
    const __m512i c0 = _mm512_shuffle_i32x4(b[k], b[4 + k], 0x88);
    const __m512i c1 = _mm512_shuffle_i32x4(b[k], b[4 + k], 0xdd);
    const __m512i d0 = _mm512_shuffle_i32x4(b[8 + k], b[12 + k], 0x88);
    const __m512i d1 = _mm512_shuffle_i32x4(b[8 + k], b[12 + k], 0xdd);
    out[k] = _mm512_shuffle_i32x4(c0, d0, 0x88);
    out[8 + k] = _mm512_shuffle_i32x4(c0, d0, 0xdd);
    out[4 + k] = _mm512_shuffle_i32x4(c1, d1, 0x88);
    out[12 + k] = _mm512_shuffle_i32x4(c1, d1, 0xdd);
  }
}

// 32 float32 that are exact in bf16, as 16 pairs.
inline __m512i Narrow(const float* x) {
  const auto half = [](const float* p) {
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_loadu_si512(p), 16));
  };
  return _mm512_inserti64x4(_mm512_castsi256_si512(half(x)), half(x + 16), 1);
}

}  // namespace

void PackIndexTile(const float* rows, size_t n_rows, size_t n_cols,
                   uint16_t* tile) {
  for (size_t r = 0; r < kTileRows; r += 16) {
    for (size_t c = 0; c < n_cols; c += 32) {
      __m512i in[16];
      for (size_t i = 0; i < 16; ++i) {
        in[i] = r + i < n_rows ? Narrow(rows + (r + i) * n_cols + c)
                               : _mm512_setzero_si512();
      }
      __m512i out[16];
      Transpose(in, out);
      for (size_t i = 0; i < 16; ++i) {
        _mm512_storeu_si512(tile + 32 * ((c / 2 + i) * kVectors + r / 16),
                            out[i]);
      }
    }
  }
}

void IndexScores(const IndexScoreParams& p) {
  __m512 sum[kVectors];
  for (__m512& v : sum) v = _mm512_setzero_ps();
  const size_t n_groups = (p.n_heads + kHeads - 1) / kHeads;
  size_t h = 0;
  for (size_t i = 0; i < n_groups; ++i) {
    const size_t end = p.n_heads * (i + 1) / n_groups;
    kAddHeads[end - h - 1](p, h, sum);
    h = end;
  }
  for (size_t v = 0; v < kVectors; ++v) {
    _mm512_storeu_ps(p.scores + 16 * v, RoundLanes(sum[v]));
  }
}

}  // namespace belay::kernels::avx512

#endif  // __x86_64__
