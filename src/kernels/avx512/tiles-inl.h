// SPDX-License-Identifier: Apache-2.0
// The loops of the packed kernels (kernels/pack.h), over what a format does in
// registers. Only for files that are compiled for AVX-512; each gets a copy of
// its own (formats-inl.h says why).
//
// One output is one lane of a sum: in every block (a part of one, for formats
// with several scales a block) of columns part = its start, part += the units
// of columns in order, then sum += part * scale, or, kInRegisters, the parts
// are added first and the block joins the sum. Every output is computed so,
// whatever the rows and the tokens that are under way with it: they agree bit
// for bit.
//
// For few tokens codes are decoded in registers, again for each group of them:
// that runs beside the products, mostly on other ports. For many a block is
// decoded once, to a panel in the first-level cache (Format::Panel).
//
// A format has
//   Part, Operand    registers of sums and of decoded codes
//   kStepUnits       operands that 64 bytes of codes decode to; each holds one
//                    unit of columns, 4 bytes of packed x, of 16 rows
//   kSteps           steps of a block of 128 columns
//   kParts           parts of a block that are scaled one by one
//   kScaleBytes      of a row's scale of a part in the block; 0: none there
//   kOuterScale      whether WeightView::scale counts
//   kVectorBytes     of 16 rows of a block
//   kXBlockBytes     of a block in a packed row of x
//   kStreams         whether codes come from memory: a panel's do not
//   kPanelTokens     tokens from which a panel pays; 0: never
//   kGroupTokens     tokens that share a decoded step at most
//   kInRegisters     whether the parts of a block are added in registers first;
//                    then Begin and Finish say what a block starts with and how
//                    it joins the sum, and kFinishScale that the scale comes
//                    only there
//   Decode, FromUnit, Dot, Start, AddPart, and Scale with kScaleBytes
//   CanDecode and DecodeBlock, a Block and its Panel, with kPanelTokens
#ifndef BELAY_KERNELS_AVX512_TILES_INL_H_
#define BELAY_KERNELS_AVX512_TILES_INL_H_

#include "kernels/avx512/vector-inl.h"
#include "kernels/matmul.h"
#include "kernels/pack.h"

namespace belay::kernels::avx512 {
namespace {

constexpr int kTileVectors = static_cast<int>(kPackRows / kPackLanes);

// The largest kGroupTokens.
constexpr int kMaxTokens = 8;
// Tokens whose sums are in memory at a time: in the second-level cache.
constexpr int64_t kChunkTokens = 256;
// Operands of a decoded block.
constexpr int64_t kPanelVectors = kPackCols / 2 * kTileVectors;
static_assert((kChunkTokens * kTileVectors + kPanelVectors) * 64 <=
              kMinPanelBytes);

// Bytes by which codes are asked for ahead of their use, into the second-level
// cache: the first level can wait for few lines at a time.
constexpr int64_t kAhead = 8192;

inline int64_t Min(int64_t a, int64_t b) { return a < b ? a : b; }

inline void Prefetch(const std::byte* p) {
  _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
}

// Where the blocks of a tile are.
struct Tile {
  const std::byte* codes;
  int64_t width;                     // vectors of 16 rows
  const float* scale[kTileVectors];  // by block of scales, or null
};

inline Tile TileAt(const WeightView& w, int64_t index) {
  Tile tile = {};
  tile.codes = w.codes + index * static_cast<int64_t>(w.row_bytes_stride);
  const int64_t row = index * kPackRows;
  tile.width =
      Min(kTileVectors, (w.n_rows - row + kPackLanes - 1) / kPackLanes);
  for (int64_t v = 0; w.scale != nullptr && v < tile.width; ++v) {
    tile.scale[v] =
        w.scale + (row + v * kPackLanes) / w.block_rows * w.scale_stride;
  }
  return tile;
}

// One block of a tile.
struct Block {
  const std::byte* codes;
  const std::byte* scales;  // of the parts, where they have some
  int64_t width;
  float scale[kTileVectors];  // 1 where the weight has none of its own
};

template <class Format>
Block BlockAt(const WeightView& w, const Tile& tile, int64_t index) {
  Block block = {};
  block.codes = tile.codes + index * tile.width * Format::kVectorBytes;
  block.scales = block.codes + Format::kSteps * 64 * tile.width;
  block.width = tile.width;
  if constexpr (Format::kOuterScale) {
    const int64_t at = index * kPackCols / w.block_cols;
    for (int64_t v = 0; v < tile.width; ++v) {
      block.scale[v] = tile.scale[v] != nullptr ? tile.scale[v][at] : 1.0f;
    }
  }
  return block;
}

// The scale of a part for the rows of vector v.
template <class Format>
inline __attribute__((always_inline)) __m512 ScaleOf(const Block& block,
                                                     int part, int64_t v) {
  if constexpr (Format::kScaleBytes == 0) {
    return _mm512_set1_ps(block.scale[v]);
  } else {
    const __m512 lanes =
        Format::Scale(block.scales + (part * block.width + v) * kPackLanes *
                                         Format::kScaleBytes);
    if constexpr (Format::kOuterScale) {
      return _mm512_mul_ps(lanes, _mm512_set1_ps(block.scale[v]));
    }
    return lanes;
  }
}

// Tokens [token, token + n) from some block of columns on, and their sums
// [n, kTileVectors].
struct Chunk {
  int64_t token;
  int64_t n;
  int64_t x_offset;  // bytes of the block in a packed row
  __m512* sums;
};

// Adds a block to the sums [n_tokens, kTileVectors] of some tokens, whose x
// starts at the block's columns.
struct Tokens {
  const std::byte* const* x;
  __m512* sums;
};

// The parts of kV vectors of rows for kT tokens.
template <class Format, int kV, int kT>
using Parts = typename Format::Part[kV][kT];

// part += a step; `unit` is its first one in the block.
template <class Format, int kV, int kT>
inline __attribute__((always_inline)) void AddStep(
    const Format& format, const std::byte* codes, const std::byte* const* x,
    int unit, Parts<Format, kV, kT>& part) {
  typename Format::Operand w[kV][Format::kStepUnits];
  for (int64_t i = 0; i < kV; ++i) format.Decode(codes + i * 64, w[i]);
  for (int j = 0; j < Format::kStepUnits; ++j) {
    for (int t = 0; t < kT; ++t) {
      const auto unit_of_x = Format::FromUnit(UnitOf(x[t], unit + j));
      for (int i = 0; i < kV; ++i) {
        part[i][t] = Format::Dot(part[i][t], w[i][j], unit_of_x);
      }
    }
  }
}

// Walks over the codes of kV vectors of rows from v on, step by step; with kAsk
// it asks for the codes that the stream brings later, always in the order of
// the addresses: a pass over some of the vectors asks for its share of them.
template <class Format, int kV, bool kAsk>
struct Walk {
  const std::byte* codes;
  int64_t stride;
  const std::byte* ahead = nullptr;

  inline __attribute__((always_inline)) Walk(const Block& block, int64_t v)
      : codes(block.codes + v * 64), stride(block.width * 64) {
    if constexpr (kAsk) {
      ahead =
          block.codes + v * Format::kSteps * 64 +
          (kV == kTileVectors ? kAhead : block.width * Format::kVectorBytes);
      // What the steps leave out: as many bytes as the scales are.
      if constexpr (kV == kTileVectors && Format::kScaleBytes > 0) {
        constexpr int64_t kCodeBytes = int64_t{kV} * Format::kSteps * 64;
        constexpr int64_t kBytes = int64_t{kV} * Format::kVectorBytes;
        for (int64_t i = kCodeBytes; i < kBytes; i += 64) Prefetch(ahead + i);
      }
    }
  }

  // The sums of part p of a block for kT tokens.
  template <int kT>
  inline __attribute__((always_inline)) void AddSteps(
      const Format& format, const Tokens& tokens, int p,
      Parts<Format, kV, kT>& part) {
    constexpr int kSteps = Format::kSteps / Format::kParts;
    for (auto& row : part) {
      for (int t = 0; t < kT; ++t) row[t] = Format::Start(tokens.x[t], p);
    }
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s) {
      if constexpr (kAsk) {
        for (int64_t i = 0; i < kV; ++i) Prefetch(ahead + i * 64);
        ahead += int64_t{kV} * 64;
      }
      AddStep<Format, kV, kT>(format, codes, tokens.x,
                              (p * kSteps + s) * Format::kStepUnits, part);
      codes += stride;
    }
  }
};

// kV vectors of rows from v on, kT tokens.
template <class Format, int kV, int kT, bool kAsk>
void MultiplyCodes(const Format& format, const Block& block, int64_t v,
                   const Tokens& tokens) {
  Walk<Format, kV, kAsk> walk(block, v);
  for (int p = 0; p < Format::kParts; ++p) {
    Parts<Format, kV, kT> part;
    walk.template AddSteps<kT>(format, tokens, p, part);
    for (int i = 0; i < kV; ++i) {
      const __m512 scale = ScaleOf<Format>(block, p, v + i);
      for (int64_t t = 0; t < kT; ++t) {
        __m512& sum = tokens.sums[t * kTileVectors + v + i];
        sum = Format::AddPart(part[i][t], scale, tokens.x[t], p, sum);
      }
    }
  }
}

// The same with the sums of a block in registers.
template <class Format, int kV, int kT, bool kAsk>
void MultiplyInRegisters(const Format& format, const Block& block, int64_t v,
                         const Tokens& tokens) {
  Walk<Format, kV, kAsk> walk(block, v);
  __m512 sums[kV][kT];
  for (int i = 0; i < kV; ++i) {
    for (int64_t t = 0; t < kT; ++t) {
      sums[i][t] = Format::Begin(tokens.sums[t * kTileVectors + v + i]);
    }
  }
  for (int p = 0; p < Format::kParts; ++p) {
    Parts<Format, kV, kT> part;
    walk.template AddSteps<kT>(format, tokens, p, part);
    for (int i = 0; i < kV; ++i) {
      const __m512 scale = Format::kFinishScale
                               ? _mm512_setzero_ps()
                               : ScaleOf<Format>(block, p, v + i);
      for (int t = 0; t < kT; ++t) {
        sums[i][t] =
            Format::AddPart(part[i][t], scale, tokens.x[t], p, sums[i][t]);
      }
    }
  }
  for (int i = 0; i < kV; ++i) {
    const __m512 scale = Format::kFinishScale ? ScaleOf<Format>(block, 0, v + i)
                                              : _mm512_setzero_ps();
    for (int64_t t = 0; t < kT; ++t) {
      __m512& sum = tokens.sums[t * kTileVectors + v + i];
      sum = Format::Finish(sums[i][t], scale, sum);
    }
  }
}

// Vectors of a block at a time, four or two: as many as leave registers for the
// decoded step and the sums.
template <class Format>
constexpr int VectorsFor(int n_tokens) {
  if (Format::kInRegisters) {
    return n_tokens <= (Format::kStepUnits == 1 ? 3 : 2) ? 4 : 2;
  }
  return n_tokens <= (Format::kStepUnits <= 2 ? 4 : 2) ? 4 : 2;
}

template <class Format, int kV, int kT, bool kAsk>
inline void MultiplyVectors(const Format& format, const Block& block, int64_t v,
                            const Tokens& tokens) {
  if constexpr (Format::kInRegisters) {
    MultiplyInRegisters<Format, kV, kT, kAsk>(format, block, v, tokens);
  } else {
    MultiplyCodes<Format, kV, kT, kAsk>(format, block, v, tokens);
  }
}

// Vectors of a tile.
struct Range {
  int64_t begin;
  int64_t end;
};

// The vectors `range` of a block.
template <class Format, bool kAsk, int kT>
void MultiplyBlock(const Format& format, const Block& block, Range range,
                   const Tokens& tokens) {
  constexpr int kV = VectorsFor<Format>(kT);
  int64_t v = range.begin;
  for (; v + kV <= range.end; v += kV) {
    MultiplyVectors<Format, kV, kT, kAsk>(format, block, v, tokens);
  }
  if (kV == 4 && v + 2 <= range.end) {
    MultiplyVectors<Format, 2, kT, kAsk>(format, block, v, tokens);
    v += 2;
  }
  if (v < range.end)
    MultiplyVectors<Format, 1, kT, kAsk>(format, block, v, tokens);
}

template <class Format>
using MultiplyFn = void (*)(const Format&, const Block&, Range, const Tokens&);
template <class Format, bool kAsk>
constexpr MultiplyFn<Format> kMultiply[kMaxTokens] = {
    MultiplyBlock<Format, kAsk, 1>, MultiplyBlock<Format, kAsk, 2>,
    MultiplyBlock<Format, kAsk, 3>, MultiplyBlock<Format, kAsk, 4>,
    MultiplyBlock<Format, kAsk, 5>, MultiplyBlock<Format, kAsk, 6>,
    MultiplyBlock<Format, kAsk, 7>, MultiplyBlock<Format, kAsk, 8>};

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

inline const std::byte* PackedX(const MatMulArgs& a, int64_t token) {
  const int64_t at = a.x_index != nullptr ? a.x_index[token] : token;
  return a.x + at * static_cast<int64_t>(a.x_row_bytes);
}

// The vectors of tile `index` that hold rows which were asked for.
inline Range VectorsOf(const MatMulArgs& a, int64_t index, const Tile& tile) {
  const int64_t first = index * kTileVectors;
  const int64_t begin = a.row_begin / kPackLanes - first;
  const int64_t end = (a.row_end + kPackLanes - 1) / kPackLanes - first;
  return {begin > 0 ? begin : 0, Min(end, tile.width)};
}

// Stores a chunk's sums of the vectors `range` of tile `index`.
inline void StoreTile(const MatMulArgs& a, int64_t index, Range range,
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

// Codes to ask for beside the products.
struct Ahead {
  const std::byte* codes = nullptr;
  int64_t bytes = 0;
};

// A chunk times one block, in groups of even sizes.
template <class Format>
void MultiplyTokens(const MatMulArgs& a, const Format& format,
                    const Block& block, Range range, const Chunk& chunk,
                    Ahead ahead) {
  const int64_t n_groups =
      (chunk.n + Format::kGroupTokens - 1) / Format::kGroupTokens;
  int64_t t = 0;
  for (int64_t i = 0; i < n_groups; ++i) {
    const int64_t end = chunk.n * (i + 1) / n_groups;
    const std::byte* x[kMaxTokens];
    for (int64_t j = t; j < end; ++j) {
      x[j - t] = PackedX(a, chunk.token + j) + chunk.x_offset;
    }
    // The codes that the stream will bring next: a few lines at a time, since
    // many at once would hold up the loads.
    if constexpr (!Format::kStreams) {
      const int64_t lines = ahead.bytes / 64;
      for (int64_t l = lines * i / n_groups; l < lines * (i + 1) / n_groups;
           ++l) {
        Prefetch(ahead.codes + l * 64);
      }
    }
    // The first group asks for all.
    const auto& multiply = Format::kStreams && i == 0
                               ? kMultiply<Format, Format::kStreams>
                               : kMultiply<Format, false>;
    multiply[end - t - 1](format, block, range,
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
    chunk.x_offset = b * Format::kXBlockBytes;
    const Block block = BlockAt<Format>(*a.weight, tile, b);
    if constexpr (Format::kPanelTokens > 0) {
      if (chunk.n >= Format::kPanelTokens && CanDecode(format, block)) {
        std::byte* panel = a.panel + kChunkTokens * kTileVectors * 64;
        MultiplyTokens(
            a, typename Format::Panel(), DecodeBlock(format, block, panel),
            range, chunk,
            {block.codes + kAhead, block.width * Format::kVectorBytes});
        continue;
      }
    }
    MultiplyTokens(a, format, block, range, chunk, Ahead());
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
}  // namespace belay::kernels::avx512

#endif  // BELAY_KERNELS_AVX512_TILES_INL_H_
