// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack.h"

#include <algorithm>
#include <cstring>

namespace belay::kernels {
namespace {

// Scale codes of one row in one step of FP4.
constexpr size_t kStepScales = kPackCols / 32;

size_t TileBytes(const WeightView& w) {
  const size_t scales =
      w.kind == WeightKind::kFp4 ? static_cast<size_t>(w.n_cols) / 32 : 0;
  return kPackRows * (WeightRowBytes(w.kind, w.n_cols) + scales);
}

// One row to its places: `at` is the row's first step, `apart` the bytes to
// the next one.
void Spread(const std::byte* row, size_t step_bytes, size_t n_steps,
            size_t apart, std::byte* at) {
  for (size_t s = 0; s < n_steps; ++s) {
    std::memcpy(at + s * apart, row + s * step_bytes, step_bytes);
  }
}

}  // namespace

bool CanPackWeight(const WeightView& plain) {
  if (plain.kind == WeightKind::kF32 || plain.n_cols % kPackCols != 0) {
    return false;
  }
  return plain.kind != WeightKind::kFp4 || plain.block_cols == 32;
}

size_t PackedWeightBytes(const WeightView& plain) {
  const auto tiles =
      static_cast<size_t>((plain.n_rows + kPackRows - 1) / kPackRows);
  return tiles * TileBytes(plain);
}

void PackWeightRows(const WeightView& plain, int64_t row_begin, int64_t row_end,
                    std::byte* packed) {
  const auto n_steps = static_cast<size_t>(plain.n_cols / kPackCols);
  const size_t step = WeightRowBytes(plain.kind, kPackCols);
  for (int64_t tile = row_begin; tile < row_end; tile += kPackRows) {
    std::byte* at =
        packed + static_cast<size_t>(tile / kPackRows) * TileBytes(plain);
    std::byte* scales = at + kPackRows * step * n_steps;
    const int64_t n = std::min(kPackRows, row_end - tile);
    if (n < kPackRows) std::memset(at, 0, TileBytes(plain));
    for (int64_t r = 0; r < n; ++r) {
      const auto place = static_cast<size_t>(r);
      Spread(plain.row(tile + r), step, n_steps, kPackRows * step,
             at + place * step);
      if (plain.kind != WeightKind::kFp4) continue;
      const uint8_t* codes =
          plain.scale_code + (tile + r) / plain.block_rows * plain.scale_stride;
      Spread(reinterpret_cast<const std::byte*>(codes), kStepScales, n_steps,
             kPackRows * kStepScales, scales + place * kStepScales);
    }
  }
}

WeightView PackedView(const WeightView& plain, const std::byte* packed) {
  WeightView view = plain;
  view.codes = packed;
  view.row_bytes_stride = TileBytes(plain);
  view.tile_rows = kPackRows;
  view.scale_code = nullptr;
  return view;
}

}  // namespace belay::kernels
