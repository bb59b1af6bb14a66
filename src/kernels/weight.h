// SPDX-License-Identifier: Apache-2.0
// A weight matrix as kernels read it: rows of codes, and scales by blocks.
#ifndef BELAY_KERNELS_WEIGHT_H_
#define BELAY_KERNELS_WEIGHT_H_

#include <cstddef>
#include <cstdint>

#include "tensor/block_format.h"

namespace belay::kernels {

enum class WeightKind : uint8_t {
  kF32,
  kBf16,
  kF16,
  kFp8,  // e4m3 codes, one a byte
  kFp4,  // e2m1 codes, two a byte, low nibble = even column
  // int8 codes + 128 with an f16 scale for 32 columns, and for 128; packed
  // only (kernels/blocks/pack_int8.h)
  kInt8,
  kInt8Wide,
  kBlocks,  // blocks that carry their scales; kernels/blocks only
};

// Borrowed memory, row-major. The value of (row, col) is
// Decode(code) * scale(row / block_rows, col / block_cols).
struct WeightView {
  WeightKind kind = WeightKind::kF32;
  BlockFormat format = BlockFormat::kNone;  // of kBlocks
  const std::byte* codes = nullptr;
  size_t row_bytes_stride = 0;  // bytes between the starts of two rows
  int64_t n_rows = 0;
  int64_t n_cols = 0;

  // Scales: f32 for kFp8 (and kInt8Wide, which was FP8) and e8m0 codes for kFp4
  // (a byte for 16 bytes of codes: widening them would cost a quarter of the
  // bandwidth); none for the others.
  const float* scale = nullptr;         // [n_rows / block_rows, n_blocks]
  const uint8_t* scale_code = nullptr;  // [n_rows / block_rows, n_blocks]
  int64_t scale_stride = 0;             // elements between two rows of scales
  int64_t block_rows = 1;
  int64_t block_cols = 128;  // a multiple of kBlockMultiple

  // Rows stand in tiles of so many (PackWeight in kernels/pack.h): 1 is plain
  // row-major, anything else is for the kernel that asked for it. `codes` then
  // points to the tiles, row_bytes_stride apart, and `scale_code` is unused,
  // since a tile holds its own.
  int64_t tile_rows = 1;

  // Plain layout only.
  const std::byte* row(int64_t r) const {
    return codes + static_cast<size_t>(r) * row_bytes_stride;
  }
};

// Columns of a block come in multiples of this: one step of the widest vectors.
inline constexpr int64_t kBlockMultiple = 32;

// Bytes of the codes of one row.
constexpr size_t WeightRowBytes(WeightKind kind, int64_t n_cols) {
  const auto n = static_cast<size_t>(n_cols);
  switch (kind) {
    case WeightKind::kF32:
      return 4 * n;
    case WeightKind::kBf16:
    case WeightKind::kF16:
      return 2 * n;
    case WeightKind::kFp8:
    case WeightKind::kInt8:
    case WeightKind::kInt8Wide:
      return n;
    case WeightKind::kFp4:
      return n / 2;
    case WeightKind::kBlocks:
      break;  // the format says it
  }
  return 0;
}

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_WEIGHT_H_
