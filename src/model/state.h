// SPDX-License-Identifier: Apache-2.0
// The memory that a model works in: activations, shared by all layers of a
// step, and caches, kept between steps. Placed once, by spec's layout.
#ifndef BELAY_MODEL_STATE_H_
#define BELAY_MODEL_STATE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/cache.h"
#include "spec/config.h"
#include "spec/layout.h"
#include "tensor/view.h"

namespace belay::model {

// Views of one step's activations; T flat tokens, R rows with logits, act =
// bf16, or f32 in exact numerics.
struct Activations {
  TensorView h;               // [T, hc, dim] act: the hidden streams
  TensorView h_next;          // [T, hc, dim] act: MTP scratch
  TensorView x;               // [T, dim] act: a sublayer's input
  TensorView xn;              // [T, dim] act: normed
  TensorView y;               // [T, dim] act: a sublayer's output
  TensorView post;            // [T, hc] f32
  TensorView comb;            // [T, hc, hc] f32
  TensorView qr;              // [T, q_lora] act
  TensorView q;               // [T, heads, head_dim] act
  TensorView o;               // [T, heads, head_dim] act
  TensorView fresh;           // [T, row bytes] u8: this step's KV rows
  TensorView raw;             // [T, 2, widest compressor] f32
  TensorView selection;       // [T, index_topk] i32
  TensorView mid;             // [T, groups * o_lora] act
  TensorView gate_logits;     // [T, experts] f32
  TensorView experts;         // [T, k] i32
  TensorView expert_weights;  // [T, k] f32
  TensorView acc;             // [T, dim] f32
  TensorView head_h;          // [R, hc, dim] act
  TensorView head_x;          // [R, dim] act
  TensorView logits_local;    // [R, vocab of this rank] f32
  TensorView logits;          // [R, vocab] f32
  int n_groups = 1;           // o_groups of this rank

  // The same memory for a step of `n_tokens` tokens and `n_rows` logit rows.
  Activations ForTokens(int64_t n_tokens, int64_t n_rows) const;
};

// The caches of one layer; MTP blocks follow the main layers.
struct LayerCaches {
  ops::WindowCache window;
  ops::CompressorState state;        // ratio != 0
  ops::PagedCache compressed;        // ratio 0: .ratio == 0
  ops::CompressorState index_state;  // CSA
  ops::PagedCache index_keys;        // CSA
};

struct Caches {
  std::vector<LayerCaches> layers;  // [n_layers + n_mtp_layers]
};

// The step's inputs and results at addresses that never change.
struct StepBuffers {
  TensorView token_ids;     // [T] i32
  TensorView positions;     // [T] i32
  TensorView slots;         // [T] i32
  TensorView logit_rows;    // [R] i32
  TensorView page_table;    // [n_slots, max_pages] i32
  TensorView sampled;       // [R] i32
  TensorView logprobs;      // [R] f32
  TensorView top_ids;       // [R, top_logprobs] i32
  TensorView top_logprobs;  // [R, top_logprobs] f32
};

struct State {
  std::unique_ptr<ops::DeviceBuffer> memory;
  std::unique_ptr<ops::DeviceBuffer> workspace;
  Activations activations;
  Caches caches;
  StepBuffers step;
};

// Sets what a back end decides of a layout: exact or official numerics, and the
// rows of the caches.
void SetFormats(const ops::Backend& backend, spec::LayoutOptions* options);

// The sizes that a back end must be ready for under `options`.
ops::OpLimits LimitsFor(const spec::ModelConfig& config, const spec::Rank& rank,
                        const spec::LayoutOptions& options);

// Allocates what `layout` says on `backend`, plans the back end for it, and
// gives every view its place. Errors: SYS-003, or what the back end refuses.
StatusOr<std::unique_ptr<State>> CreateState(const spec::ModelConfig& config,
                                             const spec::Layout& layout,
                                             ops::Backend& backend);

}  // namespace belay::model

#endif  // BELAY_MODEL_STATE_H_
