// SPDX-License-Identifier: Apache-2.0
// Weights in blocks that carry their own scales: the formats of GGUF files. A
// row is n / block_values blocks one after another; a view of such a matrix is
// U8 [n_rows, row bytes].
// Source: the block layouts of ggml (ggml-common.h of ggml-org/llama.cpp), as
// facts: sizes, order of fields and formulas.
#ifndef BELAY_TENSOR_BLOCK_FORMAT_H_
#define BELAY_TENSOR_BLOCK_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "tensor/view.h"

namespace belay {

// d, dmin: float16. Nibbles: low first, see DecodeBlocks.
enum class BlockFormat : uint8_t {
  kNone,   // not in blocks: the dtype of the view says everything
  kQ8_0,   // 32: {d; i8 q[32]}                              w = d q
  kMxfp4,  // 32: {e8m0 e; u8 q[16]}                         w = 2^(e-127) e2m1
  kQ2K,    // 256: {u8 scale_min[16]; u8 q[64]; d; dmin}     w = d s q - dmin m
  kQ3K,    // 256: {u8 high[32]; u8 q[64]; u8 scale[12]; d}  w = d s q
  kQ4K,    // 256: {d; dmin; u8 scale_min[12]; u8 q[128]}    w = d s q - dmin m
  kQ5K,    // 256: {d; dmin; u8 scale_min[12]; u8 high[32]; u8 q[128]}
  kQ6K,    // 256: {u8 low[128]; u8 high[64]; i8 scale[16]; d}
};
inline constexpr int kBlockFormats = static_cast<int>(BlockFormat::kQ6K) + 1;

// Values of one block; 1 for kNone.
constexpr int64_t BlockValues(BlockFormat format) {
  switch (format) {
    case BlockFormat::kNone:
      return 1;
    case BlockFormat::kQ8_0:
    case BlockFormat::kMxfp4:
      return 32;
    default:
      return 256;
  }
}

// Bytes of one block; 0 for kNone, whose dtype says it.
constexpr size_t BlockBytes(BlockFormat format) {
  switch (format) {
    case BlockFormat::kNone:
      return 0;
    case BlockFormat::kQ8_0:
      return 34;
    case BlockFormat::kMxfp4:
      return 17;
    case BlockFormat::kQ2K:
      return 84;
    case BlockFormat::kQ3K:
      return 110;
    case BlockFormat::kQ4K:
      return 144;
    case BlockFormat::kQ5K:
      return 176;
    case BlockFormat::kQ6K:
      return 210;
  }
  return 0;
}

// "Q8_0", "MXFP4", "Q2_K", ...; "" for kNone.
std::string_view BlockFormatName(BlockFormat format);

// The first n values of the row at `row`, exactly: every w of these formats is
// a double. `n` is a multiple of BlockValues; `format` is not kNone. A 255 as
// MXFP4's e is NaN, as in every e8m0.
void DecodeBlocks(BlockFormat format, const std::byte* row, int64_t n,
                  double* out);

// Quantises n values (a multiple of 32) to Q8_0: per block d = float16(amax /
// 127), q = round to nearest even(x * (1 / (amax / 127))), the scale before its
// rounding. Writes n / 32 * 34 bytes.
void EncodeQ8_0(const float* x, int64_t n, std::byte* out);

// A tensor as a file holds it: a plain view, or blocks (then U8 rows), or
// packed for the kernels of one back end: then dtype and shape are those of the
// original, and `packed` are all its bytes.
struct StoredView {
  StoredView() = default;
  StoredView(const ConstTensorView& plain)  // NOLINT: every view is one
      : view(plain) {}
  StoredView(const TensorView& plain)  // NOLINT
      : view(plain) {}
  StoredView(const ConstTensorView& bytes, BlockFormat blocks)
      : view(bytes), format(blocks) {}

  bool empty() const { return view.empty(); }

  ConstTensorView view;
  BlockFormat format = BlockFormat::kNone;
  std::span<const std::byte> packed = {};
};

}  // namespace belay

#endif  // BELAY_TENSOR_BLOCK_FORMAT_H_
