// SPDX-License-Identifier: Apache-2.0
// Products with the integer dot product of AVX-512 (VPDPBUSD).
#ifndef BELAY_KERNELS_BLOCKS_MATMUL_INT8_H_
#define BELAY_KERNELS_BLOCKS_MATMUL_INT8_H_

#include "kernels/matmul.h"

namespace belay::kernels {

// The kernel for a weight once PackInt8Rows (kernels/blocks/pack_int8.h) has
// packed it, the same one for all; null for weights that CanPackInt8() refuses
// and when the CPU or a forced target has no such instruction. It takes packed
// weights only, and quantises x itself, as it is packed: blocks of 32 columns,
// s = fl(a / 127), q = round to even(fl(x * fl(127 / a))), a the largest
// magnitude of the block. Sums of 32 columns are exact integers. Four of them
// are scaled and added in float32 in order, and the result to what was before:
//   FP4, blocks  each times (scale of the weight) * s
//   FP8          each times s, the result times the scale of the weight
// The promises of kernels/matmul.h hold. n_cols is a multiple of 32.
const MatMulKernel* Int8DotMatMul(const WeightView& plain);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_BLOCKS_MATMUL_INT8_H_
