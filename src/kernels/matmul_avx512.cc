// SPDX-License-Identifier: Apache-2.0
// Steps of 64 columns: a row's codes become two vectors of 32 bf16, each
// multiplied pairwise with x by VDPBF16PS into 16 float32 sums, then acc +=
// sums * scale. Which columns stand in which lane follows from the cheapest
// decoding; x is packed in the same order.
//
// This file is compiled for AVX-512: nothing here may be an inline function
// that other files use too, since the linker keeps one copy of it.
#include "kernels/matmul_avx512.h"

#if defined(__x86_64__)

#include <immintrin.h>

namespace belay::kernels::avx512 {
namespace {

constexpr int64_t kStep = 64;

// Columns of a step in packed order.
struct Fp8Order {  // as byte interleaving within 128-bit blocks leaves them
  static constexpr int Column(int i) {
    const int half = i / 32;
    const int j = i % 32;
    return j / 8 * 16 + half * 8 + j % 8;
  }
};
struct Fp4Order {  // low nibbles, then high ones
  static constexpr int Column(int i) { return i % 32 * 2 + i / 32; }
};
struct PlainOrder {
  static constexpr int Column(int i) { return i; }
};

// bf16 of a float that bf16 holds exactly.
uint16_t HighHalf(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16);
}

template <class Order>
void Pack(const float* x, int64_t begin, int64_t n, int64_t n_cols,
          std::byte* packed) {
  auto* out = reinterpret_cast<uint16_t*>(packed) + begin;
  const int64_t end = begin + n == n_cols ? (n + kStep - 1) / kStep * kStep : n;
  for (int64_t step = 0; step < end; step += kStep) {
    for (int i = 0; i < kStep; ++i) {
      const int64_t col = step + Order::Column(i);
      out[step + i] = col < n ? HighHalf(x[col]) : uint16_t{0};
    }
  }
}

// The codes of one step as bf16, and the scale of each float32 sum.
struct Decoded {
  __m512bh w0;
  __m512bh w1;
  __m512 scale;
};

// The low n bits; n may be 64.
__mmask64 FirstBytes(int64_t n) {
  return n >= 64 ? ~__mmask64{0} : (__mmask64{1} << n) - 1;
}

__m512i LoadBytes(const std::byte* p, int64_t n) {
  return n >= 64 ? _mm512_loadu_si512(p)
                 : _mm512_maskz_loadu_epi8(FirstBytes(n), p);
}

// One row of a weight: its codes, its scales, and where it stands in them.
struct Row {
  const std::byte* codes;
  const float* scale;         // kFp8, of the row's blocks
  const uint8_t* scale_code;  // kFp4
};

Row RowAt(const WeightView& w, int64_t row) {
  const int64_t scale_at = row / w.block_rows * w.scale_stride;
  return {w.codes + row * static_cast<int64_t>(w.row_bytes_stride),
          w.kind == WeightKind::kFp8 ? w.scale + scale_at : nullptr,
          w.kind == WeightKind::kFp4 ? w.scale_code + scale_at : nullptr};
}

// Rows are short beside what the hardware needs to see a stream, so tiles ahead
// are asked for by hand: bytes from a line of a tile of four rows to the same
// line of the tile at least 8 KiB on.
int64_t PrefetchBytes(const WeightView& w) {
  const auto tile = 4 * static_cast<int64_t>(w.row_bytes_stride);
  return tile >= 8192 ? tile : (8192 + tile - 1) / tile * tile;
}

inline void Prefetch(const std::byte* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
}

class Fp8Rows {
 public:
  explicit Fp8Rows(const WeightView& w) : w_(w), ahead_(PrefetchBytes(w)) {
    // The two bytes of the bf16 of every positive code.
    alignas(64) uint8_t low[128];
    alignas(64) uint8_t high[128];
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
    low0_ = _mm512_load_si512(low);
    low1_ = _mm512_load_si512(low + 64);
    high0_ = _mm512_load_si512(high);
    high1_ = _mm512_load_si512(high + 64);
  }

  inline Decoded Load(const Row& row, int64_t col, int64_t block) const {
    const std::byte* p = row.codes + col;
    Prefetch(p + ahead_);
    const __m512i codes = LoadBytes(p, w_.n_cols - col);
    const __m512i low = _mm512_permutex2var_epi8(low0_, codes, low1_);
    const __m512i positive = _mm512_permutex2var_epi8(high0_, codes, high1_);
    // positive | (codes & 0x80)
    const __m512i high = _mm512_ternarylogic_epi32(
        positive, codes, _mm512_set1_epi8(static_cast<char>(0x80)), 0xf8);
    return {reinterpret_cast<__m512bh>(_mm512_unpacklo_epi8(low, high)),
            reinterpret_cast<__m512bh>(_mm512_unpackhi_epi8(low, high)),
            _mm512_set1_ps(row.scale[block])};
  }

 private:
  const WeightView& w_;
  int64_t ahead_;
  __m512i low0_, low1_, high0_, high1_;
};

class Fp4Rows {
 public:
  explicit Fp4Rows(const WeightView& w) : w_(w), ahead_(PrefetchBytes(w)) {
    // The bf16 of the 16 codes, twice: VPERMW looks at five bits of the index,
    // so that the neighbour's lowest bit does not matter.
    static constexpr float kValues[8] = {0, .5f, 1, 1.5f, 2, 3, 4, 6};
    alignas(64) uint16_t table[32];
    for (int i = 0; i < 32; ++i) {
      const uint16_t sign = (i & 8) != 0 ? 0x8000 : 0;
      table[i] = HighHalf(kValues[i & 7]) | sign;
    }
    table_ = _mm512_load_si512(table);
    alignas(64) uint8_t spread[64];
    for (int i = 0; i < 64; ++i) {
      const uint8_t from = i < 32 ? 0 : 1;
      spread[i] = i % 4 == 2 ? from : 0x80;  // 0x80: zero
    }
    spread_ = _mm512_load_si512(spread);
  }

  inline Decoded Load(const Row& row, int64_t col, int64_t) const {
    const std::byte* p = row.codes + col / 2;
    Prefetch(p + ahead_);
    const int64_t n_bytes = (w_.n_cols - col) / 2;
    const __m256i bytes =
        n_bytes >= 32 ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))
                      : _mm256_maskz_loadu_epi8(
                            static_cast<__mmask32>(FirstBytes(n_bytes)), p);
    const __m512i words = _mm512_cvtepu8_epi16(bytes);
    // Both scales of the step; a last block alone has no neighbour to read.
    const uint8_t* code = row.scale_code + col / 32;
    uint16_t both = code[0];
    if (n_bytes > 16) __builtin_memcpy(&both, code, sizeof(both));
    // Sums 0..7 belong to the first block of 32 columns, 8..15 to the second.
    // Byte 2 of a lane, then 7 bits up: e8m0 as a float32's exponent; code 0 is
    // the subnormal 2^-127.
    const __m512i spread = _mm512_shuffle_epi8(
        _mm512_set1_epi16(static_cast<int16_t>(both)), spread_);
    const __m512i scale = _mm512_max_epu32(_mm512_slli_epi32(spread, 7),
                                           _mm512_set1_epi32(0x00400000));
    return {reinterpret_cast<__m512bh>(_mm512_permutexvar_epi16(words, table_)),
            reinterpret_cast<__m512bh>(
                _mm512_permutexvar_epi16(_mm512_srli_epi16(words, 4), table_)),
            _mm512_castsi512_ps(scale)};
  }

 private:
  const WeightView& w_;
  int64_t ahead_;
  __m512i table_;
  __m512i spread_;
};

class Bf16Rows {
 public:
  explicit Bf16Rows(const WeightView& w) : w_(w), ahead_(PrefetchBytes(w)) {}

  inline Decoded Load(const Row& row, int64_t col, int64_t) const {
    const std::byte* p = row.codes + 2 * col;
    Prefetch(p + ahead_);
    Prefetch(p + ahead_ + 64);
    const int64_t n_bytes = 2 * (w_.n_cols - col);
    const __m512i w1 =
        n_bytes > 64 ? LoadBytes(p + 64, n_bytes - 64) : _mm512_setzero_si512();
    return {reinterpret_cast<__m512bh>(LoadBytes(p, n_bytes)),
            reinterpret_cast<__m512bh>(w1), _mm512_set1_ps(1.0f)};
  }

 private:
  const WeightView& w_;
  int64_t ahead_;
};

// The sum of 16 lanes, halves first: always in this order.
inline float Sum(__m512 v) { return _mm512_reduce_add_ps(v); }

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

template <int kRows, int kTokens, class Rows>
void RunTile(const MatMulArgs& a, const Rows& rows, int64_t row,
             int64_t token) {
  const std::byte* x[kTokens];
  for (int t = 0; t < kTokens; ++t) {
    const int64_t at = a.x_index != nullptr ? a.x_index[token + t] : token + t;
    x[t] = a.x + at * static_cast<int64_t>(a.x_row_bytes);
  }
  __m512 acc[kRows][kTokens];
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTokens; ++t) acc[r][t] = _mm512_setzero_ps();
  }
  Row row_at[kRows];
  for (int r = 0; r < kRows; ++r) row_at[r] = RowAt(*a.weight, row + r);
  int64_t block = 0;  // of scales
  int64_t block_end = a.weight->block_cols;
  for (int64_t col = 0; col < a.weight->n_cols; col += kStep) {
    if (col == block_end) {
      ++block;
      block_end += a.weight->block_cols;
    }
    Decoded w[kRows];
    for (int r = 0; r < kRows; ++r) w[r] = rows.Load(row_at[r], col, block);
    for (int t = 0; t < kTokens; ++t) {
      const std::byte* at = x[t] + 2 * col;
      const auto x0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(at));
      const auto x1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(at + 64));
      for (int r = 0; r < kRows; ++r) {
        __m512 part = _mm512_dpbf16_ps(_mm512_setzero_ps(), w[r].w0, x0);
        part = _mm512_dpbf16_ps(part, w[r].w1, x1);
        acc[r][t] = _mm512_fmadd_ps(part, w[r].scale, acc[r][t]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTokens; ++t) {
      Store(a, token + t, row + r, Sum(acc[r][t]));
    }
  }
}

// kRows rows for the tokens from `token` on, by fours, twos and ones.
template <int kRows, class Rows>
void RunRest(const MatMulArgs& a, const Rows& rows, int64_t row,
             int64_t token) {
  for (; token + 4 <= a.n_tokens; token += 4) {
    RunTile<kRows, 4>(a, rows, row, token);
  }
  for (; token + 2 <= a.n_tokens; token += 2) {
    RunTile<kRows, 2>(a, rows, row, token);
  }
  if (token < a.n_tokens) RunTile<kRows, 1>(a, rows, row, token);
}

template <class Rows>
void Run(const MatMulArgs& a) {
  const Rows rows(*a.weight);
  int64_t row = a.row_begin;
  for (; row + 4 <= a.row_end; row += 4) {
    // Many tokens share a decoded step of few rows: 16 sums in registers.
    int64_t token = 0;
    for (; token + 8 <= a.n_tokens; token += 8) {
      RunTile<2, 8>(a, rows, row, token);
      RunTile<2, 8>(a, rows, row + 2, token);
    }
    RunRest<4>(a, rows, row, token);
  }
  for (; row < a.row_end; ++row) RunRest<1>(a, rows, row, 0);
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

void RunFp8(const MatMulArgs& args) { Run<Fp8Rows>(args); }
void RunFp4(const MatMulArgs& args) { Run<Fp4Rows>(args); }
void RunBf16(const MatMulArgs& args) { Run<Bf16Rows>(args); }

}  // namespace belay::kernels::avx512

#endif  // __x86_64__
