// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_RUN_RUN_H_
#define BELAY_APPS_BELAY_RUN_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/belay/model/loaded_model.h"
#include "apps/belay/shell/context.h"
#include "apps/belay/talk/prompt.h"
#include "base/error.h"
#include "engine/engine.h"

namespace belay::apps {

struct RunArgs {
  ModelArgs model;
  // The prompt, in one of these forms.
  std::string tokens;       // "5,7,9"
  std::string tokens_file;  // a JSON array of ids
  std::string prompt;       // a user's message
  std::string prompt_file;  // the same in a file; - = standard input
  std::string messages;     // a file with messages or a request in JSON
  std::string tools;        // a file with a list of tools; with messages
  bool raw = false;         // text as it is: no chat encoding, no parsing
  TalkArgs talk;
  int32_t max_tokens = 128;
  engine::SamplingParams sampling;
  bool seed_given = false;
  bool ignore_eos = false;
  std::vector<std::string> stops;  // strings that end the answer
  bool speculative = false;
  int32_t draft_tokens = 1;  // a step, with speculative
  bool explain = false;
  int64_t max_context = 0;        // 0 = what the request needs
  int32_t tokens_per_step = 512;  // prefill chunk
  double memory_gib = 0;  // for caches and activations; 0 = what is free
};

// `belay run`.
StatusOr<ExitCode> Run(const RunArgs& args, const Context& context);

// A prompt and, when it was text, what turns the answer into text.
struct RunPrompt {
  TalkPrompt prompt;
  std::optional<Speaker> speaker;
};

// The prompt that the options give. Errors: ARG-001 (more than one), ARG-004
// (none, or an empty one), ARG-005, SYS-001, CHAT-*, TOK-*.
StatusOr<RunPrompt> PromptFrom(const RunArgs& args, const Context& context);

// The request that the options describe; without --seed and with a temperature
// a fresh seed. Errors: ARG-001, ARG-007.
StatusOr<engine::Request> RequestFrom(const RunArgs& args,
                                      const RunPrompt& prompt);

// Engine options that hold the request. ENG-001 when --max-context is too small
// for prompt and --max-tokens, or the model's limit is; ARG-001 for a size that
// is none.
StatusOr<engine::EngineOptions> OptionsFrom(const RunArgs& args,
                                            const engine::Request& request,
                                            const LoadedModel& model);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_RUN_RUN_H_
