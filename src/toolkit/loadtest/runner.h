// SPDX-License-Identifier: Apache-2.0
// Runs a plan against a server.
#ifndef BELAY_TOOLKIT_LOADTEST_RUNNER_H_
#define BELAY_TOOLKIT_LOADTEST_RUNNER_H_

#include <atomic>
#include <cstddef>
#include <functional>

#include "toolkit/loadtest/plan.h"

namespace belay::loadtest {

// How far a level is.
struct LoadProgress {
  Level level;
  bool warming_up = false;
  size_t n_done = 0;
  size_t n_planned = 0;  // of an open level: about
  size_t n_failed = 0;
  size_t n_under_way = 0;
  double seconds = 0;
};

struct RunHooks {
  // Called from the thread of RunLoad, about ten times a second.
  std::function<void(const LoadProgress&)> progress;
  // Set by the user's Ctrl-C: what is under way is cancelled, and the report
  // has what was measured until then.
  const std::atomic<bool>* stop = nullptr;
};

// Errors: HTTP-002 (the URL), LOAD-001 (no server there, or not ready).
// Everything that goes wrong later is a finding of the report.
StatusOr<LoadReport> RunLoad(const Plan& plan, const RunHooks& hooks);

}  // namespace belay::loadtest

#endif  // BELAY_TOOLKIT_LOADTEST_RUNNER_H_
