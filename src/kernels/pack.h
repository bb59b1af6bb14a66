// SPDX-License-Identifier: Apache-2.0
// The layout in which a product reads its weights as one stream: tiles of four
// rows, in a tile steps of 128 columns, in a step the four rows; then, for FP4,
// the scale codes of the tile in the same order. A row's own bytes stay as they
// are, so that kernels read plain and packed weights alike.
#ifndef BELAY_KERNELS_PACK_H_
#define BELAY_KERNELS_PACK_H_

#include <cstddef>
#include <cstdint>

#include "kernels/weight.h"

namespace belay::kernels {

// Rows of a tile and columns of a step.
inline constexpr int64_t kPackRows = 4;
inline constexpr int64_t kPackCols = 128;

// Whether the layout takes this weight: BF16, FP8, or FP4 with blocks of 32
// columns, and a whole number of steps.
bool CanPackWeight(const WeightView& plain);

// Bytes of the packed weight; rows are padded to whole tiles.
size_t PackedWeightBytes(const WeightView& plain);

// Packs the rows [row_begin, row_end) of `plain` to their places in `packed`.
// row_begin is a multiple of kPackRows, and so is row_end unless it is n_rows.
void PackWeightRows(const WeightView& plain, int64_t row_begin, int64_t row_end,
                    std::byte* packed);

// The packed weight at `packed`; scales of FP8 stay where they are.
WeightView PackedView(const WeightView& plain, const std::byte* packed);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_PACK_H_
