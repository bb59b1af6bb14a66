// SPDX-License-Identifier: Apache-2.0
// Vector operations on rows of floats. Elementwise results round after every
// operation (no fused multiply-add), so that they equal plain float32 code on
// every instruction set; only sums depend on the number of lanes. Arrays need
// no alignment.
#ifndef BELAY_KERNELS_VECTOR_H_
#define BELAY_KERNELS_VECTOR_H_

#include <cstddef>

namespace belay::kernels {

// sum of x[i]^2.
float SumSquares(const float* x, size_t n);
// sum of bf16(x[i]^2): the squares are rounded, the sum is not.
float SumRoundedSquares(const float* x, size_t n);
// y = w * (x * r). y may be x.
void ScaleRow(const float* x, const float* w, float r, size_t n, float* y);
// y += x.
void AddRow(const float* x, size_t n, float* y);
// y = a * x.
void MulRow(const float* x, float a, size_t n, float* y);
// y += a * x, the product rounded first.
void AddScaledRow(const float* x, float a, size_t n, float* y);

// out = silu(min(g, limit)) * clamp(u, +-limit) * weight, in this order;
// silu(v) = v / (1 + exp(-v)). out may be g or u.
struct SwiGluParams {
  const float* g = nullptr;  // [n]
  const float* u = nullptr;  // [n]
  float limit = 0.0f;
  float weight = 1.0f;
  size_t n = 0;
  float* out = nullptr;  // [n]
};
void SwiGlu(const SwiGluParams& p);

// Rotates pairs (2i, 2i + 1): a' = a cos[i] - b sin[i], b' = a sin[i] + b
// cos[i]. x: [2 * n_pairs] in place.
void RotatePairs(const float* cos, const float* sin, size_t n_pairs, float* x);

// Walsh-Hadamard in natural order, then * scale. n is a power of two.
void Hadamard(float* x, size_t n, float scale);

// Softmax pooling, channel by channel: out[c] = sum_s kv[s][c] * p[s][c], p =
// softmax over s of score[s][c] + ape[s][c].
struct PoolParams {
  const float* const* kv = nullptr;     // [n_slots] rows of n_channels
  const float* const* score = nullptr;  // [n_slots]
  const float* const* ape = nullptr;    // [n_slots]
  size_t n_slots = 0;                   // >= 1
  size_t n_channels = 0;
  float* out = nullptr;  // [n_channels]
};
void SoftmaxPool(const PoolParams& p);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_VECTOR_H_
