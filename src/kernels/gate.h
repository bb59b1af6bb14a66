// SPDX-License-Identifier: Apache-2.0
// The router's arithmetic: scores of all experts, and the best few of them.
#ifndef BELAY_KERNELS_GATE_H_
#define BELAY_KERNELS_GATE_H_

#include <cstddef>
#include <cstdint>

namespace belay::kernels {

// score[i] = sqrt(softplus(logit[i])), softplus(v) = v for v > 20 (ops/moe.h);
// within 4 ulp. `score` may be `logit`.
void GateScores(const float* logit, size_t n, float* score);

// Floats that the array of TopK must have room for.
constexpr size_t TopKRoom(size_t n) { return (n + 15) / 16 * 16; }

// The k <= n best of value[0, n), highest first, ties to the lower index, as
// indices. Overwrites the values, and what is behind them up to TopKRoom(n).
// A NaN counts as lower than everything.
void TopK(float* value, size_t n, size_t k, int32_t* out);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_GATE_H_
