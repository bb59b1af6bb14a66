// SPDX-License-Identifier: Apache-2.0
// Who runs, who waits, and what the next step computes.
#ifndef BELAY_ENGINE_SCHEDULER_H_
#define BELAY_ENGINE_SCHEDULER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/prefix/cache.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "engine/step_inputs.h"
#include "spec/layout.h"

namespace belay::engine {

// What a step asks of one sequence.
struct Work {
  Sequence* sequence = nullptr;
  int32_t first = 0;  // flat index of its first token
  int32_t n_tokens = 0;
  bool prefill = false;
  int32_t n_drafts = 0;    // of its tokens, the last ones
  int32_t row = -1;        // its first logit row, -1 = none (mid-prompt)
  int32_t n_accepted = 0;  // tokens whose rows stay in the caches
};

// Sequences come in order of arrival, with a head start for each level of
// priority (Sequence::rank): in that order they are admitted, and in the
// opposite one they lose their place when cache pages run short. The first of
// them can always go on and nobody is overtaken for ever, so that everything
// ends.
class Scheduler {
 public:
  // Borrows all.
  Scheduler(const spec::Layout& layout, PrefixCache& cache, StepInputs& inputs);

  // Pages for all that the sequence may ever hold, drafts included.
  int64_t PagesFor(const Sequence& sequence) const;
  void Queue(std::unique_ptr<Sequence> sequence);
  void Cancel(RequestId id);

  // Lets go of sequences that have ended; adds the events of those that end by
  // cancellation or deadline.
  void Sweep(Clock::time_point now, std::vector<Event>& events);
  // Makes room for the next tokens of who runs, then admits who fits, up to
  // `batch_limit` running sequences.
  void Admit(Clock::time_point now, int32_t batch_limit);
  // Puts the next batch into the step's inputs. Decoding sequences come first,
  // since somebody watches them; what they leave (at most `prefill_tokens`
  // while there are any; 0 = all) is shared evenly between the prompts.
  void Plan(int32_t prefill_tokens);
  std::span<Work> work() { return work_; }

  int32_t n_waiting() const { return static_cast<int32_t>(waiting_.size()); }
  int32_t n_running() const { return static_cast<int32_t>(running_.size()); }
  int64_t n_finished() const { return n_finished_; }
  int64_t n_preemptions() const { return n_preemptions_; }
  int64_t n_prefix_hits() const { return n_prefix_hits_; }
  int64_t n_prefix_misses() const { return n_prefix_misses_; }
  int64_t n_prefix_tokens() const { return n_prefix_tokens_; }
  // Of finished requests, from admission on; a running mean. 0 = none yet.
  double mean_seconds() const { return mean_seconds_; }

 private:
  using SequencePtr = std::unique_ptr<Sequence>;

  bool EndEarly(Sequence& s, Clock::time_point now,
                std::vector<Event>& events) const;
  int64_t PagesNow(const Sequence& s) const;
  void Grow();
  bool MakeRoom(Sequence& s);
  enum class Fit : uint8_t { kNo, kYes, kReading };
  Fit Fits(Sequence& s, Clock::time_point now, int32_t batch_limit);
  void Start(size_t waiting, Clock::time_point now);
  void Vacate(Sequence& s);
  size_t VictimFor(const Sequence& s) const;
  void Preempt(size_t running);
  void CountReuse(Sequence& s);
  void AddWork(Sequence& s, int32_t n_tokens);

  const spec::Layout& layout_;
  PrefixCache& cache_;
  StepInputs& inputs_;
  std::vector<int32_t> free_slots_;
  std::vector<SequencePtr> waiting_;  // both sorted by Sequence::before
  std::vector<SequencePtr> running_;
  std::vector<Sequence*> prompts_;  // of the step, fewest tokens first
  std::vector<Work> work_;
  int64_t n_finished_ = 0;
  int64_t n_preemptions_ = 0;
  int64_t n_prefix_hits_ = 0;
  int64_t n_prefix_misses_ = 0;
  int64_t n_prefix_tokens_ = 0;
  double mean_seconds_ = 0;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_SCHEDULER_H_
