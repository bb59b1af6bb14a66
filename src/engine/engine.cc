// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "base/error_ids.h"
#include "engine/page_pool.h"
#include "engine/sequence.h"
#include "engine/step_inputs.h"
#include "model/forward.h"
#include "model/state.h"

namespace belay::engine {
namespace {

// What a step asked of one sequence.
struct Work {
  Sequence* sequence = nullptr;
  int32_t first = 0;  // flat index of its first token
  int32_t n_tokens = 0;
  bool drafted = false;    // the last token is the draft
  int32_t row = -1;        // its first logit row, -1 = none (mid-prompt)
  int32_t n_accepted = 0;  // tokens whose rows stay in the caches
};

class EngineImpl final : public Engine {
 public:
  EngineImpl(const EngineParts& parts, const EngineOptions& options,
             spec::Layout layout, std::unique_ptr<model::State> state)
      : parts_(parts),
        options_(options),
        layout_(std::move(layout)),
        state_(std::move(state)),
        inputs_(layout_, state_->step),
        pages_(layout_.options.n_pages) {
    const auto n_slots = static_cast<size_t>(layout_.options.n_slots);
    const auto n_rows = static_cast<size_t>(layout_.options.max_logit_rows);
    running_.reserve(n_slots);
    work_.reserve(n_slots);
    events_.reserve(2 * n_slots);
    sample_rows_.reserve(n_rows);
    sampled_.resize(n_rows);
    for (auto slot = static_cast<int32_t>(n_slots); slot > 0; --slot) {
      free_slots_.push_back(slot - 1);
    }
    context_ = {.config = parts.config,
                .weights = parts.weights,
                .state = state_.get(),
                .backend = parts.backend,
                .communicator = parts.communicator,
                .hooks = &no_hooks_};
  }

  StatusOr<RequestId> Submit(Request request) override;
  void Cancel(RequestId id) override;
  bool HasWork() const override {
    return !waiting_.empty() || !running_.empty();
  }
  StatusOr<std::span<const Event>> Step() override;
  const EngineStats& stats() const override { return stats_; }
  const spec::Layout& layout() const override { return layout_; }

 private:
  int64_t PagesFor(const Sequence& sequence) const;
  void Admit();
  void AddWork(Sequence& sequence, int32_t n_tokens);
  void Schedule();
  Status Sample(ConstTensorView logits);
  Status RunMain();
  void Apply();
  void ApplyOne(Work& work);
  Status RunMtp();
  void Release();
  void Emit(Sequence& sequence, int32_t token);

  const EngineParts parts_;
  const EngineOptions options_;
  const spec::Layout layout_;
  const std::unique_ptr<model::State> state_;
  model::Hooks no_hooks_;
  model::Context context_;
  StepInputs inputs_;
  PagePool pages_;
  std::vector<int32_t> free_slots_;
  std::deque<std::unique_ptr<Sequence>> waiting_;
  std::vector<std::unique_ptr<Sequence>> running_;  // in order of admission
  std::vector<Work> work_;
  std::vector<ops::SampleRow> sample_rows_;
  std::vector<int32_t> sampled_;
  std::vector<Event> events_;
  EngineStats stats_;
  RequestId next_id_ = 1;
};

StatusOr<RequestId> EngineImpl::Submit(Request request) {
  BELAY_RETURN_IF_ERROR(CheckSampling(request.sampling));
  if (request.prompt.empty()) {
    return MakeError(kArgEmptyPrompt, ErrorFacts{});
  }
  const int64_t vocab = parts_.config->vocab_size;
  for (const int32_t token : request.prompt) {
    if (token < 0 || token >= vocab) {
      return MakeError(kArgTokenOutOfRange,
                       {.where = "prompt",
                        .what = "",
                        .expected = "0 .. " + std::to_string(vocab - 1),
                        .got = std::to_string(token)});
    }
  }
  const auto n_prompt = static_cast<int64_t>(request.prompt.size());
  if (n_prompt >= options_.max_context) {
    return MakeError(
        kEngContextTooLong,
        {.where = "prompt",
         .what = "",
         .expected = "< " + std::to_string(options_.max_context) + " tokens",
         .got = std::to_string(n_prompt)});
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->id = next_id_++;
  sequence->sampling = request.sampling;
  sequence->stop_ids = std::move(request.stop_ids);
  sequence->n_prompt = static_cast<int32_t>(n_prompt);
  sequence->n_limit = static_cast<int32_t>(std::min<int64_t>(
      options_.max_context, n_prompt + std::max(request.max_tokens, 1)));
  sequence->tokens = std::move(request.prompt);
  sequence->tokens.reserve(static_cast<size_t>(sequence->n_limit) + 1);
  if (PagesFor(*sequence) > layout_.options.n_pages) {
    return MakeError(
        kEngContextTooLong,
        {.where = "cache pages",
         .what = "",
         .expected = "<= " + std::to_string(layout_.options.n_pages),
         .got = std::to_string(PagesFor(*sequence))});
  }
  waiting_.push_back(std::move(sequence));
  return waiting_.back()->id;
}

void EngineImpl::Cancel(RequestId id) {
  const auto mark = [id](auto& sequences) {
    for (auto& sequence : sequences) {
      if (sequence->id == id) sequence->cancelled = true;
    }
  };
  mark(waiting_);
  mark(running_);
}

// Pages for all that the sequence may ever hold, draft included: an admitted
// sequence never waits for memory.
int64_t EngineImpl::PagesFor(const Sequence& sequence) const {
  return (sequence.n_limit + layout_.options.draft_len + kPageTokens - 1) /
         kPageTokens;
}

void EngineImpl::Admit() {
  while (!waiting_.empty()) {
    Sequence& next = *waiting_.front();
    // First come, first served: a small request never overtakes a large one.
    if (free_slots_.empty() || PagesFor(next) > pages_.n_free()) return;
    next.slot = free_slots_.back();
    free_slots_.pop_back();
    pages_.Take(PagesFor(next), next.pages);
    inputs_.SetPages(next.slot, next.pages);
    running_.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
}

void EngineImpl::AddWork(Sequence& sequence, int32_t n_tokens) {
  Work work;
  work.sequence = &sequence;
  work.n_tokens = n_tokens;
  const std::span<const int32_t> tokens(sequence.tokens);
  const auto start = static_cast<size_t>(sequence.n_cached);
  const bool reaches_end = n_tokens == sequence.n_pending();
  work.drafted = reaches_end && !sequence.prefilling() && sequence.draft >= 0;
  if (work.drafted) {
    const int32_t pair[] = {sequence.tokens.back(), sequence.draft};
    work.first = inputs_.AddSpan(sequence.slot, sequence.n_cached, pair);
    work.n_tokens = 2;
  } else {
    work.first =
        inputs_.AddSpan(sequence.slot, sequence.n_cached,
                        tokens.subspan(start, static_cast<size_t>(n_tokens)));
  }
  if (reaches_end) {
    work.row = inputs_.AddLogitRow(work.first + n_tokens - 1);
    if (work.drafted) inputs_.AddLogitRow(work.first + 1);
  }
  work_.push_back(work);
}

// Decoding sequences first, since somebody watches them; then prompts in order
// of admission, as far as the budget of tokens reaches.
void EngineImpl::Schedule() {
  inputs_.Clear();
  work_.clear();
  for (auto& sequence : running_) {
    if (!sequence->prefilling()) AddWork(*sequence, 1);
  }
  for (auto& sequence : running_) {
    if (!sequence->prefilling()) continue;
    const auto budget =
        static_cast<int32_t>(inputs_.max_tokens() - inputs_.n_tokens());
    const int32_t n = std::min(sequence->n_pending(), budget);
    if (n > 0) AddWork(*sequence, n);
  }
}

Status EngineImpl::Sample(ConstTensorView logits) {
  if (sample_rows_.empty()) return parts_.backend->Finish();
  const auto n_rows = static_cast<int64_t>(sample_rows_.size());
  const TensorView ids = state_->step.sampled.rows(0, n_rows);
  parts_.backend->Sample({.logits = logits,
                          .rows = sample_rows_,
                          .biases = {},
                          .allowed = {},
                          .ids = ids});
  parts_.backend->CopyOut(sampled_.data(), ids);
  return parts_.backend->Finish();
}

ops::SampleRow RowFor(const Sequence& sequence, int32_t position) {
  const SamplingParams& s = sequence.sampling;
  return {s.temperature, s.top_k, s.top_p, s.min_p, s.seed, position};
}

Status EngineImpl::RunMain() {
  const model::StepPlan plan = inputs_.Upload(*parts_.backend);
  model::Forward(context_, plan);
  sample_rows_.clear();
  for (const Work& work : work_) {
    if (work.row < 0) continue;
    const Sequence& s = *work.sequence;
    sample_rows_.push_back(RowFor(s, s.n_tokens()));
    if (work.drafted) sample_rows_.push_back(RowFor(s, s.n_tokens() + 1));
  }
  return Sample(
      state_->activations.ForTokens(0, inputs_.n_logit_rows()).logits);
}

void EngineImpl::Emit(Sequence& sequence, int32_t token) {
  if (token < 0) {
    sequence.finish = FinishReason::kError;
  } else {
    sequence.Append(token);
  }
  events_.push_back({sequence.id, token, sequence.finish});
}

// A draft counts only when it is the very token that plain decoding samples:
// the draw depends on (seed, position) alone, so the answer is the same either
// way.
void EngineImpl::ApplyOne(Work& work) {
  Sequence& s = *work.sequence;
  const int32_t draft = std::exchange(s.draft, -1);
  if (work.row < 0) {
    work.n_accepted = work.n_tokens;
    s.n_cached += work.n_tokens;
    return;
  }
  const int32_t token = sampled_[static_cast<size_t>(work.row)];
  work.n_accepted = work.drafted ? 1 : work.n_tokens;
  Emit(s, token);
  if (work.drafted && s.finish == FinishReason::kNone) {
    ++stats_.n_drafts;
    if (token == draft) {
      ++stats_.n_accepted;
      work.n_accepted = 2;
      Emit(s, sampled_[static_cast<size_t>(work.row) + 1]);
    }
  }
  s.n_cached += work.n_accepted;
}

void EngineImpl::Apply() {
  for (Work& work : work_) ApplyOne(work);
}

// The MTP block reads the hidden state of position p beside the token at p + 1,
// for all positions of the step, and guesses the token after the newest one.
Status EngineImpl::RunMtp() {
  inputs_.ClearLogitRows();
  sample_rows_.clear();
  const std::span<int32_t> ids = inputs_.token_ids();
  for (Work& work : work_) {
    const Sequence& s = *work.sequence;
    const int32_t start = s.n_cached - work.n_accepted;
    for (int32_t i = 0; i < work.n_tokens; ++i) {
      // A rejected draft's row has no next token; what it writes is overwritten
      // when its position comes again.
      const int32_t next = std::min(start + i + 1, s.n_tokens() - 1);
      ids[static_cast<size_t>(work.first + i)] =
          s.tokens[static_cast<size_t>(next)];
    }
    const bool wants_draft = work.row >= 0 && s.finish == FinishReason::kNone &&
                             s.n_tokens() + 1 < s.n_limit;
    work.row = -1;
    if (!wants_draft) continue;
    work.row = inputs_.AddLogitRow(work.first + work.n_accepted - 1);
    sample_rows_.push_back(RowFor(s, s.n_tokens()));
  }
  const model::StepPlan plan = inputs_.Upload(*parts_.backend);
  model::ForwardMtp(context_, 0, plan);
  BELAY_RETURN_IF_ERROR(
      Sample(state_->activations.ForTokens(0, inputs_.n_logit_rows()).logits));
  for (const Work& work : work_) {
    if (work.row < 0) continue;
    work.sequence->draft = sampled_[static_cast<size_t>(work.row)];
  }
  return absl::OkStatus();
}

void EngineImpl::Release() {
  std::erase_if(waiting_, [this](const std::unique_ptr<Sequence>& s) {
    if (!s->cancelled) return false;
    events_.push_back({s->id, -1, FinishReason::kCancelled});
    return true;
  });
  std::erase_if(running_, [this](const std::unique_ptr<Sequence>& s) {
    if (s->cancelled && s->finish == FinishReason::kNone) {
      events_.push_back({s->id, -1, FinishReason::kCancelled});
      s->finish = FinishReason::kCancelled;
    }
    if (s->finish == FinishReason::kNone) return false;
    pages_.Return(s->pages);
    free_slots_.push_back(s->slot);
    return true;
  });
}

StatusOr<std::span<const Event>> EngineImpl::Step() {
  const auto start = Clock::now();
  events_.clear();
  Release();
  Admit();
  Schedule();
  if (work_.empty()) return std::span<const Event>(events_);
  int64_t n_prompt_tokens = 0;
  for (const Work& work : work_) {
    if (work.sequence->prefilling()) n_prompt_tokens += work.n_tokens;
  }
  const size_t n_events = events_.size();
  BELAY_RETURN_IF_ERROR(RunMain());
  Apply();
  const auto n_generated = static_cast<int64_t>(events_.size() - n_events);
  if (options_.speculative) BELAY_RETURN_IF_ERROR(RunMtp());
  Release();

  const std::chrono::duration<double> elapsed = Clock::now() - start;
  ++stats_.n_steps;
  stats_.n_prefill_tokens += n_prompt_tokens;
  if (n_prompt_tokens > 0) {
    stats_.prefill_seconds += elapsed.count();
  } else {
    stats_.decode_seconds += elapsed.count();
    stats_.n_decode_tokens += n_generated;
  }
  return std::span<const Event>(events_);
}

Status CheckBudget(const spec::Layout& layout, const spec::ModelConfig& config,
                   size_t budget_bytes) {
  if (budget_bytes == 0 || layout.all_bytes() <= budget_bytes) {
    return absl::OkStatus();
  }
  const int64_t fits =
      spec::LargestContext(config, layout.rank, layout.options, budget_bytes);
  return MakeError(
      kEngMemoryBudget,
      {.where = "context " + std::to_string(layout.options.max_context),
       .what = std::to_string(layout.all_bytes() - budget_bytes) +
               " bytes are missing; the largest context that fits is " +
               std::to_string(fits),
       .expected = "<= " + std::to_string(budget_bytes) + " bytes",
       .got = std::to_string(layout.all_bytes()) + " bytes"});
}

}  // namespace

StatusOr<std::unique_ptr<Engine>> Engine::Create(const EngineParts& parts,
                                                 const EngineOptions& options) {
  if (options.speculative && parts.weights->mtp.empty()) {
    return MakeError(kEngNoMtp, ErrorFacts{});
  }
  if (options.max_context > parts.config->max_positions) {
    return MakeError(
        kEngContextTooLong,
        {.where = "context",
         .what = "",
         .expected = "<= " + std::to_string(parts.config->max_positions),
         .got = std::to_string(options.max_context)});
  }
  spec::LayoutOptions layout_options;
  layout_options.n_slots = options.n_slots;
  layout_options.draft_len = options.speculative ? 1 : 0;
  const int64_t n_decode_rows =
      options.n_slots * (1 + layout_options.draft_len);
  // Every running sequence must be able to decode in every step.
  layout_options.max_tokens =
      std::max<int64_t>(options.max_tokens_per_step, n_decode_rows);
  layout_options.max_logit_rows = std::max<int64_t>(n_decode_rows, 1);
  layout_options.max_context = options.max_context;
  layout_options.n_pages = options.n_pages;
  layout_options.mtp = options.speculative;
  layout_options.exact = !parts.backend->numerics().official();
  layout_options.workspace_bytes = parts.backend->WorkspaceBytes(
      model::LimitsFor(*parts.config, spec::Rank{}, layout_options));
  BELAY_ASSIGN_OR_RETURN(
      spec::Layout layout,
      spec::MakeLayout(*parts.config, spec::Rank{}, layout_options));
  BELAY_RETURN_IF_ERROR(
      CheckBudget(layout, *parts.config, options.budget_bytes));
  BELAY_ASSIGN_OR_RETURN(
      auto state, model::CreateState(*parts.config, layout, *parts.backend));
  return std::make_unique<EngineImpl>(parts, options, std::move(layout),
                                      std::move(state));
}

}  // namespace belay::engine
