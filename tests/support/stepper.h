// SPDX-License-Identifier: Apache-2.0
// A model's caches and one step at a time, without an engine.
#ifndef BELAY_TESTS_SUPPORT_STEPPER_H_
#define BELAY_TESTS_SUPPORT_STEPPER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/step_inputs.h"
#include "model/forward.h"
#include "model/hooks.h"
#include "model/state.h"
#include "ops/communicator.h"
#include "spec/layout.h"
#include "support/test_model.h"

namespace belay::test {

struct StepperOptions {
  int64_t n_slots = 1;
  int64_t max_tokens = 512;
  int64_t max_context = 512;
  int64_t draft_len = 0;
  ops::Communicator* communicator = nullptr;  // null: a single rank
  model::Hooks* hooks = nullptr;              // null: none
};

// A run of one sequence's tokens.
struct Part {
  int32_t slot = 0;
  int32_t start_pos = 0;
  std::vector<int32_t> tokens;
};

using Logits = std::vector<std::vector<float>>;  // a row a flat token

class Stepper {
 public:
  Stepper(TestModel& model, const StepperOptions& options);

  // One step over `parts`, all logits wanted.
  Logits Run(const std::vector<Part>& parts);
  // MTP block 0 over the same parts: tokens shifted left by one.
  Logits RunMtp(const std::vector<Part>& parts);

 private:
  Logits Pass(const std::vector<Part>& parts, bool mtp);

  TestModel& model_;
  ops::SingleRank single_;
  model::Hooks no_hooks_;
  spec::Layout layout_;
  std::unique_ptr<model::State> state_;
  std::optional<engine::StepInputs> inputs_;
  model::Context context_;
};

// `n` tokens that look like nothing, from a seed.
std::vector<int32_t> RandomTokens(int64_t n, int64_t vocab, uint64_t seed);

}  // namespace belay::test

#endif  // BELAY_TESTS_SUPPORT_STEPPER_H_
