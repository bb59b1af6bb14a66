// SPDX-License-Identifier: Apache-2.0
// Mixture of experts.
// Source: DeepSeek-V4 inference/model.py (Gate, Expert, MoE).
#ifndef BELAY_OPS_MOE_H_
#define BELAY_OPS_MOE_H_

#include <cstdint>
#include <span>

#include "ops/linear.h"
#include "tensor/view.h"

namespace belay::ops {

// How Route finds the experts of a token.
enum class RouteBy : uint8_t {
  kScore,   // the k best of score + bias, highest first, ties to the lower id
  kTable,   // table[token id] (hash layers)
  kForced,  // `experts` already holds them (replay)
};

// logits = W x in f32; s = sqrt(softplus(logit)) (softplus(v) = v for v > 20).
// Weights: s of the chosen / their sum * route_scale; the bias only selects.
struct RouteParams {
  ConstTensorView x;                  // [n_tokens, dim]
  const BoundLinear* gate = nullptr;  // [n_experts, dim] bf16, f32 product
  RouteBy by = RouteBy::kScore;
  ConstTensorView bias;       // [n_experts] f32; kScore
  ConstTensorView table;      // [vocab, k] i64; kTable
  ConstTensorView token_ids;  // [n_tokens] i32; kTable
  float route_scale = 1.0f;
  TensorView experts;  // [n_tokens, k] i32 out (in for kForced)
  TensorView weights;  // [n_tokens, k] f32 out
  TensorView logits;   // [n_tokens, n_experts] f32 scratch
  TensorView scores;   // [n_tokens, n_experts] f32 out: s + bias; only for
                       // tests; empty on the usual path
};

struct ExpertSource {
  LinearSource w1;  // gate [inter, dim]
  LinearSource w2;  // down [dim, inter]
  LinearSource w3;  // up   [inter, dim]
};

// The experts of one layer that this rank holds. Made by Backend::BindExperts.
class BoundExperts {
 public:
  virtual ~BoundExperts() = default;
  int64_t first_expert() const { return first_expert_; }
  int64_t n_local() const { return n_local_; }

 protected:
  BoundExperts(int64_t first_expert, int64_t n_local)
      : first_expert_(first_expert), n_local_(n_local) {}

 private:
  int64_t first_expert_;
  int64_t n_local_;
};

// acc[t] = sum over the token's experts, ascending id, of round(w2(round(
// silu(min(g, limit)) * clamp(u, +-limit) * weight))), g = round(w1 x), u =
// round(w3 x); everything between the roundings in f32, acc in f32. Experts of
// other ranks add nothing.
struct RoutedExpertsParams {
  ConstTensorView x;  // [n_tokens, dim]
  const BoundExperts* experts = nullptr;
  ConstTensorView ids;      // [n_tokens, k] i32, global expert ids
  ConstTensorView weights;  // [n_tokens, k] f32
  float swiglu_limit = 10.0f;
  TensorView acc;  // [n_tokens, dim] f32 out
};

// y = round(acc + shared(x)): the same expert formula without a weight, with
// the clamp.
struct SharedExpertParams {
  ConstTensorView x;                     // [n_tokens, dim]
  const BoundExperts* expert = nullptr;  // one "expert"
  float swiglu_limit = 10.0f;
  ConstTensorView acc;  // [n_tokens, dim] f32, the routed sum of all ranks
  TensorView y;         // [n_tokens, dim] x's dtype
};

}  // namespace belay::ops

#endif  // BELAY_OPS_MOE_H_
