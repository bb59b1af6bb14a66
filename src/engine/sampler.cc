// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <algorithm>

namespace belay::engine {

Sampler::Sampler(const spec::Layout& layout, const model::StepBuffers& device,
                 ops::Backend& backend)
    : backend_(backend),
      device_(device),
      n_top_(layout.options.top_logprobs),
      mask_words_(static_cast<size_t>(
          (layout.at(spec::Slot::kLogits).shape[1] + 63) / 64)) {
  const auto n_rows = static_cast<size_t>(layout.options.max_logit_rows);
  const size_t n_listed = n_rows * static_cast<size_t>(n_top_);
  rows_.reserve(n_rows);
  tokens_.resize(n_rows);
  masks_.resize(static_cast<size_t>(layout.options.n_slots) * mask_words_);
  n_tops_.resize(n_rows, -1);
  logprobs_.resize(n_rows);
  top_ids_.resize(n_listed);
  top_logprobs_.resize(n_listed);
  tops_.resize(n_listed);
}

void Sampler::Clear() {
  rows_.clear();
  n_masks_ = 0;
  wants_logprobs_ = false;
}

ops::SampleRow Sampler::RowFor(const Sequence& s, int32_t position) const {
  const SamplingParams& p = s.sampling;
  ops::SampleRow row;
  row.temperature = p.temperature;
  row.top_k = p.top_k;
  row.top_p = p.top_p;
  row.min_p = p.min_p;
  row.seed = p.seed;
  row.position = position;
  row.biases = p.logit_bias;
  if (s.penalised()) {
    row.presence_penalty = p.presence_penalty;
    row.frequency_penalty = p.frequency_penalty;
    row.repetition_penalty = p.repetition_penalty;
    row.seen = s.seen;
  }
  return row;
}

void Sampler::AddNext(const Sequence& s) {
  ops::SampleRow row = RowFor(s, s.n_tokens());
  row.n_top = s.n_top_logprobs;
  wants_logprobs_ = wants_logprobs_ || row.n_top >= 0;
  if (s.constraint != nullptr) {
    const std::span<uint64_t> mask =
        std::span(masks_).subspan(n_masks_++ * mask_words_, mask_words_);
    s.constraint->Allowed(mask);
    row.allowed = mask;
  }
  rows_.push_back(row);
}

void Sampler::AddAfterDraft(const Sequence& s, int32_t i) {
  ops::SampleRow row = RowFor(s, s.n_tokens() + 1 + i);
  if (s.penalised()) row.draft = s.drafts[static_cast<size_t>(i)];
  row.n_top = s.n_top_logprobs;
  wants_logprobs_ = wants_logprobs_ || row.n_top >= 0;
  rows_.push_back(row);
}

void Sampler::AddGuess(const Sequence& s, int32_t i) {
  rows_.push_back(RowFor(s, s.n_tokens() + i));
}

void Sampler::CopyLogprobs() {
  const auto n = static_cast<int64_t>(rows_.size());
  backend_.CopyOut(logprobs_.data(), device_.logprobs.rows(0, n));
  backend_.CopyOut(top_ids_.data(), device_.top_ids.rows(0, n));
  backend_.CopyOut(top_logprobs_.data(), device_.top_logprobs.rows(0, n));
}

Status Sampler::Run(ConstTensorView logits) {
  if (rows_.empty()) return backend_.Finish();
  const auto n = static_cast<int64_t>(rows_.size());
  ops::SampleParams params;
  params.logits = logits;
  params.rows = rows_;
  params.ids = device_.sampled.rows(0, n);
  if (wants_logprobs_) {
    params.logprobs = device_.logprobs.rows(0, n);
    params.top_ids = device_.top_ids.rows(0, n);
    params.top_logprobs = device_.top_logprobs.rows(0, n);
  }
  backend_.Sample(params);
  backend_.CopyOut(tokens_.data(), params.ids);
  if (wants_logprobs_) CopyLogprobs();
  BELAY_RETURN_IF_ERROR(backend_.Finish());
  if (!wants_logprobs_) return absl::OkStatus();
  for (size_t r = 0; r < rows_.size(); ++r) n_tops_[r] = rows_[r].n_top;
  const size_t n_listed = rows_.size() * static_cast<size_t>(n_top_);
  for (size_t i = 0; i < n_listed; ++i) {
    tops_[i] = {top_ids_[i], top_logprobs_[i]};
  }
  return absl::OkStatus();
}

void Sampler::Describe(int32_t row, Event& event) const {
  const auto r = static_cast<size_t>(row);
  if (!wants_logprobs_ || n_tops_[r] < 0 || event.token < 0) return;
  event.logprob = logprobs_[r];
  std::span<const TokenLogprob> top = std::span(tops_).subspan(
      r * static_cast<size_t>(n_top_), static_cast<size_t>(n_tops_[r]));
  while (!top.empty() && top.back().token < 0) top = top.first(top.size() - 1);
  event.top = top;
}

}  // namespace belay::engine
