// SPDX-License-Identifier: Apache-2.0
// One forward pass of DeepSeek-V4 over a ragged batch: the same code for
// prefill, decode, chunked prefill and mixtures.
#ifndef BELAY_MODEL_FORWARD_H_
#define BELAY_MODEL_FORWARD_H_

#include "model/hooks.h"
#include "model/state.h"
#include "model/weights.h"
#include "ops/backend.h"
#include "ops/communicator.h"
#include "spec/config.h"

namespace belay::model {

// Everything that a pass works with; all borrowed.
struct Context {
  const spec::ModelConfig* config = nullptr;
  const ModelWeights* weights = nullptr;
  State* state = nullptr;
  ops::Backend* backend = nullptr;
  ops::Communicator* communicator = nullptr;
  Hooks* hooks = nullptr;
};

// What a step computes.
struct StepPlan {
  ops::BatchView batch;
  ConstTensorView logit_rows;  // [n_logit_rows] i32: flat tokens whose logits
                               // are wanted
};

// Runs all layers. Afterwards state.h holds the hidden streams [n_tokens, hc,
// dim] of the last layer and state.logits the logits [n_logit_rows, vocab] f32.
void Forward(const Context& ctx, const StepPlan& plan);

// Runs MTP block `index` on the hidden streams that Forward (or the MTP block
// before) left in state.h. plan.batch holds the same spans and positions with
// the token ids shifted left by one: the token at position p + 1 beside h of p.
// Afterwards state.h holds the block's streams, state.logits its logits.
void ForwardMtp(const Context& ctx, int index, const StepPlan& plan);

// Runs MTP block `index` once more, on the streams that it left for its logit
// rows: plan.batch has one token for each of these, in their order, and each
// wants logits again. The token is the guess, its position the next one.
void ContinueMtp(const Context& ctx, int index, const StepPlan& plan);

}  // namespace belay::model

#endif  // BELAY_MODEL_FORWARD_H_
