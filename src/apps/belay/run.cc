// SPDX-License-Identifier: Apache-2.0
// `belay run`: the whole road from a checkpoint folder and a prompt to text.
// The numbers are the stops of docs/walk.md.
#include "apps/belay/run/run.h"

#include <memory>

#include "apps/belay/model/loaded_model.h"
#include "apps/belay/run/report.h"
#include "apps/belay/shell/interrupt.h"
#include "base/error_ids.h"
#include "engine/engine.h"

namespace belay::apps {

StatusOr<ExitCode> Run(const RunArgs& args, const Context& context) {
  const std::atomic<bool>& interrupted = CatchInterrupts();

  // 5  Messages -> prompt text -> token ids.
  BELAY_ASSIGN_OR_RETURN(const RunPrompt prompt, PromptFrom(args, context));
  BELAY_ASSIGN_OR_RETURN(engine::Request request, RequestFrom(args, prompt));

  // 2  The config and the table of tensors that it implies; 3  the files,
  // mapped and checked against it; 8, 9  the back end; 4  the weights, bound.
  BELAY_ASSIGN_OR_RETURN(const auto model, LoadModel(args.model, context));
  if (args.explain) return ExplainBackend(*model->backend, context);
  if (!args.ignore_eos) request.stop_ids = model->eos_ids;

  // 6  The engine places caches and activations, and takes the request.
  BELAY_ASSIGN_OR_RETURN(const engine::EngineOptions options,
                         OptionsFrom(args, request, *model));
  BELAY_ASSIGN_OR_RETURN(
      const auto engine,
      engine::Engine::Create({&model->config(), model->weights.get(),
                              model->backend.get(), &model->communicator},
                             options));
  Answer answer(args, prompt, *model, context);
  const uint64_t seed = request.sampling.seed;
  BELAY_ASSIGN_OR_RETURN(const engine::RequestId id,
                         engine->Submit(std::move(request)));

  // 7  Each step is one forward pass, 10  a token is sampled from it, and text
  // comes out at the other end.
  while (engine->HasWork()) {
    if (interrupted) engine->Cancel(id);
    BELAY_ASSIGN_OR_RETURN(const auto events, engine->Step());
    for (const engine::Event& event : events) {
      if (answer.Take(event)) engine->Cancel(id);
    }
  }
  return answer.Finish(*engine, seed);
}

}  // namespace belay::apps
