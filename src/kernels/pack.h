// SPDX-License-Identifier: Apache-2.0
// The layout in which the AVX-512 kernels read their weights, as one stream.
//
//   tile    64 rows (the last one: what is left, in multiples of 16 rows), all
//           columns; tiles one after the other
//   block   128 columns of a tile; blocks one after the other
//   step    as many columns as give 64 bytes for 16 rows: 8 of FP4, 4 of FP8
//           and INT8, 2 of BF16; in a step the tile's vectors of 16 rows
//
// then, after the steps of a block of FP4 or INT8, its scales (e8m0, f16): for
// each 32 columns (128 of kInt8Wide) the rows of the tile. Rows and columns
// that do not exist are zeros.
//
// In a vector, 32-bit lane l belongs to row l. What it holds is chosen so that
// the cheapest decoding leaves pairs of neighbouring columns in every lane,
// which is what VDPBF16PS takes:
//   BF16  columns 0 and 1
//   FP8   the bytes of columns 0 and 1 of four rows, then of columns 2 and 3,
//         in each 128 bits
//   FP4   the nibbles of columns 0 2 4 6, then 1 3 5 7
// The integer dot product takes four columns: from FP4 those of all low nibbles
// (0 4 1 5), then of all high ones (2 6 3 7), and so
//   INT8  columns 0 4 1 5 of every eight in one step, 2 6 3 7 in the next, in
//         which order blocks/pack_int8.h hands them over
#ifndef BELAY_KERNELS_PACK_H_
#define BELAY_KERNELS_PACK_H_

#include <cstddef>
#include <cstdint>

#include "kernels/weight.h"

namespace belay::kernels {

// Rows of a tile and of a vector, columns of a block.
inline constexpr int64_t kPackRows = 64;
inline constexpr int64_t kPackLanes = 16;
inline constexpr int64_t kPackCols = 128;

// This layout's name. Files keep packed weights (belay pack): whoever changes a
// byte of the layout changes the name.
inline constexpr char kPackLayout[] = "tiles64x128-1";

// Whether the layout takes this weight: BF16, FP8 whose scale blocks are
// multiples of 16 rows and 128 columns, or FP4 with blocks of 32 columns.
bool CanPackWeight(const WeightView& plain);

// Bytes of the packed weight; only its kind and its sizes count.
size_t PackedWeightBytes(const WeightView& plain);

// Packs the rows [row_begin, row_end) of `plain` to their places in `packed`.
// row_begin is a multiple of kPackRows, and so is row_end unless it is n_rows.
void PackWeightRows(const WeightView& plain, int64_t row_begin, int64_t row_end,
                    std::byte* packed);

// Packs one block, which `plain` is: at most kPackRows rows and kPackCols
// columns. Beside the kinds of CanPackWeight() kInt8 and kInt8Wide, whose
// scale_code has two bytes a scale (f16).
void PackWeightBlock(const WeightView& plain, std::byte* packed);

// Where the block of row `row` and column `col`, multiples of kPackRows and
// kPackCols, stands in the packed weight: bytes from its start.
size_t PackedBlockOffset(const WeightView& plain, int64_t row, int64_t col);

// The packed weight at `packed`, which is aligned to 64 bytes; scales of FP8
// stay where they are.
WeightView PackedView(const WeightView& plain, const std::byte* packed);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_PACK_H_
