// SPDX-License-Identifier: Apache-2.0
// The x86 half of blocks/matmul_int8.h. Only its .cc file is compiled for
// AVX-512; call nothing here unless Avx512Bf16Allowed().
#ifndef BELAY_KERNELS_AVX512_INT8_AVX512_H_
#define BELAY_KERNELS_AVX512_INT8_AVX512_H_

#include "kernels/matmul.h"

namespace belay::kernels::avx512 {

// The members of a MatMulKernel, see there.
size_t PackedInt8Bytes(int64_t n_cols);
void PackInt8(const float* x, int64_t begin, int64_t n, int64_t n_cols,
              std::byte* packed);
void RunInt8(const MatMulArgs& args);

}  // namespace belay::kernels::avx512

#endif  // BELAY_KERNELS_AVX512_INT8_AVX512_H_
