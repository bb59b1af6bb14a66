// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul_bf16.h"

#include "kernels/matmul_avx512.h"

namespace belay::kernels {

#if defined(__x86_64__)

bool HasBf16MatMul() {
  return __builtin_cpu_supports("avx512bf16") != 0 &&
         __builtin_cpu_supports("avx512vbmi") != 0 &&
         __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512vl") != 0;
}

namespace {

// One kernel a kind: they differ in the order of x's columns within a step.
constexpr MatMulKernel kFp8Kernel = {"bf16-dot", avx512::PackedBytes,
                                     avx512::PackFp8, avx512::RunFp8};
constexpr MatMulKernel kFp4Kernel = {"bf16-dot", avx512::PackedBytes,
                                     avx512::PackFp4, avx512::RunFp4};
constexpr MatMulKernel kBf16Kernel = {"bf16-dot", avx512::PackedBytes,
                                      avx512::PackBf16, avx512::RunBf16};

}  // namespace

const MatMulKernel* Bf16MatMul(const WeightView& weight) {
  if (!HasBf16MatMul()) return nullptr;
  switch (weight.kind) {
    case WeightKind::kF32:
    case WeightKind::kF16:
    case WeightKind::kBlocks:
      return nullptr;
    case WeightKind::kBf16:
      return &kBf16Kernel;
    case WeightKind::kFp8:
      return weight.block_cols % 128 == 0 ? &kFp8Kernel : nullptr;
    case WeightKind::kFp4:
      return weight.block_cols == 32 ? &kFp4Kernel : nullptr;
  }
  return nullptr;
}

#else

bool HasBf16MatMul() { return false; }
const MatMulKernel* Bf16MatMul(const WeightView&) { return nullptr; }

#endif

}  // namespace belay::kernels
