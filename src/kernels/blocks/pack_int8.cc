// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks/pack_int8.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/float_formats.h"
#include "kernels/pack.h"

namespace belay::kernels {
namespace {

constexpr int64_t kPartCols = 32;  // that share a scale of FP4 and blocks

// The rows of a block, converted, row-major.
struct Staged {
  std::byte codes[kPackRows * kPackCols];
  uint8_t scales[kPackRows * kPackCols / kPartCols * 2];
};

// The order in which the kernel takes eight columns: what FP4's nibbles unpack
// to (kernels/pack.h).
constexpr int64_t kOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};

// 32 signed codes to unsigned ones in the kernel's order.
void PlaceInt8(const int8_t* codes, std::byte* out) {
  for (int64_t i = 0; i < kPartCols; ++i) {
    const int8_t code = codes[i / 8 * 8 + kOrder[i % 8]];
    out[i] = static_cast<std::byte>(static_cast<uint8_t>(code) ^ 0x80u);
  }
}

void PutScale(uint16_t f16, uint8_t* scale) {
  std::memcpy(scale, &f16, sizeof(f16));
}

const std::array<float, 256>& E4m3Values() {
  static const std::array<float, 256> kValues = [] {
    std::array<float, 256> values = {};
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = F32FromE4m3(static_cast<uint8_t>(i));
    }
    return values;
  }();
  return kValues;
}

// n columns of FP8, a multiple of 32 and at most 128. NaN makes a scale of NaN:
// the result is NaN, as it is without the conversion.
void ConvertFp8(const std::byte* from, int64_t n, std::byte* codes,
                uint8_t* scale) {
  const std::array<float, 256>& values = E4m3Values();
  float x[kPackCols];
  float amax = 0.0f;
  bool nan = false;
  for (int64_t i = 0; i < n; ++i) {
    x[i] = values[static_cast<uint8_t>(from[i])];
    nan |= std::isnan(x[i]);
    amax = std::max(amax, std::abs(x[i]));
  }
  const uint16_t f16 = F16FromF32(nan ? std::nanf("") : amax / 127.0f);
  PutScale(f16, scale);
  const float rounded = F32FromF16(f16);
  const float inverse = amax == 0.0f || nan ? 0.0f : 1.0f / rounded;
  int8_t q[kPackCols];
  for (int64_t i = 0; i < n; ++i) {
    const float code = nan ? 0.0f : std::nearbyint(x[i] * inverse);
    q[i] = static_cast<int8_t>(std::clamp(code, -127.0f, 127.0f));
  }
  for (int64_t i = 0; i < n; i += kPartCols) PlaceInt8(q + i, codes + i);
}

// 32 columns of Q8_0.
void CopyQ8_0(const std::byte* block, std::byte* codes, uint8_t* scale) {
  std::memcpy(scale, block, 2);
  PlaceInt8(reinterpret_cast<const int8_t*>(block + 2), codes);
}

// 32 columns of MXFP4: byte j holds columns j and j + 16, FP4 neighbours.
void CopyMxfp4(const std::byte* block, std::byte* codes, uint8_t* scale) {
  *scale = static_cast<uint8_t>(block[0]);
  const std::byte* const from = block + 1;
  for (int64_t i = 0; i < 8; ++i) {
    const std::byte even = from[2 * i];
    const std::byte odd = from[2 * i + 1];
    codes[i] = (even & std::byte{15}) | (odd & std::byte{15}) << 4;
    codes[i + 8] = even >> 4 | (odd & std::byte{0xf0});
  }
}

// Columns [col, col + n) of one row to `codes` and `scales`.
void StageRow(const WeightView& w, int64_t row, int64_t col, int64_t n,
              std::byte* codes, uint8_t* scales) {
  const std::byte* const from = w.row(row);
  if (w.kind == WeightKind::kFp8)
    return ConvertFp8(from + col, n, codes, scales);
  for (int64_t at = 0; at < n; at += kPartCols) {
    const int64_t part = at / kPartCols;
    const auto bytes = static_cast<int64_t>(BlockBytes(w.format));
    const std::byte* const block = from + (col + at) / kPartCols * bytes;
    if (w.format == BlockFormat::kQ8_0) {
      CopyQ8_0(block, codes + at, scales + 2 * part);
    } else {
      CopyMxfp4(block, codes + at / 2, scales + part);
    }
  }
}

// The block with the rows from `row` on and the columns from `col` on.
void PackBlock(const WeightView& plain, const WeightView& target, int64_t row,
               int64_t col, std::byte* packed) {
  Staged staged;
  WeightView block;
  block.kind = target.kind;
  block.n_rows = std::min(kPackRows, plain.n_rows - row);
  block.n_cols = std::min(kPackCols, plain.n_cols - col);
  block.codes = staged.codes;
  block.row_bytes_stride = WeightRowBytes(target.kind, kPackCols);
  block.block_cols =
      target.kind == WeightKind::kInt8Wide ? kPackCols : kPartCols;
  block.scale_code = staged.scales;
  block.scale_stride = kPackCols / block.block_cols;
  const int64_t scale_bytes =
      block.scale_stride * (target.kind == WeightKind::kFp4 ? 1 : 2);
  for (int64_t r = 0; r < block.n_rows; ++r) {
    StageRow(plain, row + r, col, block.n_cols,
             staged.codes + static_cast<size_t>(r) * block.row_bytes_stride,
             staged.scales + r * scale_bytes);
  }
  PackWeightBlock(block, packed);
}

}  // namespace

bool CanPackInt8(const WeightView& plain) {
  switch (plain.kind) {
    case WeightKind::kFp8:
      return plain.block_rows % kPackLanes == 0 &&
             plain.block_cols % kPackCols == 0 && plain.n_cols % kPartCols == 0;
    case WeightKind::kFp4:
      return plain.block_cols == kPartCols && plain.n_cols % kPartCols == 0;
    case WeightKind::kBlocks:
      return plain.format == BlockFormat::kQ8_0 ||
             plain.format == BlockFormat::kMxfp4;
    default:
      return false;
  }
}

WeightView Int8Target(const WeightView& plain) {
  WeightView target = plain;
  target.format = BlockFormat::kNone;
  if (plain.kind == WeightKind::kBlocks) target.block_cols = kPartCols;
  const bool fp4 =
      plain.kind == WeightKind::kFp4 || plain.format == BlockFormat::kMxfp4;
  target.kind = fp4 ? WeightKind::kFp4
                    : (plain.kind == WeightKind::kFp8 ? WeightKind::kInt8Wide
                                                      : WeightKind::kInt8);
  return target;
}

void PackInt8Rows(const WeightView& plain, int64_t row_begin, int64_t row_end,
                  std::byte* packed) {
  if (plain.kind == WeightKind::kFp4) {
    return PackWeightRows(plain, row_begin, row_end, packed);
  }
  const WeightView target = Int8Target(plain);
  for (int64_t row = row_begin; row < row_end; row += kPackRows) {
    for (int64_t col = 0; col < plain.n_cols; col += kPackCols) {
      PackBlock(plain, target, row, col,
                packed + PackedBlockOffset(target, row, col));
    }
  }
}

}  // namespace belay::kernels
