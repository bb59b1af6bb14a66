// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/error_ids.h"
#include "engine/memory/guard.h"
#include "engine/plan.h"
#include "engine/prefix/cache.h"
#include "engine/sampler.h"
#include "engine/scheduler.h"
#include "engine/step_inputs.h"
#include "model/forward.h"
#include "model/state.h"

namespace belay::engine {
namespace {

using Seconds = std::chrono::duration<double>;

class EngineImpl final : public Engine {
 public:
  EngineImpl(const EngineParts& parts, const EngineOptions& options,
             spec::Layout layout);
  Status Init();

  StatusOr<RequestId> Submit(Request request) override;
  void Cancel(RequestId id) override { scheduler_->Cancel(id); }
  bool HasWork() const override {
    return scheduler_->n_waiting() + scheduler_->n_running() > 0;
  }
  StatusOr<std::span<const Event>> Step() override;
  const EngineStats& stats() const override { return stats_; }
  const spec::Layout& layout() const override { return layout_; }

 private:
  void LookAtMemory(Clock::time_point now);
  Status RunBatch();
  Status RunMain();
  void Apply();
  void ApplyOne(Work& work);
  void CountDraft(size_t position, bool right);
  Status RunMtp();
  void AddFirstGuesses();
  void AddFurtherGuesses(int32_t i);
  Status TakeGuesses(int32_t i);
  void Emit(Sequence& sequence, int32_t row);
  void CountStep(Clock::time_point start, size_t n_generated);
  void UpdateStats();

  const EngineParts parts_;
  const EngineOptions options_;
  const spec::Layout layout_;
  const Environment machine_;
  const Environment& environment_;
  std::unique_ptr<model::State> state_;
  std::unique_ptr<PrefixCache> cache_;
  std::unique_ptr<StepInputs> inputs_;
  std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Sampler> sampler_;
  model::Context context_;
  MemoryGuard guard_;
  std::vector<Event> events_;
  EngineStats stats_;
  RequestId next_id_ = 1;
};

EngineImpl::EngineImpl(const EngineParts& parts, const EngineOptions& options,
                       spec::Layout layout)
    : parts_(parts),
      options_(options),
      layout_(std::move(layout)),
      environment_(parts.environment != nullptr ? *parts.environment
                                                : machine_),
      guard_(environment_, options.reserve_bytes, options.n_slots) {}

Status EngineImpl::Init() {
  ops::Backend& backend = *parts_.backend;
  BELAY_ASSIGN_OR_RETURN(state_,
                         model::CreateState(*parts_.config, layout_, backend));
  BELAY_ASSIGN_OR_RETURN(std::unique_ptr<PrefixSpill> spill,
                         OpenSpill(options_, layout_));
  BELAY_ASSIGN_OR_RETURN(
      cache_,
      PrefixCache::Create(layout_, state_->caches, backend, std::move(spill)));
  inputs_ = std::make_unique<StepInputs>(layout_, state_->step);
  scheduler_ = std::make_unique<Scheduler>(layout_, *cache_, *inputs_);
  sampler_ = std::make_unique<Sampler>(layout_, state_->step, backend);
  // The tokens of a step, and its end, of every sequence.
  events_.reserve((2 + static_cast<size_t>(options_.n_draft_tokens)) *
                  static_cast<size_t>(layout_.options.n_slots));
  context_ = {.config = parts_.config,
              .weights = parts_.weights,
              .state = state_.get(),
              .backend = parts_.backend,
              .communicator = parts_.communicator,
              .hooks = &cache_->hooks()};
  stats_.n_pages = layout_.options.n_pages;
  UpdateStats();
  return absl::OkStatus();
}

StatusOr<RequestId> EngineImpl::Submit(Request request) {
  BELAY_ASSIGN_OR_RETURN(
      std::unique_ptr<Sequence> sequence,
      MakeSequence(std::move(request), parts_.config->vocab_size,
                   options_.max_context));
  const int64_t n_pages = scheduler_->PagesFor(*sequence);
  if (n_pages > layout_.options.n_pages) {
    return MakeError(
        kEngContextTooLong,
        {.where = "cache pages",
         .what = "",
         .expected = "<= " + std::to_string(layout_.options.n_pages),
         .got = std::to_string(n_pages)});
  }
  if (options_.max_queue > 0 && scheduler_->n_waiting() >= options_.max_queue) {
    ++stats_.n_refused;
    const auto seconds = std::llround(stats_.retry_after_seconds);
    return MakeError(kEngQueueFull,
                     {.where = "queue",
                      .what = "retry after " + std::to_string(seconds) + " s",
                      .expected = "< " + std::to_string(options_.max_queue),
                      .got = std::to_string(scheduler_->n_waiting())});
  }
  const RequestId id = next_id_++;
  sequence->id = id;
  const Seconds arrival = environment_.Now().time_since_epoch();
  sequence->rank =
      arrival.count() - options_.priority_seconds * sequence->priority;
  scheduler_->Queue(std::move(sequence));
  UpdateStats();
  return id;
}

// --- One step ---

void EngineImpl::LookAtMemory(Clock::time_point now) {
  const GuardState before = guard_.state();
  if (!guard_.Look(now, scheduler_->n_running())) return;
  if (guard_.state() != before) {
    cache_->SetKeeping(guard_.state() == GuardState::kNormal);
  }
}

Status EngineImpl::RunMain() {
  const model::StepPlan plan = inputs_->Upload(*parts_.backend);
  model::Forward(context_, plan);
  sampler_->Clear();
  for (const Work& work : scheduler_->work()) {
    if (work.row < 0) continue;
    sampler_->AddNext(*work.sequence);
    for (int32_t i = 0; i < work.n_drafts; ++i) {
      sampler_->AddAfterDraft(*work.sequence, i);
    }
  }
  return sampler_->Run(
      state_->activations.ForTokens(0, inputs_->n_logit_rows()).logits);
}

void EngineImpl::Emit(Sequence& s, int32_t row) {
  const int32_t token = sampler_->token(row);
  if (token < 0) {
    s.finish = FinishReason::kError;
  } else {
    s.Append(token);
    ++stats_.n_generated_tokens;
  }
  Event event{.request = s.id, .token = token, .finish = s.finish};
  if (!s.has_event) event.n_cached_tokens = s.n_reused;
  s.has_event = true;
  sampler_->Describe(row, event);
  events_.push_back(event);
}

void EngineImpl::CountDraft(size_t position, bool right) {
  ++stats_.n_drafts;
  ++stats_.drafts_by_position[position];
  if (!right) return;
  ++stats_.n_accepted;
  ++stats_.accepted_by_position[position];
}

// A draft counts only when it is the very token that plain decoding samples:
// the draw depends on (seed, position) and on the tokens before alone, so the
// answer is the same either way.
void EngineImpl::ApplyOne(Work& work) {
  Sequence& s = *work.sequence;
  work.n_accepted = work.n_tokens - work.n_drafts;
  if (work.row >= 0) Emit(s, work.row);
  for (int32_t i = 0; i < work.n_drafts; ++i) {
    if (s.finish != FinishReason::kNone) break;
    const auto at = static_cast<size_t>(i);
    const bool right = s.tokens.back() == s.drafts[at];
    CountDraft(at, right);
    if (!right) break;
    ++work.n_accepted;
    Emit(s, work.row + 1 + i);
  }
  s.drafts.clear();
  s.n_cached += work.n_accepted;
}

void EngineImpl::Apply() {
  for (Work& work : scheduler_->work()) ApplyOne(work);
}

// The MTP block reads the hidden state of position p beside the token at p + 1,
// for all positions of the step, and guesses the token after the newest one.
void EngineImpl::AddFirstGuesses() {
  inputs_->ClearLogitRows();
  const std::span<int32_t> ids = inputs_->token_ids();
  for (Work& work : scheduler_->work()) {
    const Sequence& s = *work.sequence;
    const int32_t start = s.n_cached - work.n_accepted;
    for (int32_t i = 0; i < work.n_tokens; ++i) {
      // A rejected draft's row has no next token; what it writes is overwritten
      // when its position comes again.
      const int32_t next = std::min(start + i + 1, s.n_tokens() - 1);
      const int32_t row = work.first + i;
      ids[static_cast<size_t>(row)] = s.tokens[static_cast<size_t>(next)];
    }
    // A constraint cannot take back a token that turns out wrong.
    const bool wants_draft = work.row >= 0 && s.finish == FinishReason::kNone &&
                             s.n_tokens() + 1 < s.n_limit &&
                             s.constraint == nullptr;
    work.row = -1;
    if (!wants_draft) continue;
    work.row = inputs_->AddLogitRow(work.first + work.n_accepted - 1);
    sampler_->AddGuess(s, 0);
  }
}

// From there it goes on with its own hidden state beside its own guess, one
// position a sequence. What it writes is overwritten, too.
void EngineImpl::AddFurtherGuesses(int32_t i) {
  inputs_->Clear();
  for (Work& work : scheduler_->work()) {
    if (work.row < 0) continue;
    const Sequence& s = *work.sequence;
    const int32_t guess = std::max(sampler_->token(work.row), 0);
    const int32_t position = s.n_tokens() - 2 + i;
    work.row = inputs_->AddLogitRow(
        inputs_->AddSpan(s.slot, position, std::span(&guess, 1)));
    sampler_->AddGuess(s, i);
  }
}

// Keeps draft `i` of those that can still use it. With penalties a row counts
// one draft at most (Sampler::AddAfterDraft).
Status EngineImpl::TakeGuesses(int32_t i) {
  BELAY_RETURN_IF_ERROR(sampler_->Run(
      state_->activations.ForTokens(0, inputs_->n_logit_rows()).logits));
  for (const Work& work : scheduler_->work()) {
    if (work.row < 0) continue;
    Sequence& s = *work.sequence;
    const int32_t guess = sampler_->token(work.row);
    const bool follows = static_cast<int32_t>(s.drafts.size()) == i;
    if (guess < 0 || !follows || s.n_tokens() + 1 + i >= s.n_limit ||
        (i > 0 && s.penalised())) {
      continue;
    }
    s.drafts.push_back(guess);
  }
  return absl::OkStatus();
}

Status EngineImpl::RunMtp() {
  sampler_->Clear();
  AddFirstGuesses();
  model::ForwardMtp(context_, 0, inputs_->Upload(*parts_.backend));
  BELAY_RETURN_IF_ERROR(TakeGuesses(0));
  // Rows of the caches that may be wrong are nobody's prefix.
  model::Hooks none;
  model::Context further = context_;
  further.hooks = &none;
  // A block with a compressor would write to pages that are not there yet.
  const bool can_go_on = parts_.weights->mtp.front().block.ratio == 0;
  for (int32_t i = 1; can_go_on && i < options_.n_draft_tokens; ++i) {
    if (inputs_->n_logit_rows() == 0) break;
    sampler_->Clear();
    AddFurtherGuesses(i);
    model::ContinueMtp(further, 0, inputs_->Upload(*parts_.backend));
    BELAY_RETURN_IF_ERROR(TakeGuesses(i));
  }
  return absl::OkStatus();
}

Status EngineImpl::RunBatch() {
  cache_->BeginStep();
  const std::span<const Work> work = scheduler_->work();
  for (size_t i = 0; i < work.size(); ++i) {
    cache_->Capture(*work[i].sequence, inputs_->spans()[i]);
  }
  BELAY_RETURN_IF_ERROR(RunMain());
  Apply();
  if (options_.n_draft_tokens > 0) BELAY_RETURN_IF_ERROR(RunMtp());
  for (const Work& done : work) cache_->Extend(*done.sequence);
  cache_->EndStep();
  return absl::OkStatus();
}

StatusOr<std::span<const Event>> EngineImpl::Step() {
  const auto start = environment_.Now();
  events_.clear();
  LookAtMemory(start);
  scheduler_->Sweep(start, events_);
  scheduler_->Admit(start, guard_.batch_limit());
  scheduler_->Plan(options_.prefill_tokens_per_step);
  if (!scheduler_->work().empty()) {
    const size_t n_events = events_.size();
    BELAY_RETURN_IF_ERROR(RunBatch());
    const size_t n_generated = events_.size() - n_events;
    scheduler_->Sweep(start, events_);
    CountStep(start, n_generated);
  } else {
    cache_->Idle();
    if (scheduler_->n_waiting() > 0) cache_->WaitForDisk();
  }
  UpdateStats();
  return std::span<const Event>(events_);
}

// --- Statistics ---

void EngineImpl::CountStep(Clock::time_point start, size_t n_generated) {
  int64_t n_prompt_tokens = 0;
  for (const Work& work : scheduler_->work()) {
    if (work.prefill) n_prompt_tokens += work.n_tokens;
  }
  const double seconds = Seconds(environment_.Now() - start).count();
  ++stats_.n_steps;
  stats_.n_prefill_tokens += n_prompt_tokens;
  if (n_prompt_tokens > 0) {
    stats_.prefill_seconds += seconds;
  } else {
    stats_.decode_seconds += seconds;
    stats_.n_decode_tokens += static_cast<int64_t>(n_generated);
  }
}

void EngineImpl::UpdateStats() {
  EngineStats& s = stats_;
  s.n_finished = scheduler_->n_finished();
  s.n_preemptions = scheduler_->n_preemptions();
  s.n_prefix_hits = scheduler_->n_prefix_hits();
  s.n_prefix_misses = scheduler_->n_prefix_misses();
  s.n_prefix_tokens = scheduler_->n_prefix_tokens();
  s.n_spill_writes = cache_->n_spill_writes();
  s.n_spill_reads = cache_->n_spill_reads();
  s.n_spill_damaged = cache_->n_spill_damaged();
  s.n_waiting = scheduler_->n_waiting();
  s.n_running = scheduler_->n_running();
  s.batch_limit = guard_.batch_limit();
  s.n_free_pages = cache_->n_free();
  s.n_cached_pages = cache_->n_cached();
  s.n_resume_points = cache_->n_resume_points();
  s.guard = guard_.state();
  s.available_bytes = guard_.available_bytes();
  // A place in the queue is free when one of the running sequences has ended.
  s.retry_after_seconds =
      std::clamp(scheduler_->mean_seconds() / options_.n_slots, 1.0, 60.0);
}

}  // namespace

StatusOr<std::unique_ptr<Engine>> Engine::Create(const EngineParts& parts,
                                                 const EngineOptions& options) {
  BELAY_ASSIGN_OR_RETURN(spec::Layout layout, PlanMemory(parts, options));
  auto engine = std::make_unique<EngineImpl>(parts, options, std::move(layout));
  BELAY_RETURN_IF_ERROR(engine->Init());
  return engine;
}

}  // namespace belay::engine
