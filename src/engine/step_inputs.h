// SPDX-License-Identifier: Apache-2.0
// A step's batch, built on the host and copied to buffers whose addresses never
// change.
#ifndef BELAY_ENGINE_STEP_INPUTS_H_
#define BELAY_ENGINE_STEP_INPUTS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "model/forward.h"
#include "model/state.h"
#include "ops/backend.h"
#include "spec/layout.h"

namespace belay::engine {

class StepInputs {
 public:
  // Reserves all it will ever need for steps under `layout`.
  StepInputs(const spec::Layout& layout, const model::StepBuffers& device);

  // Starts an empty batch; the page table stays.
  void Clear();

  // Puts the next run of tokens into the batch; returns its first flat index.
  int32_t AddSpan(int32_t slot, int32_t start_pos,
                  std::span<const int32_t> tokens);
  // Wants the logits of a flat token; returns the row they will have.
  int32_t AddLogitRow(int32_t flat_token);
  // Forgets the logit rows, for a second pass over the same spans.
  void ClearLogitRows() { logit_rows_.clear(); }

  // The pages of a slot, in order of position; used from the next Upload on.
  void SetPages(int32_t slot, std::span<const int32_t> pages);

  // Ids of the batch, to be changed between two passes over the same spans.
  std::span<int32_t> token_ids() { return token_ids_; }
  std::span<const ops::Span> spans() const { return spans_; }
  int64_t n_tokens() const { return static_cast<int64_t>(token_ids_.size()); }
  int64_t n_logit_rows() const {
    return static_cast<int64_t>(logit_rows_.size());
  }
  int64_t max_tokens() const { return max_tokens_; }

  // Copies everything in; the plan's views are the device's.
  model::StepPlan Upload(ops::Backend& backend);

 private:
  int64_t max_tokens_;
  int64_t pages_per_slot_;
  model::StepBuffers device_;
  std::vector<ops::Span> spans_;
  std::vector<int32_t> token_ids_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> slots_;
  std::vector<int32_t> logit_rows_;
  std::vector<int32_t> page_table_;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_STEP_INPUTS_H_
