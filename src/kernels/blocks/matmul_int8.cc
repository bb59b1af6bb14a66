// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks/matmul_int8.h"

#include "kernels/avx512/int8_avx512.h"
#include "kernels/blocks/pack_int8.h"
#include "kernels/simd_target.h"

namespace belay::kernels {

#if defined(__x86_64__)

namespace {

constexpr MatMulKernel kKernel = {"int8-dot", avx512::PackedInt8Bytes,
                                  avx512::PackInt8, avx512::RunInt8};

}  // namespace

const MatMulKernel* Int8DotMatMul(const WeightView& plain) {
  return Avx512Bf16Allowed() && CanPackInt8(plain) ? &kKernel : nullptr;
}

#else

const MatMulKernel* Int8DotMatMul(const WeightView&) { return nullptr; }

#endif

}  // namespace belay::kernels
