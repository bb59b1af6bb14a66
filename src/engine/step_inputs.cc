// SPDX-License-Identifier: Apache-2.0
#include "engine/step_inputs.h"

#include <algorithm>

namespace belay::engine {

StepInputs::StepInputs(const spec::Layout& layout,
                       const model::StepBuffers& device)
    : max_tokens_(layout.options.max_tokens),
      pages_per_slot_(layout.max_pages_per_slot),
      device_(device),
      page_table_(static_cast<size_t>(layout.options.n_slots * pages_per_slot_),
                  -1) {
  const auto n_tokens = static_cast<size_t>(max_tokens_);
  spans_.reserve(static_cast<size_t>(layout.options.n_slots));
  token_ids_.reserve(n_tokens);
  positions_.reserve(n_tokens);
  slots_.reserve(n_tokens);
  logit_rows_.reserve(static_cast<size_t>(layout.options.max_logit_rows));
}

void StepInputs::Clear() {
  spans_.clear();
  token_ids_.clear();
  positions_.clear();
  slots_.clear();
  logit_rows_.clear();
}

int32_t StepInputs::AddSpan(int32_t slot, int32_t start_pos,
                            std::span<const int32_t> tokens) {
  const auto first = static_cast<int32_t>(token_ids_.size());
  const auto n = static_cast<int32_t>(tokens.size());
  BELAY_CHECK(first + n <= max_tokens_);
  spans_.push_back({slot, first, n, start_pos, 0});
  for (int32_t i = 0; i < n; ++i) {
    token_ids_.push_back(tokens[static_cast<size_t>(i)]);
    positions_.push_back(start_pos + i);
    slots_.push_back(slot);
  }
  return first;
}

int32_t StepInputs::AddLogitRow(int32_t flat_token) {
  logit_rows_.push_back(flat_token);
  return static_cast<int32_t>(logit_rows_.size()) - 1;
}

void StepInputs::SetPages(int32_t slot, std::span<const int32_t> pages) {
  const auto row = page_table_.begin() + slot * pages_per_slot_;
  std::copy(pages.begin(), pages.end(), row);
  std::fill(row + static_cast<int64_t>(pages.size()), row + pages_per_slot_,
            -1);
}

model::StepPlan StepInputs::Upload(ops::Backend& backend) {
  const auto put = [&](TensorView dst, const std::vector<int32_t>& src) {
    const TensorView part = dst.rows(0, static_cast<int64_t>(src.size()));
    if (!src.empty()) backend.CopyIn(part, src.data());
    return part;
  };
  model::StepPlan plan;
  plan.batch.spans = spans_;
  plan.batch.n_tokens = n_tokens();
  plan.batch.token_ids = put(device_.token_ids, token_ids_);
  plan.batch.positions = put(device_.positions, positions_);
  plan.batch.slots = put(device_.slots, slots_);
  plan.batch.page_table = device_.page_table;
  backend.CopyIn(device_.page_table, page_table_.data());
  plan.logit_rows = put(device_.logit_rows, logit_rows_);
  return plan;
}

}  // namespace belay::engine
