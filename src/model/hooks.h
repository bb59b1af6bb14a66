// SPDX-License-Identifier: Apache-2.0
// The hooks that hold an engine against an oracle (see every stage, put a
// hidden state in, force routing and index selection), and those by which it
// keeps a resume point (model/resume.h). The functions here do nothing.
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

  // The step's KV rows [n_tokens, row bytes] u8, before they go to the ring.
  // MTP block i is layer n_layers + i.
  virtual void Window(int layer, ConstTensorView fresh);
  // The step's raw compressor rows [n_tokens, 2, width] f32; `index`: of the
  // indexer's compressor.
  virtual void Compressed(int layer, bool index, ConstTensorView raw);
};

}  // namespace belay::model

#endif  // BELAY_MODEL_HOOKS_H_
