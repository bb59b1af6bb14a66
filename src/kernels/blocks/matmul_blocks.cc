// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks/matmul_blocks.h"

#include <algorithm>

#include "base/error.h"
#include "base/float_formats.h"
#include "kernels/blocks/panel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/blocks/matmul_blocks.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/blocks/unpack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace belay::kernels::HWY_NAMESPACE {

// At most 32 columns a step: a block of 32 is a whole number of steps.
using D16 = hn::CappedTag<int16_t, 32>;
using D32 = hn::Repartition<int32_t, D16>;
using DFloat = hn::RebindToFloat<D32>;
// Eight groups of 16 columns: half a K block.
using D16Mins = hn::CappedTag<int16_t, 8>;
using D32Mins = hn::Repartition<int32_t, D16Mins>;
using DFloatMins = hn::RebindToFloat<D32Mins>;

inline constexpr int kTileRows = static_cast<int>(kMatMulRows);
inline constexpr int kTileTokens = (HWY_TARGET <= HWY_AVX3) ? 4 : 2;

// sum_i a[i] b[i] over n columns, spread over lanes: exact in any order.
template <class D, class DSum>
HWY_INLINE hn::Vec<DSum> DotLanes(D d, DSum d32, const int16_t* a,
                                  const int16_t* b, size_t n) {
  auto sum0 = hn::Zero(d32);
  auto sum1 = hn::Zero(d32);
  for (size_t i = 0; i < n; i += hn::Lanes(d)) {
    sum0 = hn::ReorderWidenMulAccumulate(d32, hn::LoadU(d, a + i),
                                         hn::LoadU(d, b + i), sum0, sum1);
  }
  return hn::Add(sum0, sum1);
}

struct Tile {
  BlockPanel rows[kTileRows];
  PackedInt8 x[kTileTokens];
  int64_t n_cols;
};

// out[r * kTokens + t] for kRows rows and kTokens tokens of the tile.
template <int kRows, int kTokens, int64_t kCols, bool kMins>
HWY_INLINE void MultiplyTile(const Tile& tile, float* out) {
  const D16 d16;
  const D32 d32;
  const DFloat df;
  const D16Mins d16m;
  const D32Mins d32m;
  const DFloatMins dfm;
  hn::Vec<DFloat> acc[kRows][kTokens];
  hn::Vec<DFloatMins> off[kRows][kTokens];
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTokens; ++t) {
      acc[r][t] = hn::Zero(df);
      off[r][t] = hn::Zero(dfm);
    }
  }
  const int64_t n_blocks = tile.n_cols / kCols;
  for (int64_t b = 0; b < n_blocks; ++b) {
    const int64_t at = b * kCols;
    for (int r = 0; r < kRows; ++r) {
      const BlockPanel& w = tile.rows[r];
      for (int t = 0; t < kTokens; ++t) {
        const PackedInt8& x = tile.x[t];
        const auto sum = DotLanes(d16, d32, w.codes + at, x.codes + at, kCols);
        acc[r][t] = hn::MulAdd(hn::ConvertTo(df, sum),
                               hn::Set(df, w.d[b] * x.scale[b]), acc[r][t]);
        if constexpr (kMins) {
          const auto mins = DotLanes(d16m, d32m, w.mins + at / 16,
                                     x.sums + at / 16, kCols / 16);
          off[r][t] =
              hn::MulAdd(hn::ConvertTo(dfm, mins),
                         hn::Set(dfm, w.dmin[b] * x.scale[b]), off[r][t]);
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTokens; ++t) {
      float sum = hn::GetLane(hn::SumOfLanes(df, acc[r][t]));
      if (kMins) sum -= hn::GetLane(hn::SumOfLanes(dfm, off[r][t]));
      out[r * kTokens + t] = sum;
    }
  }
}

HWY_INLINE void StoreValue(const MatMulArgs& a, int64_t token, int64_t row,
                           float value) {
  const int64_t at = token * a.y_stride + (row - a.row_begin);
  if (a.y_bf16) {
    static_cast<uint16_t*>(a.y)[at] = Bf16FromF32(value);
  } else {
    static_cast<float*>(a.y)[at] = value;
  }
}

template <int kRows, int kTokens, int64_t kCols, bool kMins>
void RunTokens(const MatMulArgs& a, Tile& tile, int64_t row, int64_t token) {
  for (int t = 0; t < kTokens; ++t) {
    const int64_t at = a.x_index != nullptr ? a.x_index[token + t] : token + t;
    auto* const x =
        const_cast<std::byte*>(a.x) + static_cast<size_t>(at) * a.x_row_bytes;
    tile.x[t] = PackedInt8::At(x, tile.n_cols, kCols);
  }
  float out[kRows * kTokens];
  MultiplyTile<kRows, kTokens, kCols, kMins>(tile, out);
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTokens; ++t) {
      StoreValue(a, token + t, row + r, out[r * kTokens + t]);
    }
  }
}

template <int kRows, int64_t kCols, bool kMins>
void RunRows(const MatMulArgs& a, int64_t row) {
  const WeightView& w = *a.weight;
  const size_t panel_row = PanelBytes(w.n_cols) / kTileRows;
  Tile tile;
  tile.n_cols = w.n_cols;
  for (int r = 0; r < kRows; ++r) {
    tile.rows[r] =
        BlockPanel::At(a.panel + static_cast<size_t>(r) * panel_row, w.n_cols);
    UnpackRow(w.format, w.row(row + r), w.n_cols, tile.rows[r]);
  }
  int64_t token = 0;
  for (; token + kTileTokens <= a.n_tokens; token += kTileTokens) {
    RunTokens<kRows, kTileTokens, kCols, kMins>(a, tile, row, token);
  }
  if (kTileTokens == 4 && token + 2 <= a.n_tokens) {
    RunTokens<kRows, 2, kCols, kMins>(a, tile, row, token);
    token += 2;
  }
  if (token < a.n_tokens) {
    RunTokens<kRows, 1, kCols, kMins>(a, tile, row, token);
  }
}

template <int64_t kCols, bool kMins>
void RunFormat(const MatMulArgs& a) {
  int64_t row = a.row_begin;
  for (; row + kTileRows <= a.row_end; row += kTileRows) {
    RunRows<kTileRows, kCols, kMins>(a, row);
  }
  for (; row < a.row_end; ++row) RunRows<1, kCols, kMins>(a, row);
}

void RunInt8(const MatMulArgs& a) {
  const BlockFormat format = a.weight->format;
  if (Int8Cols(format) == 32) return RunFormat<32, false>(a);
  if (HasMins(format)) return RunFormat<128, true>(a);
  RunFormat<128, false>(a);
}

// Columns [begin, begin + n) of a row, whole blocks of `cols`.
void PackInt8(const float* x, int64_t n, int64_t cols, int64_t begin,
              const PackedInt8& to) {
  const DFloat df;
  const hn::Rebind<int32_t, DFloat> di;
  const hn::Rebind<int16_t, DFloat> d16;
  const auto lanes = static_cast<int64_t>(hn::Lanes(df));
  for (int64_t col = 0; col < n; col += cols) {
    auto max = hn::Zero(df);
    for (int64_t i = col; i < col + cols; i += lanes) {
      max = hn::Max(max, hn::Abs(hn::LoadU(df, x + i)));
    }
    const float amax = hn::GetLane(hn::MaxOfLanes(df, max));
    const auto inverse = hn::Set(df, amax == 0.0f ? 0.0f : 127.0f / amax);
    to.scale[(begin + col) / cols] = amax / 127.0f;
    int16_t* const codes = to.codes + begin + col;
    for (int64_t i = 0; i < cols; i += lanes) {
      const auto q =
          hn::NearestInt(hn::Mul(hn::LoadU(df, x + col + i), inverse));
      hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, q)), d16, codes + i);
    }
    if (cols != 128) continue;
    for (int64_t g = 0; g < cols; g += 16) {
      int sum = 0;
      for (int64_t i = g; i < g + 16; ++i) sum += codes[i];
      to.sums[(begin + col + g) / 16] = static_cast<int16_t>(sum);
    }
  }
}

}  // namespace belay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace belay::kernels {
namespace {

HWY_EXPORT(RunInt8);
HWY_EXPORT(PackInt8);

template <int64_t kCols>
size_t PackedBytes(int64_t n_cols) {
  return PackedInt8::Bytes(n_cols, kCols);
}

template <int64_t kCols>
void Pack(const float* x, int64_t begin, int64_t n, int64_t n_cols,
          std::byte* packed) {
  HWY_DYNAMIC_DISPATCH(PackInt8)
  (x, n, kCols, begin, PackedInt8::At(packed, n_cols, kCols));
}

void Run(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(RunInt8)(args); }

constexpr MatMulKernel kBlocksOf32 = {"int8-blocks-32", PackedBytes<32>,
                                      Pack<32>, Run};
constexpr MatMulKernel kBlocksOf256 = {"int8-blocks-256", PackedBytes<128>,
                                       Pack<128>, Run};

size_t FloatBytes(int64_t n_cols) { return F32MatMul().packed_bytes(n_cols); }

void PackFloats(const float* x, int64_t begin, int64_t n, int64_t n_cols,
                std::byte* packed) {
  F32MatMul().pack(x, begin, n, n_cols, packed);
}

// Four rows at a time go through the float32 kernel.
void RunDequantised(const MatMulArgs& args) {
  const WeightView& w = *args.weight;
  const size_t panel_row = PanelBytes(w.n_cols) / kMatMulRows;
  const int64_t values = BlockValues(w.format);
  const size_t bytes = BlockBytes(w.format);
  WeightView floats;
  floats.codes = args.panel;
  floats.row_bytes_stride = panel_row;
  floats.n_cols = w.n_cols;
  MatMulArgs part = args;
  part.weight = &floats;
  part.row_begin = 0;
  for (int64_t row = args.row_begin; row < args.row_end; row += kMatMulRows) {
    part.row_end = floats.n_rows = std::min(kMatMulRows, args.row_end - row);
    for (int64_t r = 0; r < floats.n_rows; ++r) {
      auto* const out = reinterpret_cast<float*>(
          args.panel + static_cast<size_t>(r) * panel_row);
      const std::byte* block = w.row(row + r);
      for (int64_t col = 0; col < w.n_cols; col += values, block += bytes) {
        double decoded[256];
        DecodeBlocks(w.format, block, values, decoded);
        std::transform(decoded, decoded + values, out + col,
                       [](double v) { return static_cast<float>(v); });
      }
    }
    const size_t element = args.y_bf16 ? 2 : 4;
    part.y = static_cast<std::byte*>(args.y) +
             static_cast<size_t>(row - args.row_begin) * element;
    F32MatMul().run(part);
  }
}

constexpr MatMulKernel kDequantised = {"dequantised", FloatBytes, PackFloats,
                                       RunDequantised};

}  // namespace

const MatMulKernel& Int8MatMul(BlockFormat format) {
  BELAY_CHECK(format != BlockFormat::kNone);
  return Int8Cols(format) == 32 ? kBlocksOf32 : kBlocksOf256;
}

const MatMulKernel& DequantisedMatMul() { return kDequantised; }

}  // namespace belay::kernels
#endif  // HWY_ONCE
