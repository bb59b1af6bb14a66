// SPDX-License-Identifier: Apache-2.0
// Sampling: the same token on every back end for the same logits.
#ifndef BELAY_OPS_SAMPLE_H_
#define BELAY_OPS_SAMPLE_H_

#include <cstdint>
#include <span>
#include <utility>

#include "tensor/view.h"

namespace belay::ops {

// A token that the row's sequence holds.
struct SeenToken {
  int32_t token = 0;
  int32_t n_generated = 0;  // times in the answer; 0 = in the prompt only
};

// How one row is sampled. The spans are host memory, borrowed for the call.
struct SampleRow {
  float temperature = 0.0f;  // 0 = greedy: the first of the largest logits
  int32_t top_k = 0;         // 0 = off
  float top_p = 1.0f;        // >= 1: off
  float min_p = 0.0f;        // drop p < min_p * p_max
  uint64_t seed = 0;
  int32_t position = 0;  // of the token to be sampled
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  float repetition_penalty = 1.0f;       // > 0
  std::span<const SeenToken> seen = {};  // each token once, in any order
  int32_t draft = -1;                    // one more generated token; -1 = none
  std::span<const std::pair<int32_t, float>> biases = {};  // {token, bias}
  std::span<const uint64_t> allowed = {};  // [ceil(vocab / 64)], bit t % 64 of
                                           // word t / 64; empty = all
  int32_t n_top = -1;  // log probabilities: -1 = none, else of the sampled
                       // token and so many of the likeliest
};

// A logit l is corrected in float32, every step rounded: for each token of
// `seen` and the draft l = l > 0 ? l / repetition : l * repetition; for those
// generated n > 0 times l = l - presence, then l = l - frequency * n; then
// every bias is added, in order. Presence and frequency penalty are OpenAI's
// (mu[j] - c[j] * frequency - (c[j] > 0) * presence), repetition penalty is
// CTRL's (Keskar et al. 2019) as vLLM applies it, to prompt and answer.
// Afterwards come: allowed tokens, temperature, top_k, top_p, min_p, draw. A
// logit that is not finite after the corrections is never sampled.
//
// The probabilities: tokens are sorted by corrected logit l, ties to the lower
// id, and weigh p = exp((l - l_max) / temperature) in double, so that the
// likeliest weighs 1. All sums run in double from the likeliest down over what
// the steps before have kept: top_p keeps the shortest run of first tokens with
// sum >= top_p * total, min_p those with p >= min_p (the likeliest always).
// The draw: u = UniformFrom(seed, position) (base/random.h) in [0, 1); the
// first token at which the running sum of p exceeds u * total of the kept ones.
//
// Log probabilities are of the logits before any correction: l - l_max -
// ln(sum exp(l - l_max)) over the finite ones, summed in double by id.
struct SampleParams {
  ConstTensorView logits;           // [n_rows, vocab] f32
  std::span<const SampleRow> rows;  // [n_rows]
  TensorView ids;  // [n_rows] i32 out; -1 when no finite logit is allowed

  // May be empty when no row wants log probabilities. Rows that want none, and
  // those with id -1, are left as they are.
  TensorView logprobs;      // [n_rows] f32 out: of the sampled token
  TensorView top_ids;       // [n_rows, k] i32 out, k >= every n_top: likeliest
                            // first, ties to the lower id; -1 = no more
  TensorView top_logprobs;  // [n_rows, k] f32 out
};

}  // namespace belay::ops

#endif  // BELAY_OPS_SAMPLE_H_
