// SPDX-License-Identifier: Apache-2.0
// Products with the bf16 dot product of AVX-512 (VDPBF16PS), which Highway
// 1.0.3 does not have.
#ifndef BELAY_KERNELS_MATMUL_BF16_H_
#define BELAY_KERNELS_MATMUL_BF16_H_

#include "kernels/matmul.h"

namespace belay::kernels {

// Whether this CPU (and this build) has AVX-512 with BF16 and VBMI, and no
// lesser target is forced (kernels/simd_target.h).
bool HasBf16MatMul();

// The kernel for a weight once it is packed (kernels/pack.h), the same one for
// all; null for weights that cannot be packed and when !HasBf16MatMul(). It
// takes packed weights only. x must be exact in bf16: bf16 activations, or e4m3
// codes times a power of two. The promises of kernels/matmul.h hold; an output
// is summed in one lane, pair of columns by pair, every block of 128 columns
// (32 for FP4) in a sum of its own that is then scaled and added. bf16
// subnormals count as zero.
const MatMulKernel* Bf16MatMul(const WeightView& weight);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_MATMUL_BF16_H_
