// SPDX-License-Identifier: Apache-2.0
// y = x W^T for weights in blocks that carry their own scales (GGUF).
#ifndef BELAY_KERNELS_BLOCKS_MATMUL_BLOCKS_H_
#define BELAY_KERNELS_BLOCKS_MATMUL_BLOCKS_H_

#include "kernels/matmul.h"
#include "tensor/block_format.h"

namespace belay::kernels {

// Integer products: `pack` quantises x to int8, in blocks of 32 columns for
// Q8_0 and MXFP4 and of 128 for the K types: s = fl(a / 127), q = round to
// even(fl(x * fl(127 / a))), a the largest magnitude of the block. Weights
// become int16 (their codes, for the K types times the scale of the 16 or 32
// columns), so that the sum of a block is an exact integer, whatever the order;
// it is scaled by d * s into float32 lanes, blocks in order. All formats of one
// block size share a packing and so a kernel. The promises of kernels/matmul.h
// hold. `format` is not kNone.
const MatMulKernel& Int8MatMul(BlockFormat format);

// float32 products with the dequantised weight, for x that must not be
// quantised. For tests of exact numerics: rows are decoded without SIMD.
const MatMulKernel& DequantisedMatMul();

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_BLOCKS_MATMUL_BLOCKS_H_
