// SPDX-License-Identifier: Apache-2.0
// Attention: scores with the columns of a row in the lanes, since rows are read
// as they are; values with 16 columns in the lanes and pairs of rows in each,
// which two shuffles make of two rows.
#include "kernels/avx512/attention_avx512.h"

#if defined(__x86_64__)

#include "kernels/avx512/formats-inl.h"
#include "kernels/avx512/vector-inl.h"

namespace belay::kernels::avx512 {
namespace {

constexpr size_t kSide = 4;  // rows and heads of a group of scores

inline size_t Min(size_t a, size_t b) { return a < b ? a : b; }

// The sums of the lanes of 16 vectors; lane 4 * (i % 4) + i / 4 of the result
// is that of v[i].
inline __m512 SumAll(const __m512* v) {
  __m512 half[8];
  for (size_t i = 0; i < 8; ++i) {
    half[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44),
                            _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xee));
  }
  __m512 quarter[4];  // four vectors each, one a 128-bit block
  for (size_t i = 0; i < 4; ++i) {
    quarter[i] =
        _mm512_add_ps(_mm512_shuffle_f32x4(half[2 * i], half[2 * i + 1], 0x88),
                      _mm512_shuffle_f32x4(half[2 * i], half[2 * i + 1], 0xdd));
  }
  __m512 two[2];
  for (size_t i = 0; i < 2; ++i) {
    two[i] = _mm512_add_ps(
        _mm512_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0x44),
        _mm512_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0xee));
  }
  return _mm512_add_ps(_mm512_shuffle_ps(two[0], two[1], 0x88),
                       _mm512_shuffle_ps(two[0], two[1], 0xdd));
}

// Four heads times four rows; where there are fewer, the last one again.
void ScoreGroup(const HeadTile& tile, const uint16_t* const* q,
                const uint16_t* const* rows, __m512 (&acc)[kSide * kSide]) {
  for (__m512& sum : acc) sum = _mm512_setzero_ps();
  for (size_t c = 0; c < tile.n_cols; c += 32) {
    __m512bh row[kSide];
    for (size_t j = 0; j < kSide; ++j) {
      row[j] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(rows[j] + c));
    }
    for (size_t h = 0; h < kSide; ++h) {
      const auto head =
          reinterpret_cast<__m512bh>(_mm512_loadu_si512(q[h] + c));
      for (size_t j = 0; j < kSide; ++j) {
        // Row j in places 4 j to 4 j + 3, so that SumAll leaves the rows of a
        // head side by side.
        acc[kSide * j + h] = _mm512_dpbf16_ps(acc[kSide * j + h], row[j], head);
      }
    }
  }
}

// 64 columns of kT heads: acc * r + sum over pairs of rows.
template <int kT>
void AddColumns(const HeadTile& tile, const uint16_t* p, const float* r,
                float* acc) {
  __m512 sum[kT][4];
  for (int t = 0; t < kT; ++t) {
    const __m512 factor = _mm512_set1_ps(r[t]);
    const float* from = acc + static_cast<size_t>(t) * tile.n_cols;
    for (size_t i = 0; i < 4; ++i) {
      sum[t][i] = _mm512_mul_ps(_mm512_loadu_ps(from + 16 * i), factor);
    }
  }
  for (size_t j = 0; j < tile.n_rows; j += 2) {
    const uint16_t* even = tile.rows + j * tile.n_cols;
    // Without a second row its weight is zero.
    const uint16_t* odd = j + 1 < tile.n_rows ? even + tile.n_cols : even;
    __m512bh v[4];
    for (size_t i = 0; i < 2; ++i) {
      const __m512i a = _mm512_loadu_si512(even + 32 * i);
      const __m512i b = _mm512_loadu_si512(odd + 32 * i);
      v[2 * i] = reinterpret_cast<__m512bh>(_mm512_unpacklo_epi16(a, b));
      v[2 * i + 1] = reinterpret_cast<__m512bh>(_mm512_unpackhi_epi16(a, b));
    }
    for (int t = 0; t < kT; ++t) {
      const __m512bh weights = PairOf(p + static_cast<size_t>(t) * kTileRows,
                                      static_cast<int64_t>(j / 2));
      for (size_t i = 0; i < 4; ++i) {
        sum[t][i] = _mm512_dpbf16_ps(sum[t][i], v[i], weights);
      }
    }
  }
  for (int t = 0; t < kT; ++t) {
    float* to = acc + static_cast<size_t>(t) * tile.n_cols;
    for (size_t i = 0; i < 4; ++i) _mm512_storeu_ps(to + 16 * i, sum[t][i]);
  }
}

// With four vectors of columns, six heads fill the registers.
constexpr size_t kHeads = 6;
using AddFn = void (*)(const HeadTile&, const uint16_t*, const float*, float*);
constexpr AddFn kAddColumns[kHeads] = {AddColumns<1>, AddColumns<2>,
                                       AddColumns<3>, AddColumns<4>,
                                       AddColumns<5>, AddColumns<6>};

}  // namespace

void Bf16FromE4m3(const uint8_t* codes, const uint8_t* scales, size_t n,
                  size_t group, uint16_t* row) {
  const Fp8 format;
  // What the unpacking of Decode takes apart.
  const __m512i order = _mm512_setr_epi64(0, 4, 1, 5, 2, 6, 3, 7);
  for (size_t i = 0; i < n; i += 64) {
    const __m512i ordered =
        _mm512_permutexvar_epi64(order, _mm512_loadu_si512(codes + i));
    __m512bh half[2];
    format.Decode(ordered, half);
    const __m512i exponent = _mm512_set1_epi16(
        static_cast<int16_t>((scales[i / group] - 127) * 128));
    for (size_t h = 0; h < 2; ++h) {
      const auto v = reinterpret_cast<__m512i>(half[h]);
      const __mmask32 some =
          _mm512_test_epi16_mask(v, _mm512_set1_epi16(0x7fff));
      _mm512_storeu_si512(row + i + 32 * h,
                          _mm512_mask_add_epi16(v, some, v, exponent));
    }
  }
}

void ScoreHeads(const HeadTile& tile, const uint16_t* q, float scale,
                float* s) {
  const __m512 factor = _mm512_set1_ps(scale);
  for (size_t j = 0; j < tile.n_rows; j += kSide) {
    const uint16_t* rows[kSide];
    for (size_t i = 0; i < kSide; ++i) {
      rows[i] = tile.rows + Min(j + i, tile.n_rows - 1) * tile.n_cols;
    }
    for (size_t h = 0; h < tile.n_heads; h += kSide) {
      const uint16_t* heads[kSide];
      for (size_t i = 0; i < kSide; ++i) {
        heads[i] = q + Min(h + i, tile.n_heads - 1) * tile.n_cols;
      }
      __m512 acc[kSide * kSide];
      ScoreGroup(tile, heads, rows, acc);
      alignas(64) float sums[kSide * kSide];  // [head, row]
      _mm512_store_ps(sums, _mm512_mul_ps(SumAll(acc), factor));
      for (size_t i = 0; i < Min(kSide, tile.n_heads - h); ++i) {
        __builtin_memcpy(s + (h + i) * kTileRows + j, sums + kSide * i,
                         kSide * sizeof(float));
      }
    }
  }
}

void AddValues(const HeadTile& tile, const uint16_t* p, const float* r,
               float* acc) {
  const size_t n_groups = (tile.n_heads + kHeads - 1) / kHeads;
  for (size_t c = 0; c < tile.n_cols; c += 64) {
    HeadTile columns = tile;
    columns.rows += c;
    size_t h = 0;
    for (size_t i = 0; i < n_groups; ++i) {
      const size_t end = tile.n_heads * (i + 1) / n_groups;
      kAddColumns[end - h - 1](columns, p + h * kTileRows, r + h,
                               acc + h * tile.n_cols + c);
      h = end;
    }
  }
}

void FinishHeads(const float* acc, const float* total, size_t n_heads,
                 size_t n_cols, uint16_t* out) {
  // Columns 0 to 3, 8 to 11, .. of 32 are in the first vector, the others in
  // the second.
  const __m512i first =
      _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
  const __m512i second = _mm512_setr_epi32(8, 9, 10, 11, 24, 25, 26, 27, 12, 13,
                                           14, 15, 28, 29, 30, 31);
  for (size_t h = 0; h < n_heads; ++h) {
    const __m512 divisor = _mm512_set1_ps(total[h]);
    for (size_t c = h * n_cols; c < (h + 1) * n_cols; c += 32) {
      const __m512 low = _mm512_div_ps(_mm512_loadu_ps(acc + c), divisor);
      const __m512 high = _mm512_div_ps(_mm512_loadu_ps(acc + c + 16), divisor);
      const auto store = [&](uint16_t* to, __m512i order) {
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                            ToBf16(_mm512_permutex2var_ps(low, order, high)));
      };
      store(out + c, first);
      store(out + c + 16, second);
    }
  }
}

}  // namespace belay::kernels::avx512

#endif  // __x86_64__
