// SPDX-License-Identifier: Apache-2.0
// Products with the bf16 dot product of AVX-512 (VDPBF16PS), which Highway
// 1.0.3 does not have.
#ifndef BELAY_KERNELS_MATMUL_BF16_H_
#define BELAY_KERNELS_MATMUL_BF16_H_

#include "kernels/matmul.h"

namespace belay::kernels {

// Whether this CPU (and this build) has AVX-512 with BF16 and VBMI.
bool HasBf16MatMul();

// The kernel for a weight of this kind and these blocks, or null when there is
// none: F32 weights, blocks that its steps of 128 columns would cross, or
// !HasBf16MatMul(). x must be exact in bf16: bf16 activations, or e4m3 codes
// times a power of two. The promises of kernels/matmul.h hold; sums run over
// pairs of columns in 16 lanes, each step of 128 columns scaled on its own.
// Takes plain weights and packed ones (kernels/pack.h).
// bf16 subnormals count as zero.
const MatMulKernel* Bf16MatMul(const WeightView& weight);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_MATMUL_BF16_H_
