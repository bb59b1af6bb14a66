// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_SERVE_SERVE_H_
#define BELAY_APPS_BELAY_SERVE_SERVE_H_

#include <cstdint>
#include <string>

#include "apps/belay/model/loaded_model.h"
#include "apps/belay/shell/context.h"
#include "apps/belay/talk/prompt.h"
#include "base/error.h"
#include "server/core/model.h"
#include "server/options.h"

namespace belay::apps {

// Every option of `belay serve`.
struct ServeArgs {
  ModelArgs model;
  TalkArgs talk;  // encoding; thinking for requests that do not say
  server::ServeOptions server;
  bool no_canary = false;
  bool strict_canary = false;
  int64_t max_body_mib = 16;
  // The engine.
  int32_t max_batch = 16;      // sequences at once
  int64_t max_context = 4096;  // positions of each
  int64_t cache_tokens = 0;    // of all together; 0 = max_batch * max_context
  int32_t tokens_per_step = 512;  // prefill chunk
  int32_t prefill_per_step = 0;   // beside decoding requests; 0 = what is left
  double memory_gib = 0;  // for caches and activations; 0 = what is free
  int64_t prefix_cache_mib = 256;
  std::string spill_folder;  // of prefixes; "" = none
  double spill_gib = 4;
  int64_t reserve_mib = 512;  // below it the memory guard acts
  bool speculative = false;
  std::string numa = "off";  // "auto", or the number of a node
  int32_t draft_tokens = 1;  // a step, with speculative
};

// Adds every option to the command.
void AddServeOptions(CLI::App& command, ServeArgs& args,
                     const Context& context);

// `belay serve`.
StatusOr<ExitCode> Serve(ServeArgs args, const Context& context);

// Opens the model and places the engine, when the server asks for it.
server::Loader LoaderFor(const ServeArgs& args, const Context& context);

// Binds this thread, and so all that the server starts, as --numa asks
// (toolkit/tune/bind.h); what was chosen, in words. ARG-001, SYS-005.
StatusOr<std::string> BindServer(const ServeArgs& args, const Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SERVE_SERVE_H_
