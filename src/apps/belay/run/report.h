// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_RUN_REPORT_H_
#define BELAY_APPS_BELAY_RUN_REPORT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "apps/belay/model/loaded_model.h"
#include "apps/belay/run/run.h"
#include "apps/belay/shell/context.h"
#include "apps/belay/talk/answer_text.h"
#include "engine/engine.h"

namespace belay::apps {

// Shows an answer while it comes and what it took when it is there.
class Answer {
 public:
  Answer(const RunArgs& args, const RunPrompt& prompt, const LoadedModel& model,
         const Context& context);

  // Streams a token, or the text that it makes. True when a stop string was
  // met: the request can be cancelled, and its end counts as a stop.
  bool Take(const engine::Event& event);
  // The report: on stderr, or everything as one JSON document on stdout.
  // Interrupted: with JSON the document of the tokens so far and exit code
  // 130, else SYS-004. Errors: ENG-004.
  StatusOr<ExitCode> Finish(const engine::Engine& engine, uint64_t seed);

 private:
  void PrintReport(const engine::Engine& engine) const;
  void PrintAnswerJson(const engine::Engine& engine, uint64_t seed) const;

  const RunArgs& args_;
  const LoadedModel& model_;
  const Context& context_;
  const RunPrompt& prompt_;
  std::optional<AnswerText> text_;  // when the prompt was text
  std::vector<int32_t> tokens_;
  engine::FinishReason finish_ = engine::FinishReason::kNone;
  bool stopped_ = false;  // by a stop string
};

// --explain: every operator's implementations, fastest first, and why one is
// not used.
StatusOr<ExitCode> ExplainBackend(const ops::Backend& backend,
                                  const Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_RUN_REPORT_H_
