// SPDX-License-Identifier: Apache-2.0
#include "kernels/pack.h"

#include <algorithm>
#include <cstring>

namespace belay::kernels {
namespace {

constexpr int64_t kStepBytes = 64;  // of one vector of rows
constexpr int64_t kLaneBytes = 4;

// Columns of a scale in the block.
constexpr int64_t ScaleCols(WeightKind kind) {
  return kind == WeightKind::kInt8Wide ? kPackCols : 32;
}

int64_t StepCols(WeightKind kind) {
  switch (kind) {
    case WeightKind::kFp4:
      return 8;
    case WeightKind::kFp8:
    case WeightKind::kInt8:
    case WeightKind::kInt8Wide:
      return 4;
    default:
      return 2;
  }
}

// Bytes of a scale that stands in the block.
constexpr int64_t ScaleBytes(WeightKind kind) {
  if (kind == WeightKind::kInt8 || kind == WeightKind::kInt8Wide) return 2;
  return kind == WeightKind::kFp4 ? 1 : 0;
}

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Bytes of the codes of one vector of rows in one block, and of its scales.
int64_t VectorCodeBytes(WeightKind kind) {
  return kPackCols / StepCols(kind) * kStepBytes;
}
int64_t VectorScaleBytes(WeightKind kind) {
  return kPackCols / ScaleCols(kind) * kPackLanes * ScaleBytes(kind);
}
int64_t VectorBytes(WeightKind kind) {
  return VectorCodeBytes(kind) + VectorScaleBytes(kind);
}

// Every other nibble of a word, from the lowest on, close together.
uint32_t EvenNibbles(uint32_t codes) {
  codes &= 0x0f0f0f0fu;
  codes = (codes | codes >> 4) & 0x00ff00ffu;
  return (codes | codes >> 8) & 0xffffu;
}

// One row's step, kLaneBytes of codes, to its place in a vector of 16 rows.
template <WeightKind kKind>
void PlaceStep(const std::byte* codes, int64_t lane, std::byte* vector) {
  if constexpr (kKind == WeightKind::kFp8) {
    std::byte* quarter = vector + lane / 4 * 16 + lane % 4 * 2;
    std::memcpy(quarter, codes, 2);
    std::memcpy(quarter + 8, codes + 2, 2);
  } else if constexpr (kKind == WeightKind::kFp4) {
    uint32_t word;
    std::memcpy(&word, codes, sizeof(word));
    word = EvenNibbles(word) | EvenNibbles(word >> 4) << 16;
    std::memcpy(vector + lane * kLaneBytes, &word, sizeof(word));
  } else {
    std::memcpy(vector + lane * kLaneBytes, codes, kLaneBytes);
  }
}

// One row of a block: `n_bytes` of codes to every place that they fill.
template <WeightKind kKind>
void PlaceRow(const std::byte* codes, int64_t n_bytes, int64_t lane,
              int64_t step_stride, std::byte* vector) {
  int64_t at = 0;
  for (; at + kLaneBytes <= n_bytes; at += kLaneBytes) {
    PlaceStep<kKind>(codes + at, lane, vector);
    vector += step_stride;
  }
  if (at == n_bytes) return;
  std::byte last[kLaneBytes] = {};
  std::memcpy(last, codes + at, static_cast<size_t>(n_bytes - at));
  PlaceStep<kKind>(last, lane, vector);
}

// The block with the rows from `row` on and the columns from `col` on.
template <WeightKind kKind>
void PackBlock(const WeightView& w, int64_t row, int64_t col,
               std::byte* block) {
  const int64_t n_rows = std::min(kPackRows, w.n_rows - row);
  const int64_t n_cols = std::min(kPackCols, w.n_cols - col);
  const int64_t width = CeilDiv(n_rows, kPackLanes);
  if (n_rows < width * kPackLanes || n_cols < kPackCols) {
    std::memset(block, 0, static_cast<size_t>(width * VectorBytes(kKind)));
  }
  const auto first = static_cast<int64_t>(WeightRowBytes(kKind, col));
  const auto n_bytes = static_cast<int64_t>(WeightRowBytes(kKind, n_cols));
  std::byte* scales = block + width * VectorCodeBytes(kKind);
  for (int64_t r = 0; r < n_rows; ++r) {
    PlaceRow<kKind>(w.row(row + r) + first, n_bytes, r % kPackLanes,
                    width * kStepBytes, block + r / kPackLanes * kStepBytes);
    constexpr int64_t kBytes = ScaleBytes(kKind);
    if constexpr (kBytes == 0) continue;
    constexpr int64_t kCols = ScaleCols(kKind);
    const uint8_t* from =
        w.scale_code +
        ((row + r) / w.block_rows * w.scale_stride + col / kCols) * kBytes;
    for (int64_t i = 0; i < CeilDiv(n_cols, kCols); ++i) {
      std::memcpy(scales + (i * width * kPackLanes + r) * kBytes,
                  from + i * kBytes, static_cast<size_t>(kBytes));
    }
  }
}

template <WeightKind kKind>
void PackTile(const WeightView& w, int64_t row, std::byte* tile) {
  const int64_t width =
      CeilDiv(std::min(kPackRows, w.n_rows - row), kPackLanes);
  for (int64_t col = 0; col < w.n_cols; col += kPackCols) {
    PackBlock<kKind>(w, row, col,
                     tile + col / kPackCols * width * VectorBytes(kKind));
  }
}

size_t TileBytes(const WeightView& w) {
  return static_cast<size_t>(CeilDiv(w.n_cols, kPackCols) *
                             (kPackRows / kPackLanes) * VectorBytes(w.kind));
}

}  // namespace

bool CanPackWeight(const WeightView& plain) {
  switch (plain.kind) {
    case WeightKind::kBf16:
      return true;
    case WeightKind::kFp8:
      return plain.block_rows % kPackLanes == 0 &&
             plain.block_cols % kPackCols == 0;
    case WeightKind::kFp4:
      return plain.block_cols == ScaleCols(plain.kind);
    default:
      return false;
  }
}

size_t PackedWeightBytes(const WeightView& plain) {
  const int64_t vectors = CeilDiv(plain.n_rows, kPackLanes);
  return static_cast<size_t>(vectors * CeilDiv(plain.n_cols, kPackCols) *
                             VectorBytes(plain.kind));
}

void PackWeightRows(const WeightView& plain, int64_t row_begin, int64_t row_end,
                    std::byte* packed) {
  for (int64_t row = row_begin; row < row_end; row += kPackRows) {
    std::byte* tile =
        packed + static_cast<size_t>(row / kPackRows) * TileBytes(plain);
    if (plain.kind == WeightKind::kFp8) {
      PackTile<WeightKind::kFp8>(plain, row, tile);
    } else if (plain.kind == WeightKind::kFp4) {
      PackTile<WeightKind::kFp4>(plain, row, tile);
    } else {
      PackTile<WeightKind::kBf16>(plain, row, tile);
    }
  }
}

void PackWeightBlock(const WeightView& plain, std::byte* packed) {
  switch (plain.kind) {
    case WeightKind::kFp8:
      return PackBlock<WeightKind::kFp8>(plain, 0, 0, packed);
    case WeightKind::kFp4:
      return PackBlock<WeightKind::kFp4>(plain, 0, 0, packed);
    case WeightKind::kInt8:
      return PackBlock<WeightKind::kInt8>(plain, 0, 0, packed);
    case WeightKind::kInt8Wide:
      return PackBlock<WeightKind::kInt8Wide>(plain, 0, 0, packed);
    default:
      return PackBlock<WeightKind::kBf16>(plain, 0, 0, packed);
  }
}

size_t PackedBlockOffset(const WeightView& plain, int64_t row, int64_t col) {
  const int64_t width =
      CeilDiv(std::min(kPackRows, plain.n_rows - row), kPackLanes);
  return static_cast<size_t>(row / kPackRows) * TileBytes(plain) +
         static_cast<size_t>(col / kPackCols * width * VectorBytes(plain.kind));
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
