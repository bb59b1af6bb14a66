// SPDX-License-Identifier: Apache-2.0
// Logits -> tokens and log probabilities, for the rows of a step.
#ifndef BELAY_ENGINE_SAMPLER_H_
#define BELAY_ENGINE_SAMPLER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "engine/request.h"
#include "engine/sequence.h"
#include "model/state.h"
#include "ops/backend.h"
#include "ops/sample.h"
#include "spec/layout.h"
#include "tensor/view.h"

namespace belay::engine {

// Everything has its place from the start.
class Sampler {
 public:
  Sampler(const spec::Layout& layout, const model::StepBuffers& device,
          ops::Backend& backend);

  // Starts an empty list of rows; results stay readable until the next Run.
  void Clear();

  // The next logit row samples the token after the newest one of `s`. Asks its
  // constraint what may come.
  void AddNext(const Sequence& s);
  // The row after that and `i` others, which counts as if they had sampled the
  // drafts [0, i] of `s`. Never for a sequence with a constraint, and with
  // penalties for i = 0 alone.
  void AddAfterDraft(const Sequence& s, int32_t i);
  // As AddNext, for the guess of draft `i`: no log probabilities.
  void AddGuess(const Sequence& s, int32_t i);

  // Samples `logits` [n_rows, vocab] and waits. A device fault is the status.
  Status Run(ConstTensorView logits);

  // Of row `row`; -1 = nothing could be sampled.
  int32_t token(int32_t row) const { return tokens_[static_cast<size_t>(row)]; }
  // Fills logprob and top of `event` when its row was asked for them; `top`
  // stays valid until the next Run that asks for some.
  void Describe(int32_t row, Event& event) const;

 private:
  ops::SampleRow RowFor(const Sequence& s, int32_t position) const;
  void CopyLogprobs();

  ops::Backend& backend_;
  const model::StepBuffers& device_;
  int64_t n_top_;      // columns of the device's lists
  size_t mask_words_;  // of one row
  bool wants_logprobs_ = false;
  std::vector<ops::SampleRow> rows_;
  std::vector<int32_t> tokens_;
  std::vector<uint64_t> masks_;  // [n_slots, mask_words]
  size_t n_masks_ = 0;           // rows of it in use
  // The last results with log probabilities, by row.
  std::vector<int32_t> n_tops_;
  std::vector<float> logprobs_;
  std::vector<int32_t> top_ids_;
  std::vector<float> top_logprobs_;
  std::vector<TokenLogprob> tops_;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_SAMPLER_H_
