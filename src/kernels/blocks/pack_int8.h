// SPDX-License-Identifier: Apache-2.0
// Weights packed for the integer dot product (blocks/matmul_int8.h), in the
// tiles of kernels/pack.h.
//
//   FP4, MXFP4  as kFp4: codes and e8m0 scales as they are
//   Q8_0        as kInt8: codes and f16 scales as they are
//   FP8         as kInt8Wide: codes are quantised again, which loses something.
//               Of 128 columns of a row with the largest code a: scale =
//               f16(a / 127), code = round(value / scale), at most 127; the
//               scale of the FP8 block stays beside it
#ifndef BELAY_KERNELS_BLOCKS_PACK_INT8_H_
#define BELAY_KERNELS_BLOCKS_PACK_INT8_H_

#include <cstddef>
#include <cstdint>

#include "kernels/weight.h"

namespace belay::kernels {

// Whether the weight is one of the above: FP8 whose scale blocks are multiples
// of 16 rows and 128 columns, FP4 with blocks of 32 columns.
bool CanPackInt8(const WeightView& plain);

// What the weight will be, for PackedWeightBytes() and PackedView()
// (kernels/pack.h).
WeightView Int8Target(const WeightView& plain);

// As PackWeightRows (kernels/pack.h), converting on the way.
void PackInt8Rows(const WeightView& plain, int64_t row_begin, int64_t row_end,
                  std::byte* packed);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_BLOCKS_PACK_INT8_H_
