// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_ENGINE_SEQUENCE_H_
#define BELAY_ENGINE_SEQUENCE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/prefix/tree.h"
#include "engine/request.h"
#include "ops/sample.h"

namespace belay::engine {

// One request while it waits and runs. Whatever grows has room from the start.
struct Sequence {
  RequestId id = 0;
  SamplingParams sampling;
  std::vector<int32_t> stop_ids;
  int32_t n_top_logprobs = -1;
  std::shared_ptr<TokenConstraint> constraint;
  int32_t priority = 0;
  // Its place among all: seconds of its arrival, less what its priority is
  // worth (EngineOptions::priority_seconds).
  double rank = 0;
  Clock::time_point deadline{};

  std::vector<int32_t> tokens;  // prompt, then generated; reserved to its limit
  int32_t n_prompt = 0;
  int32_t n_limit = 0;  // tokens.size() at which it ends by length
  // The tokens by id, counted for the penalties; empty without any.
  std::vector<ops::SeenToken> seen;

  int32_t n_cached = 0;   // positions whose rows are in the caches
  int32_t n_prefill = 0;  // tokens there were at admission: prompt, and the
                          // answer so far of one that was preempted
  // The guessed next tokens; reserved to the most of a step.
  std::vector<int32_t> drafts;
  int32_t slot = -1;
  Clock::time_point admitted{};

  std::vector<int32_t> pages;    // ids; page p holds positions from 128 p
  std::vector<uint8_t> in_tree;  // [pages]: the prefix tree owns the page
  PrefixKey key;
  int32_t node = -1;      // the deepest tree node that it holds
  int32_t n_linked = 0;   // pages down to that node
  int32_t n_reused = -1;  // tokens found in the prefix cache; -1 = not admitted
                          // yet
  bool disk_tried = false;            // pages of it were asked of the disk
  Clock::time_point disk_deadline{};  // when it waits for the disk no longer
  bool has_event = false;             // has had its first event
  bool cancelled = false;
  FinishReason finish = FinishReason::kNone;

  int32_t n_tokens() const { return static_cast<int32_t>(tokens.size()); }
  // Tokens whose rows are not in the caches yet; 1 while decoding.
  int32_t n_pending() const { return n_tokens() - n_cached; }
  bool prefilling() const { return n_cached < n_prefill; }
  bool penalised() const {
    return sampling.presence_penalty != 0 || sampling.frequency_penalty != 0 ||
           sampling.repetition_penalty != 1;
  }
  // True when this one comes first: for admission, and last to be preempted.
  bool before(const Sequence& other) const {
    return rank < other.rank || (rank == other.rank && id < other.id);
  }

  // Adds a generated token and decides whether it was the last.
  void Append(int32_t token);
};

// Checks `request` against a vocabulary of `vocab` and makes a sequence of it,
// which may grow to `max_context` tokens; its id is still 0. Errors: ARG-003,
// ARG-004, ARG-007, ENG-001, ENG-007.
StatusOr<std::unique_ptr<Sequence>> MakeSequence(Request request, int64_t vocab,
                                                 int64_t max_context);

}  // namespace belay::engine

#endif  // BELAY_ENGINE_SEQUENCE_H_
