// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels use. Highway dispatches to the best one
// that the CPU has, and the kernels of raw intrinsics go beyond it; here all of
// them can be held to a lesser one, to test or to compare it.
#ifndef BELAY_KERNELS_SIMD_TARGET_H_
#define BELAY_KERNELS_SIMD_TARGET_H_

#include <string_view>
#include <vector>

#include "base/error.h"

namespace belay::kernels {

// The targets of this build that this CPU has, best first: of "AVX512-BF16",
// "AVX3_DL" (AVX-512 as of Ice Lake), "AVX3" (as of Skylake), "AVX2", "SSE4"
// (SSE4.2), or "NEON". The first is what runs when nothing is forced.
std::vector<std::string_view> SimdTargets();

// Holds all kernels of the process to a target; "" is the best one. Highway's
// dispatch is the process's, therefore this is, too: call it before weights
// are bound and while no kernel runs. Case counts not, and "-" is "_".
// ARG-009 when no build has a target of this name, BACK-001 when this one or
// this CPU has it not.
Status UseSimdTarget(std::string_view name);

// The target that kernels use now.
std::string_view SimdTarget();

// Whether kernels of raw intrinsics for AVX-512 with BF16, VBMI and VNNI may
// run: the CPU has them, and no lesser target is in force.
bool Avx512Bf16Allowed();

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_SIMD_TARGET_H_
