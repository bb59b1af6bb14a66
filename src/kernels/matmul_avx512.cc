// SPDX-License-Identifier: Apache-2.0
// Steps of 128 columns: a row's codes become four vectors of 32 bf16, each
// multiplied pairwise with x by VDPBF16PS into 16 float32 sums, then acc +=
// sums * scale. Which columns stand in which lane follows from the cheapest
// decoding; x is packed in the same order.
//
// This file is compiled for AVX-512: nothing here may be an inline function
// that other files use too, since the linker keeps one copy of it.
#include "kernels/matmul_avx512.h"

#include "kernels/pack.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace belay::kernels::avx512 {
namespace {

constexpr int64_t kStep = 128;
constexpr int kVectors = 4;  // of 32 bf16, in a step

// Columns of a step in packed order.
struct Fp8Order {  // as byte interleaving within 128-bit blocks leaves them
  static constexpr int Column(int i) {
    const int half = i / 32 % 2;
    const int j = i % 32;
    return i / 64 * 64 + j / 8 * 16 + half * 8 + j % 8;
  }
};
struct Fp4Order {  // nibble by nibble of 16-bit words
  static constexpr int Column(int i) { return i % 32 * 4 + i / 32; }
};
struct PlainOrder {
  static constexpr int Column(int i) { return i; }
};

// bf16 of a float that bf16 holds exactly.
constexpr uint16_t HighHalf(float x) {
  return static_cast<uint16_t>(__builtin_bit_cast(uint32_t, x) >> 16);
}

template <class Order>
void Pack(const float* x, int64_t begin, int64_t n, int64_t n_cols,
          std::byte* packed) {
  auto* out = reinterpret_cast<uint16_t*>(packed) + begin;
  const int64_t end = begin + n == n_cols ? (n + kStep - 1) / kStep * kStep : n;
  int64_t step = 0;
  for (; step + kStep <= n; step += kStep) {
    for (int i = 0; i < kStep; ++i) {
      out[step + i] = HighHalf(x[step + Order::Column(i)]);
    }
  }
  for (; step < end; step += kStep) {
    for (int i = 0; i < kStep; ++i) {
      const int64_t col = step + Order::Column(i);
      out[step + i] = col < n ? HighHalf(x[col]) : uint16_t{0};
    }
  }
}

// Where a row's steps are. Packed rows stand between three others.
struct Row {
  const std::byte* codes;
  int64_t step_bytes;           // to the next step
  const float* scale;           // kFp8: of the row's blocks
  const std::byte* scale_code;  // kFp4
  int64_t scale_bytes;          // kFp4: to the next step's codes
};

// Which row of scales; the usual block heights need no division.
inline int64_t ScaleRow(const WeightView& w, int64_t row) {
  if (w.block_rows == 1) return row;
  return w.block_rows == 128 ? row / 128 : row / w.block_rows;
}

template <class Format>
inline Row RowAt(const WeightView& w, int64_t row) {
  constexpr int64_t kBytes = Format::kStepBytes;
  const auto stride = static_cast<int64_t>(w.row_bytes_stride);
  Row at = {};
  if (w.kind == WeightKind::kFp8) {
    at.scale = w.scale + ScaleRow(w, row) * w.scale_stride;
  }
  if (w.tile_rows == 1) {
    at.codes = w.codes + row * stride;
    at.step_bytes = kBytes;
    at.scale_bytes = 4;
    if (w.kind == WeightKind::kFp4) {
      at.scale_code = reinterpret_cast<const std::byte*>(
          w.scale_code + ScaleRow(w, row) * w.scale_stride);
    }
    return at;
  }
  const std::byte* tile = w.codes + row / kPackRows * stride;
  const int64_t place = row % kPackRows;
  at.step_bytes = kPackRows * kBytes;
  at.codes = tile + place * kBytes;
  at.scale_bytes = kPackRows * 4;
  at.scale_code = tile + w.n_cols / kStep * at.step_bytes + place * 4;
  return at;
}

inline void Prefetch(const std::byte* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
}

// The sums of one step are 16 lanes; a scale for each.
using Decoded = __m512bh[kVectors];

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

struct Fp8 {
  static constexpr E4m3Table kTable = {};
  static constexpr int64_t kStepBytes = 128;
  static constexpr bool kScaled = true;
  __m512i low0, low1, high0, high1;

  Fp8()
      : low0(_mm512_load_si512(kTable.low)),
        low1(_mm512_load_si512(kTable.low + 64)),
        high0(_mm512_load_si512(kTable.high)),
        high1(_mm512_load_si512(kTable.high + 64)) {}

  inline __attribute__((always_inline)) void Decode(const std::byte* p,
                                                    Decoded& w) const {
    for (int half = 0; half < 2; ++half) {
      const __m512i codes = _mm512_loadu_si512(p + 64 * half);
      const __m512i low = _mm512_permutex2var_epi8(low0, codes, low1);
      const __m512i positive = _mm512_permutex2var_epi8(high0, codes, high1);
      // positive | (codes & 0x80)
      const __m512i high = _mm512_ternarylogic_epi32(
          positive, codes, _mm512_set1_epi8(static_cast<char>(0x80)), 0xf8);
      w[2 * half] = reinterpret_cast<__m512bh>(_mm512_unpacklo_epi8(low, high));
      w[2 * half + 1] =
          reinterpret_cast<__m512bh>(_mm512_unpackhi_epi8(low, high));
    }
  }
  inline __m512 Scale(const Row& row, int64_t, int64_t block) const {
    return _mm512_set1_ps(row.scale[block]);
  }
};

struct E2m1Tables {
  // The bf16 of the 16 codes, twice: VPERMW looks at five bits of the index, so
  // that the neighbour's lowest bit does not matter.
  alignas(64) uint16_t values[32] = {};
  // Which of four scale codes a byte takes: byte 2 of each lane; 0x80 = zero.
  alignas(64) uint8_t place[64] = {};

  constexpr E2m1Tables() {
    constexpr float kValues[8] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    for (int i = 0; i < 32; ++i) {
      const uint16_t sign = (i & 8) != 0 ? 0x8000 : 0;
      values[i] = static_cast<uint16_t>(HighHalf(kValues[i & 7]) | sign);
    }
    for (int i = 0; i < 64; ++i) {
      place[i] = static_cast<uint8_t>(i % 4 == 2 ? i / 16 : 0x80);
    }
  }
};

struct Fp4 {
  static constexpr E2m1Tables kTables = {};
  static constexpr int64_t kStepBytes = 64;
  static constexpr bool kScaled = true;
  __m512i table, spread;

  Fp4()
      : table(_mm512_load_si512(kTables.values)),
        spread(_mm512_load_si512(kTables.place)) {}

  // A word holds four columns; its nibble k is in vector k. So lane l sums
  // columns 8l to 8l + 7, and each 128-bit block of lanes has one scale.
  inline __attribute__((always_inline)) void Decode(const std::byte* p,
                                                    Decoded& w) const {
    const __m512i words = _mm512_loadu_si512(p);
    const auto look_up = [this](__m512i index) {
      return reinterpret_cast<__m512bh>(_mm512_permutexvar_epi16(index, table));
    };
    w[0] = look_up(words);
    w[1] = look_up(_mm512_srli_epi16(words, 4));
    w[2] = look_up(_mm512_srli_epi16(words, 8));
    w[3] = look_up(_mm512_srli_epi16(words, 12));
  }
  inline __m512 Scale(const Row& row, int64_t step, int64_t) const {
    // Byte 2 of a lane, then 7 bits up: e8m0 as a float32's exponent; code 0 is
    // the subnormal 2^-127.
    int32_t codes;
    __builtin_memcpy(&codes, row.scale_code + step * row.scale_bytes, 4);
    const __m512i lanes = _mm512_shuffle_epi8(_mm512_set1_epi32(codes), spread);
    return _mm512_castsi512_ps(_mm512_max_epu32(_mm512_slli_epi32(lanes, 7),
                                                _mm512_set1_epi32(0x00400000)));
  }
};

struct Bf16 {
  static constexpr int64_t kStepBytes = 256;
  static constexpr bool kScaled = false;

  inline __attribute__((always_inline)) void Decode(const std::byte* p,
                                                    Decoded& w) const {
    for (int i = 0; i < kVectors; ++i) {
      w[i] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(p + 64 * i));
    }
  }
  inline __m512 Scale(const Row&, int64_t, int64_t) const {
    return _mm512_set1_ps(1.0f);
  }
};

// The sum of 16 lanes, halves first: always in this order.
inline float Sum(__m512 v) {
  const __m256 half =
      _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 quarter =
      _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
  const __m128 two = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

// The same sums of 16 vectors at once; lane i of the result is Sum(v[kAt(i)])
// with kAt(i) = i % 4 * 4 + i / 4.
inline __m512 SumAll(const __m512* v) {
  __m512 half[8];
  for (int i = 0; i < 8; ++i) {
    half[i] = _mm512_add_ps(_mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0x44),
                            _mm512_shuffle_f32x4(v[2 * i], v[2 * i + 1], 0xee));
  }
  __m512 quarter[4];  // four vectors each, one a 128-bit block
  for (int i = 0; i < 4; ++i) {
    quarter[i] =
        _mm512_add_ps(_mm512_shuffle_f32x4(half[2 * i], half[2 * i + 1], 0x88),
                      _mm512_shuffle_f32x4(half[2 * i], half[2 * i + 1], 0xdd));
  }
  __m512 two[2];
  for (int i = 0; i < 2; ++i) {
    two[i] = _mm512_add_ps(
        _mm512_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0x44),
        _mm512_shuffle_ps(quarter[2 * i], quarter[2 * i + 1], 0xee));
  }
  return _mm512_add_ps(_mm512_shuffle_ps(two[0], two[1], 0x88),
                       _mm512_shuffle_ps(two[0], two[1], 0xdd));
}

uint16_t RoundToBf16(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return static_cast<uint16_t>((bits >> 16) | 0x40u);
  }
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline void Store(const MatMulArgs& a, int64_t token, int64_t row,
                  float value) {
  const int64_t at = token * a.y_stride + (row - a.row_begin);
  if (a.y_bf16) {
    static_cast<uint16_t*>(a.y)[at] = RoundToBf16(value);
  } else {
    static_cast<float*>(a.y)[at] = value;
  }
}

const std::byte* PackedX(const MatMulArgs& a, int64_t token) {
  const int64_t at = a.x_index != nullptr ? a.x_index[token] : token;
  return a.x + at * static_cast<int64_t>(a.x_row_bytes);
}

// acc += one row's step times x's.
template <class Format>
inline __attribute__((always_inline)) __m512 MultiplyStep(__m512 acc,
                                                          const Decoded& w,
                                                          const __m512bh* x,
                                                          __m512 scale) {
  __m512 part = Format::kScaled ? _mm512_setzero_ps() : acc;
  for (int i = 0; i < kVectors; ++i) {
    part = _mm512_dpbf16_ps(part, w[i], x[i]);
  }
  return Format::kScaled ? _mm512_fmadd_ps(part, scale, acc) : part;
}

// One step of kRows rows for kTokens tokens.
template <class Format, int kRows, int kTokens>
inline __attribute__((always_inline)) void TileStep(
    const Format& format, const std::byte* const* codes, const __m512* scale,
    const std::byte* const* x, __m512 (&acc)[kRows * kTokens]) {
  Decoded w[kRows];
  for (int r = 0; r < kRows; ++r) format.Decode(codes[r], w[r]);
  for (int t = 0; t < kTokens; ++t) {
    __m512bh v[kVectors];
    for (int i = 0; i < kVectors; ++i) {
      v[i] = reinterpret_cast<__m512bh>(_mm512_loadu_si512(x[t] + 64 * i));
    }
    for (int r = 0; r < kRows; ++r) {
      __m512& sum = acc[r * kTokens + t];
      sum = MultiplyStep<Format>(sum, w[r], v, scale[r]);
    }
  }
}

// The last columns of a plain row that is no whole number of steps, zeros
// beyond: its codes, and for FP4 its scales.
template <class Format>
void CopyTail(const WeightView& w, int64_t row, std::byte* codes,
              std::byte* scales) {
  const int64_t begin = w.n_cols / kStep * kStep;
  const Row at = RowAt<Format>(w, row);
  const int64_t n_bytes = (w.n_cols - begin) * Format::kStepBytes / kStep;
  __builtin_memset(codes, 0, Format::kStepBytes);
  __builtin_memcpy(codes, at.codes + begin / kStep * at.step_bytes,
                   static_cast<size_t>(n_bytes));
  if (w.kind != WeightKind::kFp4) return;
  __builtin_memset(scales, 0, 4);
  __builtin_memcpy(scales, at.scale_code + begin / kStep * at.scale_bytes,
                   static_cast<size_t>((w.n_cols - begin + 31) / 32));
}

template <class Format, int kRows, int kTokens>
inline __attribute__((always_inline)) void RunTail(
    const MatMulArgs& a, const Format& format, int64_t row,
    const std::byte* const* x, __m512 (&acc)[kRows * kTokens]) {
  alignas(64) std::byte codes[kRows][Format::kStepBytes];
  std::byte scales[kRows][4];
  const std::byte* at[kRows];
  __m512 scale[kRows];
  const int64_t begin = a.weight->n_cols / kStep * kStep;
  for (int r = 0; r < kRows; ++r) {
    CopyTail<Format>(*a.weight, row + r, codes[r], scales[r]);
    at[r] = codes[r];
    Row tail = RowAt<Format>(*a.weight, row + r);
    tail.scale_code = scales[r];
    scale[r] = format.Scale(tail, 0, begin / a.weight->block_cols);
  }
  TileStep<Format, kRows, kTokens>(format, at, scale, x, acc);
}

// Bytes by which codes are asked for ahead of their use: rows of a tile are one
// stream when packed, and too short for the hardware to see when plain.
constexpr int64_t kAhead = 4096;

template <class Format, int kRows, int kTokens>
void RunTile(const MatMulArgs& a, const Format& format, int64_t row,
             int64_t token) {
  const WeightView& weight = *a.weight;
  const std::byte* x[kTokens];
  for (int t = 0; t < kTokens; ++t) x[t] = PackedX(a, token + t);
  __m512 acc[kRows * kTokens];
  for (__m512& sum : acc) sum = _mm512_setzero_ps();
  Row rows[kRows];
  const std::byte* codes[kRows];
  for (int r = 0; r < kRows; ++r) {
    rows[r] = RowAt<Format>(weight, row + r);
    codes[r] = rows[r].codes;
  }
  // Blocks of 32 columns have no counter of their own: they come by steps.
  const int64_t steps_per_block = weight.block_cols / kStep;
  int64_t block = 0;
  int64_t left = steps_per_block;
  const int64_t n_steps = weight.n_cols / kStep;
  for (int64_t step = 0; step < n_steps; ++step) {
    __m512 scale[kRows];
    for (int r = 0; r < kRows; ++r) {
      scale[r] = format.Scale(rows[r], step, block);
      for (int64_t i = 0; i < Format::kStepBytes; i += 64) {
        Prefetch(codes[r] + kAhead + i);
      }
    }
    TileStep<Format, kRows, kTokens>(format, codes, scale, x, acc);
    for (int r = 0; r < kRows; ++r) codes[r] += rows[r].step_bytes;
    for (int t = 0; t < kTokens; ++t) x[t] += 2 * kStep;
    if (--left == 0) {
      ++block;
      left = steps_per_block;
    }
  }
  if (n_steps * kStep < weight.n_cols) {
    RunTail<Format, kRows, kTokens>(a, format, row, x, acc);
  }
  if constexpr (kRows * kTokens == 16) {
    alignas(64) float sums[16];
    _mm512_store_ps(sums, SumAll(acc));
    for (int i = 0; i < 16; ++i) {
      Store(a, token + i % kTokens, row + i / kTokens, sums[i % 4 * 4 + i / 4]);
    }
  } else {
    for (int i = 0; i < kRows * kTokens; ++i) {
      Store(a, token + i % kTokens, row + i / kTokens, Sum(acc[i]));
    }
  }
}

// kRows rows for the tokens from `token` on, by fours, twos and ones.
template <class Format, int kRows>
void RunRest(const MatMulArgs& a, const Format& format, int64_t row,
             int64_t token) {
  if constexpr (kRows <= 2) {
    for (; token + 4 <= a.n_tokens; token += 4) {
      RunTile<Format, kRows, 4>(a, format, row, token);
    }
  }
  for (; token + 2 <= a.n_tokens; token += 2) {
    RunTile<Format, kRows, 2>(a, format, row, token);
  }
  if (token < a.n_tokens) RunTile<Format, kRows, 1>(a, format, row, token);
}

// Tokens that share a decoded step: with two rows, 16 sums in registers.
constexpr int64_t kManyTokens = 8;

template <class Format>
void Run(const MatMulArgs& a) {
  const Format format;
  // Eight tokens' x stays in the first-level cache while the rows pass by.
  int64_t token = 0;
  for (; token + kManyTokens <= a.n_tokens; token += kManyTokens) {
    int64_t row = a.row_begin;
    for (; row + 2 <= a.row_end; row += 2) {
      RunTile<Format, 2, kManyTokens>(a, format, row, token);
    }
    if (row < a.row_end) {
      RunTile<Format, 1, kManyTokens>(a, format, row, token);
    }
  }
  if (token == a.n_tokens) return;
  int64_t row = a.row_begin;
  if (a.n_tokens - token < 4) {
    for (; row + 4 <= a.row_end; row += 4) {
      RunRest<Format, 4>(a, format, row, token);
    }
  }
  for (; row + 2 <= a.row_end; row += 2) {
    RunRest<Format, 2>(a, format, row, token);
  }
  if (row < a.row_end) RunRest<Format, 1>(a, format, row, token);
}

}  // namespace

size_t PackedBytes(int64_t n_cols) {
  return static_cast<size_t>((n_cols + kStep - 1) / kStep * kStep) * 2;
}

void PackFp8(const float* x, int64_t begin, int64_t n, int64_t n_cols,
             std::byte* packed) {
  Pack<Fp8Order>(x, begin, n, n_cols, packed);
}
void PackFp4(const float* x, int64_t begin, int64_t n, int64_t n_cols,
             std::byte* packed) {
  Pack<Fp4Order>(x, begin, n, n_cols, packed);
}
void PackBf16(const float* x, int64_t begin, int64_t n, int64_t n_cols,
              std::byte* packed) {
  Pack<PlainOrder>(x, begin, n, n_cols, packed);
}

void RunFp8(const MatMulArgs& args) { Run<Fp8>(args); }
void RunFp4(const MatMulArgs& args) { Run<Fp4>(args); }
void RunBf16(const MatMulArgs& args) { Run<Bf16>(args); }

}  // namespace belay::kernels::avx512

#endif  // __x86_64__
