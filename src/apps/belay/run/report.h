// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_RUN_REPORT_H_
#define BELAY_APPS_BELAY_RUN_REPORT_H_

#include <cstdint>
#include <vector>

#include "apps/belay/model/loaded_model.h"
#include "apps/belay/run/run.h"
#include "apps/belay/shell/context.h"
#include "engine/engine.h"

namespace belay::apps {

// Shows an answer while it comes and what it took when it is there.
class Answer {
 public:
  Answer(const RunArgs& args, const LoadedModel& model, const Context& context);

  void Start(const engine::Request& request);
  // Streams a token (text mode).
  void Take(const engine::Event& event);
  // The report: on stderr, or everything as one JSON document on stdout.
  // Errors: SYS-004 (interrupted), ENG-004.
  StatusOr<ExitCode> Finish(const engine::Engine& engine);

 private:
  void PrintText(const engine::Engine& engine) const;
  void PrintAnswerJson(const engine::Engine& engine) const;

  const RunArgs& args_;
  const LoadedModel& model_;
  const Context& context_;
  int64_t n_prompt_ = 0;
  uint64_t seed_ = 0;
  std::vector<int32_t> tokens_;
  engine::FinishReason finish_ = engine::FinishReason::kNone;
};

// --explain: every operator's implementations, fastest first, and why one is
// not used.
StatusOr<ExitCode> ExplainBackend(const ops::Backend& backend,
                                  const Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_RUN_REPORT_H_
