// SPDX-License-Identifier: Apache-2.0
// The test before traffic: a few fixed prompts, with and without sampling. What
// it looks for is what broke for others after their server had started well:
// NaN from a certain prompt length on, answers that change from run to run or
// with their neighbours, endless repetition, leaked markers.
#ifndef BELAY_SERVER_CORE_CANARY_H_
#define BELAY_SERVER_CORE_CANARY_H_

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "server/core/model.h"

namespace belay::server {

// One stage of the canary and what came of it.
struct CanaryFinding {
  std::string
      stage;      // "finite", "repeatable", "batch", "repetition", "markers"
  Status status;  // OK, or SRV-010 to SRV-014
  bool is_warning = false;  // a model without training may look like this
};

// Runs all stages on the engine, which must have no work, and leaves it so. An
// error of the engine itself ends the canary and is the last finding.
// `on_stage` hears each stage's name before it runs; `stopped` ends it early.
std::vector<CanaryFinding> RunCanary(
    engine::Engine& engine, const ModelInfo& info,
    const std::function<void(const std::string&)>& on_stage,
    const std::function<bool()>& stopped);

// True when the tail of `tokens` is one to four tokens over and over, for 24
// tokens at least.
bool IsLoop(const std::vector<int32_t>& tokens);

}  // namespace belay::server

#endif  // BELAY_SERVER_CORE_CANARY_H_
