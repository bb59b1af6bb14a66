// SPDX-License-Identifier: Apache-2.0
#include "support/stepper.h"

#include "support/value.h"

namespace belay::test {

Stepper::Stepper(TestModel& model, const StepperOptions& options)
    : model_(model) {
  spec::LayoutOptions layout;
  layout.n_slots = options.n_slots;
  layout.max_tokens = options.max_tokens;
  layout.max_logit_rows = options.max_tokens;
  layout.max_context = options.max_context;
  layout.draft_len = options.draft_len;
  layout.mtp = true;
  model::SetFormats(model.backend(), &layout);
  layout_ = Value(spec::MakeLayout(model.config(), model.rank(), layout));
  state_ = Value(model::CreateState(model.config(), layout_, model.backend()));
  inputs_.emplace(layout_, state_->step);
  // Pages of a slot are neither neighbours nor in order.
  const int64_t n_pages = layout_.max_pages_per_slot;
  for (int64_t slot = 0; slot < options.n_slots; ++slot) {
    std::vector<int32_t> pages;
    for (int64_t page = n_pages - 1; page >= 0; --page) {
      pages.push_back(static_cast<int32_t>(page * options.n_slots + slot));
    }
    inputs_->SetPages(static_cast<int32_t>(slot), pages);
  }
  context_ = model.parts<model::Context>();
  context_.state = state_.get();
  context_.communicator =
      options.communicator != nullptr ? options.communicator : &single_;
  context_.hooks = options.hooks != nullptr ? options.hooks : &no_hooks_;
}

Logits Stepper::Pass(const std::vector<Part>& parts, bool mtp) {
  inputs_->Clear();
  for (const Part& part : parts) {
    inputs_->AddSpan(part.slot, part.start_pos, part.tokens);
  }
  const int64_t n_tokens = inputs_->n_tokens();
  for (int64_t i = 0; i < n_tokens; ++i) {
    inputs_->AddLogitRow(static_cast<int32_t>(i));
  }
  const model::StepPlan plan = inputs_->Upload(model_.backend());
  if (mtp) {
    model::ForwardMtp(context_, 0, plan);
  } else {
    model::Forward(context_, plan);
  }
  const TensorView logits = state_->activations.ForTokens(0, n_tokens).logits;
  Logits rows(static_cast<size_t>(n_tokens));
  for (int64_t i = 0; i < n_tokens; ++i) {
    auto& row = rows[static_cast<size_t>(i)];
    row.resize(static_cast<size_t>(model_.config().vocab_size));
    model_.backend().CopyOut(row.data(), logits.rows(i, 1));
  }
  Check(model_.backend().Finish());
  return rows;
}

Logits Stepper::Run(const std::vector<Part>& parts) {
  return Pass(parts, /*mtp=*/false);
}

Logits Stepper::RunMtp(const std::vector<Part>& parts) {
  return Pass(parts, /*mtp=*/true);
}

std::vector<int32_t> RandomTokens(int64_t n, int64_t vocab, uint64_t seed) {
  std::vector<int32_t> tokens;
  uint64_t state = seed * 2 + 1;
  for (int64_t i = 0; i < n; ++i) {
    // Knuth's MMIX generator; its high bits are good enough for token ids.
    state = state * 6364136223846793005u + 1442695040888963407u;
    tokens.push_back(
        static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocab)));
  }
  return tokens;
}

}  // namespace belay::test
