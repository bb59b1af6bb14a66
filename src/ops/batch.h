// SPDX-License-Identifier: Apache-2.0
// The ragged batch that every operator sees: a flat token dimension, and spans
// that say which sequence each run of tokens belongs to.
#ifndef BELAY_OPS_BATCH_H_
#define BELAY_OPS_BATCH_H_

#include <cstdint>
#include <span>

#include "tensor/view.h"

namespace belay::ops {

// One run of consecutive tokens of one sequence. Prefill is a span with many
// tokens, decode a span with one.
struct Span {
  int32_t slot = 0;         // sequence slot: which caches
  int32_t first_token = 0;  // index of its first token in the flat dimension
  int32_t n_tokens = 0;     // >= 1
  int32_t start_pos = 0;    // position of its first token in the sequence
  int32_t adapter = 0;      // adapter slot, 0 = none
};

// The step's index data. Host spans are for back ends that run on the host; the
// views hold the same facts in the back end's memory, at addresses that never
// change. A slot appears in at most one span.
struct BatchView {
  std::span<const Span> spans;
  int64_t n_tokens = 0;
  ConstTensorView token_ids;   // [n_tokens] i32
  ConstTensorView positions;   // [n_tokens] i32, position in the own sequence
  ConstTensorView slots;       // [n_tokens] i32
  ConstTensorView page_table;  // [n_slots, max_pages] i32, -1 = no page; page p
                               // of a slot holds positions [128 p, 128 p + 128)
};

}  // namespace belay::ops

#endif  // BELAY_OPS_BATCH_H_
