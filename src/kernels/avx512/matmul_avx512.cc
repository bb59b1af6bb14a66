// SPDX-License-Identifier: Apache-2.0
// One output is one lane of a sum: in every block (a part of one, for FP4) of
// columns part = 0, part += the pairs of columns in order (VDPBF16PS), then
// sum += part * scale. Every output is computed so, whatever the rows and the
// tokens that are under way with it: they agree bit for bit.
//
// Codes are decoded again for each group of tokens: the decoding runs beside
// the products, on other ports, and costs less than a panel of decoded weights.
#include "kernels/avx512/matmul_avx512.h"

#if defined(__x86_64__)

#include "kernels/avx512/formats-inl.h"
#include "kernels/avx512/vector-inl.h"
#include "kernels/pack.h"

namespace belay::kernels::avx512 {
namespace {

constexpr int kTileVectors = static_cast<int>(kPackRows / kPackLanes);

// Tokens that share a decoded step at most.
constexpr int kMaxTokens = 8;
// Tokens whose sums are in memory at a time: in the second-level cache.
constexpr int64_t kChunkTokens = 256;
static_assert(kChunkTokens * kTileVectors * 64 <= kMinPanelBytes);

// Bytes by which codes are asked for ahead of their use.
constexpr int64_t kAhead = 4096;

inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

inline void Prefetch(const std::byte* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T0);
}

// Where the blocks of a tile are.
struct Tile {
  const std::byte* codes;
  int64_t width;                     // vectors of 16 rows
  const float* scale[kTileVectors];  // kFp8: of each vector, by block of scales
};

Tile TileAt(const WeightView& w, int64_t index) {
  Tile tile = {};
  tile.codes = w.codes + index * static_cast<int64_t>(w.row_bytes_stride);
  const int64_t row = index * kPackRows;
  tile.width =
      Min(kTileVectors, (w.n_rows - row + kPackLanes - 1) / kPackLanes);
  for (int64_t v = 0; w.kind == WeightKind::kFp8 && v < tile.width; ++v) {
    tile.scale[v] =
        w.scale + (row + v * kPackLanes) / w.block_rows * w.scale_stride;
  }
  return tile;
}

// One block of a tile.
struct Block {
  const std::byte* codes;
  int64_t width;
  float scale[kTileVectors];  // kFp8
};

template <class Format>
Block BlockAt(const WeightView& w, const Tile& tile, int64_t index) {
  Block block = {};
  block.codes = tile.codes + index * tile.width * Format::kVectorBytes;
  block.width = tile.width;
  if (w.kind == WeightKind::kFp8) {
    const int64_t at = index * kPackCols / w.block_cols;
    for (int64_t v = 0; v < tile.width; ++v) block.scale[v] = tile.scale[v][at];
  }
  return block;
}

// The scale of a part for the rows of vector v.
template <class Format>
inline __attribute__((always_inline)) __m512 ScaleOf(const Block& block,
                                                     int part, int64_t v) {
  if constexpr (Format::kParts > 1) {
    const std::byte* scales = block.codes + Format::kSteps * 64 * block.width;
    return Format::Scale(scales + (part * block.width + v) * kPackLanes);
  } else {
    return _mm512_set1_ps(block.scale[v]);
  }
}

template <class Format>
inline __attribute__((always_inline)) void AddPart(__m512 part, __m512 scale,
                                                   __m512* sum) {
  *sum = Format::kScaled ? _mm512_fmadd_ps(part, scale, *sum)
                         : _mm512_add_ps(part, *sum);
}

// Tokens [token, token + n) from column `col` on, and their sums
// [n, kTileVectors].
struct Chunk {
  int64_t token;
  int64_t n;
  int64_t col;
  __m512* sums;
};

// Adds a block to the sums [n_tokens, kTileVectors] of some tokens, whose x
// starts at the block's columns.
struct Tokens {
  const std::byte* const* x;
  __m512* sums;
};

// The parts of kV vectors of rows for kT tokens.
template <int kV, int kT>
using Parts = __m512[kV][kT];

// part += a step; `pair` is its first pair of columns in the block.
template <class Format, int kV, int kT>
inline __attribute__((always_inline)) void AddStep(const Format& format,
                                                   const std::byte* codes,
                                                   const std::byte* const* x,
                                                   int pair,
                                                   Parts<kV, kT>& part) {
  __m512bh w[kV][Format::kStepPairs];
  for (int64_t i = 0; i < kV; ++i) format.Decode(codes + i * 64, w[i]);
  for (int j = 0; j < Format::kStepPairs; ++j) {
    for (int t = 0; t < kT; ++t) {
      const __m512bh pair_of_x = PairOf(x[t], pair + j);
      for (int i = 0; i < kV; ++i) {
        part[i][t] = _mm512_dpbf16_ps(part[i][t], w[i][j], pair_of_x);
      }
    }
  }
}

// kV vectors of rows from v on, kT tokens.
template <class Format, int kV, int kT>
void MultiplyCodes(const Format& format, const Block& block, int64_t v,
                   const Tokens& tokens) {
  constexpr int kSteps = Format::kSteps / Format::kParts;
  const std::byte* codes = block.codes + v * 64;
  // Always in the order of the addresses: a pass over some of the vectors asks
  // for its share of the next bytes.
  const std::byte* ahead =
      block.codes + v * Format::kSteps * 64 +
      (kV == kTileVectors ? kAhead : block.width * Format::kVectorBytes);
  for (int p = 0; p < Format::kParts; ++p) {
    Parts<kV, kT> part;
    for (auto& row : part) {
      for (__m512& sum : row) sum = _mm512_setzero_ps();
    }
    for (int s = 0; s < kSteps; ++s) {
      for (int64_t i = 0; i < kV; ++i) Prefetch(ahead + i * 64);
      AddStep<Format, kV, kT>(format, codes, tokens.x,
                              (p * kSteps + s) * Format::kStepPairs, part);
      codes += block.width * 64;
      ahead += int64_t{kV} * 64;
    }
    for (int i = 0; i < kV; ++i) {
      const __m512 scale = ScaleOf<Format>(block, p, v + i);
      for (int64_t t = 0; t < kT; ++t) {
        AddPart<Format>(part[i][t], scale,
                        tokens.sums + t * kTileVectors + v + i);
      }
    }
  }
}

// Vectors of a tile.
struct Range {
  int64_t begin;
  int64_t end;
};

// The vectors `range` of a block, four, two or one at a time: as many as leave
// registers for the decoded step.
template <class Format, int kT>
void MultiplyBlock(const Format& format, const Block& block, Range range,
                   const Tokens& tokens) {
  constexpr int kV = kT <= (Format::kStepPairs <= 2 ? 4 : 2) ? 4 : 2;
  int64_t v = range.begin;
  for (; v + kV <= range.end; v += kV) {
    MultiplyCodes<Format, kV, kT>(format, block, v, tokens);
  }
  if (kV == 4 && v + 2 <= range.end) {
    MultiplyCodes<Format, 2, kT>(format, block, v, tokens);
    v += 2;
  }
  if (v < range.end) MultiplyCodes<Format, 1, kT>(format, block, v, tokens);
}

template <class Format>
using MultiplyFn = void (*)(const Format&, const Block&, Range, const Tokens&);
template <class Format>
constexpr MultiplyFn<Format> kMultiply[kMaxTokens] = {
    MultiplyBlock<Format, 1>, MultiplyBlock<Format, 2>,
    MultiplyBlock<Format, 3>, MultiplyBlock<Format, 4>,
    MultiplyBlock<Format, 5>, MultiplyBlock<Format, 6>,
    MultiplyBlock<Format, 7>, MultiplyBlock<Format, 8>};

// Writes the lanes of rows [row, row + 16) that were asked for.
inline void Store(const MatMulArgs& a, int64_t token, int64_t row, __m512 sum) {
  uint32_t lanes = 0xffff;
  if (row < a.row_begin) lanes &= 0xffffu << (a.row_begin - row);
  if (row + kPackLanes > a.row_end) lanes &= (1u << (a.row_end - row)) - 1;
  const auto mask = static_cast<__mmask16>(lanes);
  const int64_t at = token * a.y_stride + row - a.row_begin;
  if (a.y_bf16) {
    _mm256_mask_storeu_epi16(static_cast<uint16_t*>(a.y) + at, mask,
                             ToBf16(sum));
  } else {
    _mm512_mask_storeu_ps(static_cast<float*>(a.y) + at, mask, sum);
  }
}

// A whole tile of one token.
inline void StoreRow(const MatMulArgs& a, int64_t at, const __m512* sums) {
  for (int v = 0; v < kTileVectors; ++v) {
    if (a.y_bf16) {
      uint16_t* y = static_cast<uint16_t*>(a.y) + at + v * kPackLanes;
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), ToBf16(sums[v]));
    } else {
      _mm512_storeu_ps(static_cast<float*>(a.y) + at + v * kPackLanes, sums[v]);
    }
  }
}

const std::byte* PackedX(const MatMulArgs& a, int64_t token) {
  const int64_t at = a.x_index != nullptr ? a.x_index[token] : token;
  return a.x + at * static_cast<int64_t>(a.x_row_bytes);
}

// The vectors of tile `index` that hold rows which were asked for.
Range VectorsOf(const MatMulArgs& a, int64_t index, const Tile& tile) {
  const int64_t first = index * kTileVectors;
  const int64_t begin = a.row_begin / kPackLanes - first;
  const int64_t end = (a.row_end + kPackLanes - 1) / kPackLanes - first;
  return {begin > 0 ? begin : 0, Min(end, tile.width)};
}

// Stores a chunk's sums of the vectors `range` of tile `index`.
void StoreTile(const MatMulArgs& a, int64_t index, Range range,
               const Chunk& chunk) {
  const int64_t first = index * kPackRows;
  const bool whole = first >= a.row_begin && first + kPackRows <= a.row_end;
  for (int64_t t = 0; t < chunk.n; ++t) {
    if (whole) {
      StoreRow(a, (chunk.token + t) * a.y_stride + first - a.row_begin,
               chunk.sums + t * kTileVectors);
      continue;
    }
    for (int64_t v = range.begin; v < range.end; ++v) {
      Store(a, chunk.token + t, index * kPackRows + v * kPackLanes,
            chunk.sums[t * kTileVectors + v]);
    }
  }
}

// A chunk times one block, in groups of even sizes.
template <class Format>
void MultiplyTokens(const MatMulArgs& a, const Format& format,
                    const Block& block, Range range, const Chunk& chunk) {
  const int64_t n_groups = (chunk.n + kMaxTokens - 1) / kMaxTokens;
  int64_t t = 0;
  for (int64_t i = 0; i < n_groups; ++i) {
    const int64_t end = chunk.n * (i + 1) / n_groups;
    const std::byte* x[kMaxTokens];
    for (int64_t j = t; j < end; ++j) {
      x[j - t] = PackedX(a, chunk.token + j) + chunk.col * 2;
    }
    kMultiply<Format>[end - t - 1](format, block, range,
                                   {x, chunk.sums + t * kTileVectors});
    t = end;
  }
}

// Some tokens of a tile: block by block, so that a block's codes stay in the
// first-level cache while all tokens pass by.
template <class Format>
void RunTile(const MatMulArgs& a, const Format& format, int64_t index,
             Chunk chunk) {
  const Tile tile = TileAt(*a.weight, index);
  const Range range = VectorsOf(a, index, tile);
  chunk.sums = reinterpret_cast<__m512*>(a.panel);
  for (int64_t i = 0; i < chunk.n * kTileVectors; ++i) {
    chunk.sums[i] = _mm512_setzero_ps();
  }
  const int64_t n_blocks = (a.weight->n_cols + kPackCols - 1) / kPackCols;
  for (int64_t b = 0; b < n_blocks; ++b) {
    chunk.col = b * kPackCols;
    MultiplyTokens(a, format, BlockAt<Format>(*a.weight, tile, b), range,
                   chunk);
  }
  StoreTile(a, index, range, chunk);
}

template <class Format>
void RunFormat(const MatMulArgs& a) {
  const Format format;
  const int64_t end = (a.row_end + kPackRows - 1) / kPackRows;
  for (int64_t index = a.row_begin / kPackRows; index < end; ++index) {
    for (int64_t token = 0; token < a.n_tokens; token += kChunkTokens) {
      Chunk chunk = {};
      chunk.token = token;
      chunk.n = Min(kChunkTokens, a.n_tokens - token);
      RunTile(a, format, index, chunk);
    }
  }
}

}  // namespace

// A cache line more than the columns: rows that are a multiple of 4 KiB apart
// would all meet in the same lines of the first-level cache.
size_t PackedBytes(int64_t n_cols) {
  return static_cast<size_t>((n_cols + kPackCols - 1) / kPackCols * kPackCols) *
             2 +
         64;
}

void Pack(const float* x, int64_t begin, int64_t n, int64_t n_cols,
          std::byte* packed) {
  uint16_t* out = reinterpret_cast<uint16_t*>(packed) + begin;
  for (int64_t i = 0; i < n; i += 16) {
    const __mmask16 mask =
        n - i < 16 ? static_cast<__mmask16>((1u << (n - i)) - 1) : 0xffff;
    const __m512i v = _mm512_castps_si512(_mm512_maskz_loadu_ps(mask, x + i));
    _mm256_mask_storeu_epi16(out + i, mask,
                             _mm512_cvtepi32_epi16(_mm512_srli_epi32(v, 16)));
  }
  if (begin + n < n_cols) return;
  const size_t used = static_cast<size_t>(n_cols) * 2;
  __builtin_memset(packed + used, 0, PackedBytes(n_cols) - used);
}

void Run(const MatMulArgs& args) {
  if (args.n_tokens < 1) return;
  switch (args.weight->kind) {
    case WeightKind::kFp8:
      return RunFormat<Fp8>(args);
    case WeightKind::kFp4:
      return RunFormat<Fp4>(args);
    case WeightKind::kBf16:
      return RunFormat<Bf16>(args);
    default:
      return;  // Bf16MatMul() gives no kernel
  }
}

}  // namespace belay::kernels::avx512

#endif  // __x86_64__
