// SPDX-License-Identifier: Apache-2.0
// The hooks that hold an engine against an oracle: see every stage, put a
// hidden state in, force routing and index selection. The functions here do
// nothing, which is what a running engine uses.
#ifndef BELAY_MODEL_HOOKS_H_
#define BELAY_MODEL_HOOKS_H_

#include "tensor/view.h"

namespace belay::model {

class Hooks {
 public:
  virtual ~Hooks() = default;

  // The hidden state [n_tokens, hc, dim] before `layer`; layer == n_layers:
  // after the last. May be overwritten.
  virtual void Hidden(int layer, TensorView h);

  // True when `experts` [n_tokens, k] i32 was filled and must be used.
  virtual bool ForceExperts(int layer, TensorView experts);
  // Where to put the selection scores [n_tokens, n_experts] f32; empty =
  // nowhere.
  virtual TensorView WantRouteScores(int layer);
  virtual void Routed(int layer, ConstTensorView experts,
                      ConstTensorView weights);

  // Where to put the index scores [n_tokens, n_rows] f32; empty = nowhere.
  virtual TensorView WantIndexScores(int layer);
  // The chosen rows [n_tokens, index_topk] i32, -1 = none. May be overwritten.
  virtual void Selected(int layer, TensorView selection);
};

}  // namespace belay::model

#endif  // BELAY_MODEL_HOOKS_H_
