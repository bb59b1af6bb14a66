// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_BACKENDS_REF_MATMUL_H_
#define BELAY_BACKENDS_REF_MATMUL_H_

#include <cstdint>
#include <span>
#include <vector>

#include "backends/ref/matrix.h"
#include "backends/ref/weights.h"
#include "ops/numerics.h"

namespace belay::ref {

// sum a_i b_i in an order that depends on n alone: eight running sums, which a
// compiler may keep in vector registers, then their sum.
double Dot(const double* a, const double* b, int64_t n);
double Dot(std::span<const float> a, std::span<const float> b);

// Rows [first, first + n) of W against every row of x, as LinearParams says:
// y [n_tokens, n] float32, not yet rounded to bf16.
Matrix MatMulRows(const ops::Numerics& numerics, const RefLinear& weight,
                  int64_t first, int64_t n, const Matrix& x);

// All rows of W.
Matrix MatMul(const ops::Numerics& numerics, const RefLinear& weight,
              const Matrix& x);

// w_i * (x_i * rsqrt(mean(x^2) + eps)), float32 steps, not yet rounded.
void RmsNormRow(std::span<const float> x, std::span<const float> weight,
                float eps, std::span<float> y);

}  // namespace belay::ref

#endif  // BELAY_BACKENDS_REF_MATMUL_H_
