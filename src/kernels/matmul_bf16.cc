// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul_bf16.h"

#include "kernels/avx512/matmul_avx512.h"
#include "kernels/pack.h"
#include "kernels/simd_target.h"

namespace belay::kernels {

#if defined(__x86_64__)

bool HasBf16MatMul() { return Avx512Bf16Allowed(); }

namespace {

constexpr MatMulKernel kKernel = {"bf16-dot", avx512::PackedBytes, avx512::Pack,
                                  avx512::Run};

}  // namespace

const MatMulKernel* Bf16MatMul(const WeightView& weight) {
  return HasBf16MatMul() && CanPackWeight(weight) ? &kKernel : nullptr;
}

#else

bool HasBf16MatMul() { return false; }
const MatMulKernel* Bf16MatMul(const WeightView&) { return nullptr; }

#endif

}  // namespace belay::kernels
