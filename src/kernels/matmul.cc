// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul.h"

#include <algorithm>
#include <cstring>

#include "base/float_formats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/decode-inl.h"

#ifndef BELAY_KERNELS_MATMUL_ONCE_
#define BELAY_KERNELS_MATMUL_ONCE_
namespace belay::kernels {

// Up to this many tokens the codes are decoded in registers, again for every
// tile of tokens (from the first-level cache after the first); beyond, once to
// a panel of float32 rows.
inline constexpr int64_t kDirectTokens = 4;

// A step of two vectors never reads x beyond its row padded to this.
inline constexpr int64_t kPadCols = 64;

// e8m0 as float32.
struct E8m0Table {
  float value[256];
  E8m0Table() {
    for (int i = 0; i < 256; ++i) {
      value[i] = F32FromE8m0(static_cast<uint8_t>(i));
    }
  }
};
inline const E8m0Table kE8m0;

}  // namespace belay::kernels
#endif  // BELAY_KERNELS_MATMUL_ONCE_

HWY_BEFORE_NAMESPACE();
namespace belay::kernels::HWY_NAMESPACE {

// Tokens that share a decoded step: accumulators must fit the registers.
inline constexpr int kTileTokens = (HWY_TARGET <= HWY_AVX3) ? 4 : 2;
inline constexpr int kTileRows = static_cast<int>(kMatMulRows);

// The rows of one tile and how to load them: from codes, or from a panel that
// holds the same numbers.
template <WeightKind kKind, int kRows, bool kFromPanel>
struct RowTile {
  const std::byte* rows[kRows];
  const float* scale[kRows];         // kFp8
  const uint8_t* scale_code[kRows];  // kFp4

  RowTile(const WeightView& w, int64_t row, const std::byte* panel) {
    const size_t panel_row = PanelBytes(w.n_cols) / kTileRows;
    for (int r = 0; r < kRows; ++r) {
      rows[r] = kFromPanel ? panel + static_cast<size_t>(r) * panel_row
                           : w.row(row + r);
      const int64_t scale_at = (row + r) / w.block_rows * w.scale_stride;
      if (kKind == WeightKind::kFp8) scale[r] = w.scale + scale_at;
      if (kKind == WeightKind::kFp4) scale_code[r] = w.scale_code + scale_at;
    }
  }

  HWY_INLINE float Scale(int r, size_t block) const {
    if constexpr (kKind == WeightKind::kFp8) {
      return scale[r][block] * DecodeFactor<kKind>();
    } else if constexpr (kKind == WeightKind::kFp4) {
      return kE8m0.value[scale_code[r][block]] * DecodeFactor<kKind>();
    } else {
      return 1.0f;
    }
  }

  HWY_INLINE void Load(int r, size_t col, VF& v0, VF& v1) const {
    Load2<kFromPanel ? WeightKind::kF32 : kKind>(rows[r], col, v0, v1);
  }

  // The last columns of a row that is no multiple of the step, zeros beyond.
  void LoadTail(int r, size_t col, size_t n_cols, VF& v0, VF& v1) const {
    constexpr WeightKind kStored = kFromPanel ? WeightKind::kF32 : kKind;
    alignas(64) std::byte tail[4 * kBlockMultiple] = {};
    const auto at = WeightRowBytes(kStored, static_cast<int64_t>(col));
    std::memcpy(tail, rows[r] + at,
                WeightRowBytes(kStored, static_cast<int64_t>(n_cols)) - at);
    Load2<kStored>(tail, 0, v0, v1);
  }
};

template <int kRows, int kTokens>
struct Sums {
  VF v[kRows][kTokens];
  // Own code, not the compiler's: an implicit constructor would not have the
  // target of this namespace.
  HWY_INLINE Sums() {
    for (auto& row : v) {
      for (VF& sum : row) sum = hn::Zero(DF());
    }
  }
};

// part += x * w over one step of two vectors. The first vector comes first for
// every output: this order is the kernel's promise.
template <int kRows, int kTokens, class Loader>
HWY_INLINE void Step(const Loader& load, const float* const* x, size_t col,
                     Sums<kRows, kTokens>& part) {
  const DF df;
  const size_t n = hn::Lanes(df);
  VF x0[kTokens];
  VF x1[kTokens];
  for (int t = 0; t < kTokens; ++t) {
    x0[t] = hn::LoadU(df, x[t] + col);
    x1[t] = hn::LoadU(df, x[t] + col + n);
  }
  for (int r = 0; r < kRows; ++r) {
    VF w0;
    VF w1;
    load(r, w0, w1);
    for (int t = 0; t < kTokens; ++t) {
      part.v[r][t] = hn::MulAdd(x0[t], w0, part.v[r][t]);
      part.v[r][t] = hn::MulAdd(x1[t], w1, part.v[r][t]);
    }
  }
}

// out[r * kTokens + t] = row r of the tile times row t of x.
template <int kRows, int kTokens, class Tile>
HWY_INLINE void MultiplyTile(const Tile& tile, const WeightView& w,
                             const float* const* x, float* out) {
  const DF df;
  const size_t step = 2 * hn::Lanes(df);
  const auto n_cols = static_cast<size_t>(w.n_cols);
  const auto block_cols = static_cast<size_t>(w.block_cols);
  Sums<kRows, kTokens> acc;
  for (size_t begin = 0, block = 0; begin < n_cols;
       begin += block_cols, ++block) {
    const size_t end = std::min(n_cols, begin + block_cols);
    Sums<kRows, kTokens> part;
    size_t col = begin;
    for (; col + step <= end; col += step) {
      Step<kRows, kTokens>([&](int r, VF& w0, VF& w1)
                               HWY_ATTR { tile.Load(r, col, w0, w1); },
                           x, col, part);
    }
    if (col < end) {
      Step<kRows, kTokens>(
          [&](int r, VF& w0, VF& w1)
              HWY_ATTR { tile.LoadTail(r, col, n_cols, w0, w1); },
          x, col, part);
    }
    for (int r = 0; r < kRows; ++r) {
      const VF scale = hn::Set(df, tile.Scale(r, block));
      for (int t = 0; t < kTokens; ++t) {
        acc.v[r][t] = hn::MulAdd(part.v[r][t], scale, acc.v[r][t]);
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int t = 0; t < kTokens; ++t) {
      out[r * kTokens + t] = hn::GetLane(hn::SumOfLanes(df, acc.v[r][t]));
    }
  }
}

HWY_INLINE void Store(const MatMulArgs& a, int64_t token, int64_t row,
                      float value) {
  const int64_t at = token * a.y_stride + (row - a.row_begin);
  if (a.y_bf16) {
    static_cast<uint16_t*>(a.y)[at] = Bf16FromF32(value);
  } else {
    static_cast<float*>(a.y)[at] = value;
  }
}

template <WeightKind kKind, int kRows, bool kFromPanel, int kTokens>
void RunTokens(const MatMulArgs& a, const RowTile<kKind, kRows, kFromPanel>& t,
               int64_t row, int64_t token) {
  const float* x[kTokens];
  for (int i = 0; i < kTokens; ++i) {
    const int64_t at = a.x_index != nullptr ? a.x_index[token + i] : token + i;
    x[i] = reinterpret_cast<const float*>(a.x + static_cast<size_t>(at) *
                                                    a.x_row_bytes);
  }
  float out[kRows * kTokens];
  MultiplyTile<kRows, kTokens>(t, *a.weight, x, out);
  for (int r = 0; r < kRows; ++r) {
    for (int i = 0; i < kTokens; ++i) {
      Store(a, token + i, row + r, out[r * kTokens + i]);
    }
  }
}

template <WeightKind kKind, int kRows, bool kFromPanel>
void RunRows(const MatMulArgs& a, int64_t row) {
  const RowTile<kKind, kRows, kFromPanel> tile(*a.weight, row, a.panel);
  int64_t token = 0;
  for (; token + kTileTokens <= a.n_tokens; token += kTileTokens) {
    RunTokens<kKind, kRows, kFromPanel, kTileTokens>(a, tile, row, token);
  }
  if (kTileTokens == 4 && token + 2 <= a.n_tokens) {
    RunTokens<kKind, kRows, kFromPanel, 2>(a, tile, row, token);
    token += 2;
  }
  if (token < a.n_tokens) {
    RunTokens<kKind, kRows, kFromPanel, 1>(a, tile, row, token);
  }
}

// Decodes kRows rows to float32, unscaled, so that the panel gives the same
// products as the codes.
template <WeightKind kKind, int kRows>
void FillPanel(const MatMulArgs& a, int64_t row) {
  const DF df;
  const size_t n = hn::Lanes(df);
  const RowTile<kKind, kRows, false> tile(*a.weight, row, nullptr);
  const auto n_cols = static_cast<size_t>(a.weight->n_cols);
  const size_t panel_row = PanelBytes(a.weight->n_cols) / kTileRows;
  for (int r = 0; r < kRows; ++r) {
    float* to =
        reinterpret_cast<float*>(a.panel + static_cast<size_t>(r) * panel_row);
    for (size_t col = 0; col < n_cols; col += 2 * n) {
      VF v0;
      VF v1;
      if (col + 2 * n <= n_cols) {
        tile.Load(r, col, v0, v1);
      } else {
        tile.LoadTail(r, col, n_cols, v0, v1);
      }
      hn::StoreU(v0, df, to + col);
      hn::StoreU(v1, df, to + col + n);
    }
  }
}

template <WeightKind kKind, int kRows>
void RunTile(const MatMulArgs& a, int64_t row) {
  if (kKind == WeightKind::kF32 || a.n_tokens <= kDirectTokens) {
    RunRows<kKind, kRows, false>(a, row);
  } else {
    FillPanel<kKind, kRows>(a, row);
    RunRows<kKind, kRows, true>(a, row);
  }
}

template <WeightKind kKind>
void RunKind(const MatMulArgs& a) {
  int64_t row = a.row_begin;
  for (; row + kTileRows <= a.row_end; row += kTileRows) {
    RunTile<kKind, kTileRows>(a, row);
  }
  for (; row < a.row_end; ++row) RunTile<kKind, 1>(a, row);
}

void Run(const MatMulArgs& a) {
  switch (a.weight->kind) {
    case WeightKind::kF32:
      return RunKind<WeightKind::kF32>(a);
    case WeightKind::kBf16:
      return RunKind<WeightKind::kBf16>(a);
    case WeightKind::kF16:
      return RunKind<WeightKind::kF16>(a);
    case WeightKind::kFp8:
      return RunKind<WeightKind::kFp8>(a);
    case WeightKind::kFp4:
      return RunKind<WeightKind::kFp4>(a);
    case WeightKind::kInt8:
    case WeightKind::kInt8Wide:
    case WeightKind::kBlocks:
      break;  // kernels/blocks
  }
}

}  // namespace belay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace belay::kernels {
namespace {

HWY_EXPORT(Run);

int64_t PaddedCols(int64_t n_cols) {
  return (n_cols + kPadCols - 1) / kPadCols * kPadCols;
}

size_t PackedBytes(int64_t n_cols) {
  return static_cast<size_t>(PaddedCols(n_cols)) * sizeof(float);
}

void Pack(const float* x, int64_t begin, int64_t n, int64_t n_cols,
          std::byte* packed) {
  float* row = reinterpret_cast<float*>(packed);
  std::memcpy(row + begin, x, static_cast<size_t>(n) * sizeof(float));
  if (begin + n == n_cols) std::fill(row + n_cols, row + PaddedCols(n_cols), 0);
}

void RunBest(const MatMulArgs& args) { HWY_DYNAMIC_DISPATCH(Run)(args); }

constexpr MatMulKernel kF32Kernel = {"f32", PackedBytes, Pack, RunBest};

}  // namespace

size_t PanelBytes(int64_t n_cols) {
  return std::max(static_cast<size_t>(kMatMulRows) * PackedBytes(n_cols),
                  kMinPanelBytes);
}

const MatMulKernel& F32MatMul() { return kF32Kernel; }

}  // namespace belay::kernels
#endif  // HWY_ONCE
