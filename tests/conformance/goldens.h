// SPDX-License-Identifier: Apache-2.0
// The golden vectors (tests/data/goldens, see its PROVENANCE.md) and the tiny
// checkpoint whose weights the module vectors use.
#ifndef BELAY_TESTS_CONFORMANCE_GOLDENS_H_
#define BELAY_TESTS_CONFORMANCE_GOLDENS_H_

#include <string>
#include <vector>

#include "ops/linear.h"
#include "ops/moe.h"
#include "tensor/view.h"

namespace belay::conformance {

// A tensor of ops.safetensors, in host memory; marks it as used.
ConstTensorView Golden(const std::string& name);
// Its values, bf16 widened; F32 and BF16 tensors only.
std::vector<float> GoldenFloats(const std::string& name);
// Names that no test asked for.
std::vector<std::string> UnusedGoldens();

// A tensor of tiny_fp4 in host memory.
ConstTensorView Weight(const std::string& name);
// `<name>.weight` with `<name>.scale` when there is one, blocks by its dtype.
ops::LinearSource WeightLinear(const std::string& name,
                               bool quantise_input = true);
// `<name>.w1`, `.w2`, `.w3`.
ops::ExpertSource WeightExpert(const std::string& name);

}  // namespace belay::conformance

#endif  // BELAY_TESTS_CONFORMANCE_GOLDENS_H_
