// SPDX-License-Identifier: Apache-2.0
// Rows of blocks, unpacked, and packed inputs, as the integer kernel reads
// them. Private to kernels/blocks.
#ifndef BELAY_KERNELS_BLOCKS_PANEL_H_
#define BELAY_KERNELS_BLOCKS_PANEL_H_

#include <cstddef>
#include <cstdint>

#include "tensor/block_format.h"

namespace belay::kernels {

// Columns that share a scale of the input: a block, or half a K block.
constexpr int64_t Int8Cols(BlockFormat format) {
  return BlockValues(format) == 32 ? 32 : 128;
}
constexpr bool HasMins(BlockFormat format) {
  return format == BlockFormat::kQ2K || format == BlockFormat::kQ4K ||
         format == BlockFormat::kQ5K;
}

// One row: w = d * code - dmin * min.
struct BlockPanel {
  int16_t* codes;  // [n_cols]
  float* d;        // [n_cols / Int8Cols]
  float* dmin;     // [n_cols / 128]; with mins
  int16_t* mins;   // [n_cols / 16]; with mins

  // At most 4 n_cols bytes from `data` on: 2 n, n / 8, n / 32 and n / 8.
  static BlockPanel At(std::byte* data, int64_t n_cols) {
    auto* const codes = reinterpret_cast<int16_t*>(data);
    auto* const d = reinterpret_cast<float*>(codes + n_cols);
    auto* const dmin = d + n_cols / 32;
    return {codes, d, dmin, reinterpret_cast<int16_t*>(dmin + n_cols / 128)};
  }
};

// One packed row of x: x = scale * code; sums[g] is that of 16 codes.
struct PackedInt8 {
  int16_t* codes;  // [n_cols]
  float* scale;    // [n_cols / cols], cols = 32 or 128
  int16_t* sums;   // [n_cols / 16]; cols = 128 only

  static PackedInt8 At(std::byte* data, int64_t n_cols, int64_t cols) {
    auto* const codes = reinterpret_cast<int16_t*>(data);
    auto* const scale = reinterpret_cast<float*>(codes + n_cols);
    return {codes, scale, reinterpret_cast<int16_t*>(scale + n_cols / cols)};
  }
  // No more than a packed row of float32, for which the workspace is planned.
  static size_t Bytes(int64_t n_cols, int64_t cols) {
    const auto n = static_cast<size_t>(n_cols);
    const size_t bytes =
        2 * n + 4 * (n / static_cast<size_t>(cols)) + (cols == 128 ? n / 8 : 0);
    return (bytes + 63) / 64 * 64;
  }
};

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_BLOCKS_PANEL_H_
