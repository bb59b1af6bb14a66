// SPDX-License-Identifier: Apache-2.0
// Requests -> batches -> tokens. One thread owns an engine; nothing here is
// thread-safe, and nothing is allocated in Step() once a request is admitted.
#ifndef BELAY_ENGINE_ENGINE_H_
#define BELAY_ENGINE_ENGINE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"
#include "engine/environment.h"
#include "engine/request.h"
#include "model/weights.h"
#include "ops/backend.h"
#include "ops/communicator.h"
#include "spec/config.h"
#include "spec/layout.h"

namespace belay::engine {

struct EngineOptions {
  int32_t n_slots = 1;                // sequences at once
  int32_t max_tokens_per_step = 512;  // flat tokens of a batch
  int64_t max_context = 4096;         // positions a sequence may have
  int64_t n_pages = 0;                // 0 = n_slots * pages of max_context
  size_t budget_bytes = 0;            // 0 = no limit, else ENG-003 beyond it
  // Tokens that the model's MTP head guesses in a step, each from the one
  // before; at most kMaxDraftTokens, 0 = none. The answer stays the same.
  int32_t n_draft_tokens = 0;
  // Prompt tokens of a step in which others decode, so that a long prompt does
  // not hold up their next token; 0 = all that the decoding ones leave.
  int32_t prefill_tokens_per_step = 0;
  // Seconds that a request goes ahead of others for each level of priority that
  // it has more than they; > 0. Whoever has waited longer than that for all
  // levels together cannot be overtaken: nobody starves.
  double priority_seconds = 10;
  int32_t max_queue = 0;  // waiting requests at most (ENG-006); 0 = no limit
  // Host memory for resume points of the prefix cache, which keeps what idle
  // cache pages hold; 0 = no prefix cache.
  size_t prefix_cache_bytes = 0;
  // Where prefixes are kept over a restart; "" = nowhere. Needs a prefix cache.
  std::string spill_folder = {};
  size_t spill_bytes = size_t{4} << 30;  // files in it at most
  // Tells checkpoints apart in the spill folder (checkpoint/fingerprint.h):
  // files of another model are never read. Sizes and formats are looked at
  // beside it.
  uint64_t model_fingerprint = 0;
  // When the machine has less memory available than this, the engine first
  // drops cached prefixes, then runs fewer sequences at once; 0 = never.
  size_t reserve_bytes = 0;
};

// What the memory guard has done about too little memory.
enum class GuardState : uint8_t {
  kNormal,
  kNoPrefixes,  // cached prefixes are dropped, none are kept
  kSmallBatch,  // and fewer sequences run at once: EngineStats::batch_limit
};
constexpr std::string_view GuardStateName(GuardState state) {
  switch (state) {
    case GuardState::kNormal:
      return "normal";
    case GuardState::kNoPrefixes:
      return "no_prefixes";
    case GuardState::kSmallBatch:
      return "small_batch";
  }
  return "";
}

// Counted since Create(); seconds are wall time inside Step().
struct EngineStats {
  int64_t n_steps = 0;
  int64_t n_prefill_tokens = 0;
  double prefill_seconds = 0;  // steps that carried prompt tokens
  int64_t n_decode_tokens = 0;
  double decode_seconds = 0;       // steps without prompt tokens
  int64_t n_generated_tokens = 0;  // of answers, in steps of either kind
  int64_t n_drafts = 0;            // draft tokens that were checked
  int64_t n_accepted = 0;          // and were right
  // The same by their place in the draft.
  std::array<int64_t, kMaxDraftTokens> drafts_by_position{};
  std::array<int64_t, kMaxDraftTokens> accepted_by_position{};

  int64_t n_finished = 0;       // requests that came to an end, of any kind
  int64_t n_refused = 0;        // by a full queue
  int64_t n_preemptions = 0;    // running requests that had to wait again
  int64_t n_prefix_hits = 0;    // requests that began with cached tokens
  int64_t n_prefix_misses = 0;  // requests that did not, with a cache
  int64_t n_prefix_tokens = 0;  // prompt tokens that were not computed again
  int64_t n_spill_writes = 0;   // pages written to disk
  int64_t n_spill_reads = 0;    // pages that came back from there
  int64_t n_spill_damaged = 0;  // files that were not what they should be

  // As of now.
  int32_t n_waiting = 0;
  int32_t n_running = 0;
  int32_t batch_limit = 0;   // sequences that may run; n_slots when all is well
  int64_t n_pages = 0;       // all of them
  int64_t n_free_pages = 0;  // hold nothing
  int64_t n_cached_pages = 0;  // hold prefixes that no running sequence uses
  int64_t n_resume_points = 0;
  GuardState guard = GuardState::kNormal;
  int64_t available_bytes = -1;    // what the guard saw last; -1 = nothing yet
  double retry_after_seconds = 1;  // when a full queue may have room, a guess
};

// What an engine runs on. All borrowed; must outlive it.
struct EngineParts {
  const spec::ModelConfig* config = nullptr;
  const model::ModelWeights* weights = nullptr;
  ops::Backend* backend = nullptr;
  ops::Communicator* communicator = nullptr;
  const Environment* environment = nullptr;  // null: the machine's own
};

class Engine {
 public:
  // Places all memory. Errors: ENG-003 (the budget does not hold: missing bytes
  // and the largest context that fits), SYS-003, ENG-005 (speculative without
  // an MTP head), what the back end refuses.
  static StatusOr<std::unique_ptr<Engine>> Create(const EngineParts& parts,
                                                  const EngineOptions& options);
  virtual ~Engine() = default;

  // Queues a request. Errors: ARG-003 (a token id out of range), ARG-004 (empty
  // prompt), ENG-001 (prompt does not fit the planned context), ARG-007,
  // ENG-006 (the queue is full; stats().retry_after_seconds), ENG-007 (no such
  // adapter).
  virtual StatusOr<RequestId> Submit(Request request) = 0;

  // Ends a request in any state; its kCancelled event comes with the next Step.
  virtual void Cancel(RequestId id) = 0;

  // True while a request is queued or running.
  virtual bool HasWork() const = 0;

  // Admits what fits, runs one batch, and gives its events; they stay valid
  // until the next call. A device fault is returned as the status. Without work
  // it hands a page to the spill folder, if one is not there yet.
  virtual StatusOr<std::span<const Event>> Step() = 0;

  virtual const EngineStats& stats() const = 0;
  virtual const spec::Layout& layout() const = 0;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_ENGINE_H_
