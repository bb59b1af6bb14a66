// SPDX-License-Identifier: Apache-2.0
// Requests -> batches -> tokens. One thread owns an engine; nothing here is
// thread-safe, and nothing is allocated in Step() once a request is admitted.
#ifndef BELAY_ENGINE_ENGINE_H_
#define BELAY_ENGINE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
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
  bool speculative = false;           // draft with the model's MTP head; the
                                      // tokens stay the same, they come faster
};

// Since Create(); seconds are wall time inside Step().
struct EngineStats {
  int64_t n_steps = 0;
  int64_t n_prefill_tokens = 0;
  double prefill_seconds = 0;  // steps that carried prompt tokens
  int64_t n_decode_tokens = 0;
  double decode_seconds = 0;  // steps without prompt tokens
  int64_t n_drafts = 0;       // draft tokens that were checked
  int64_t n_accepted = 0;     // and were right
};

// What an engine runs on. All borrowed; must outlive it.
struct EngineParts {
  const spec::ModelConfig* config = nullptr;
  const model::ModelWeights* weights = nullptr;
  ops::Backend* backend = nullptr;
  ops::Communicator* communicator = nullptr;
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
  // prompt), ENG-001 (prompt does not fit the planned context), ARG-007.
  virtual StatusOr<RequestId> Submit(Request request) = 0;

  // Ends a request in any state; its kCancelled event comes with the next Step.
  virtual void Cancel(RequestId id) = 0;

  // True while a request is queued or running.
  virtual bool HasWork() const = 0;

  // Admits what fits, runs one batch, and gives its events; they stay valid
  // until the next call. A device fault is returned as the status.
  virtual StatusOr<std::span<const Event>> Step() = 0;

  virtual const EngineStats& stats() const = 0;
  virtual const spec::Layout& layout() const = 0;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_ENGINE_H_
