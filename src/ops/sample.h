// SPDX-License-Identifier: Apache-2.0
// Sampling: the same token on every back end for the same logits.
#ifndef BELAY_OPS_SAMPLE_H_
#define BELAY_OPS_SAMPLE_H_

#include <cstdint>
#include <span>

#include "tensor/view.h"

namespace belay::ops {

// How one row is sampled. Order: bias and penalties, allowed tokens,
// temperature, top_k, top_p, min_p, draw. A logit that is not finite after the
// corrections is never sampled.
struct SampleRow {
  float temperature = 0.0f;  // 0 = greedy: the first of the largest logits
  int32_t top_k = 0;         // 0 = off
  float top_p = 1.0f;        // >= 1: off
  float min_p = 0.0f;        // drop p < min_p * p_max
  uint64_t seed = 0;
  int32_t position = 0;  // of the token to be sampled
};

// One additive correction of a logit (logit_bias, penalties), sorted by row.
struct LogitBias {
  int32_t row = 0;
  int32_t token = 0;
  float bias = 0.0f;
};

// The probabilities: tokens are sorted by corrected logit l, ties to the lower
// id, and weigh p = exp((l - l_max) / temperature) in double, so that the
// likeliest weighs 1. All sums run in double from the likeliest down over what
// the steps before have kept: top_p keeps the shortest run of first tokens with
// sum >= top_p * total, min_p those with p >= min_p (the likeliest always).
// The draw: u = UniformFrom(seed, position) (base/random.h) in [0, 1); the
// first token at which the running sum of p exceeds u * total of the kept ones.
struct SampleParams {
  ConstTensorView logits;             // [n_rows, vocab] f32
  std::span<const SampleRow> rows;    // [n_rows]
  std::span<const LogitBias> biases;  // may be empty
  ConstTensorView
      allowed;     // [n_rows, ceil(vocab / 32)] i32 bitmask; empty = all
  TensorView ids;  // [n_rows] i32 out; -1 when a row has no finite logit
};

}  // namespace belay::ops

#endif  // BELAY_OPS_SAMPLE_H_
