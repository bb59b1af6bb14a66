// SPDX-License-Identifier: Apache-2.0
#include "capi/model.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "backends/registry.h"
#include "base/cpu_count.h"
#include "base/error_ids.h"
#include "checkpoint/eos.h"

namespace belay::capi {

StatusOr<std::shared_ptr<Model>> LoadModel(const std::string& folder,
                                           const belay_model_options& options) {
  auto model = std::make_shared<Model>();
  BELAY_ASSIGN_OR_RETURN(model->tokenizer, text::Tokenizer::Open(folder));
  model->revision = text::RevisionOfCheckpoint(folder).value_or(
      text::EncodingRevision::kInitial);
  const int n_threads =
      options.n_threads == 0 ? DefaultThreads() : options.n_threads;
  BELAY_ASSIGN_OR_RETURN(model->pool, ThreadPool::Create(n_threads));
  BELAY_ASSIGN_OR_RETURN(
      model->checkpoint,
      checkpoint::Checkpoint::Open(
          folder,
          {.strict = false, .check_values = true, .pool = model->pool.get()}));
  const spec::ModelConfig& config = model->checkpoint->config();
  BELAY_ASSIGN_OR_RETURN(model->eos_ids,
                         checkpoint::EosIds(folder, config.eos_id));
  ops::Numerics numerics;
  numerics.act_block = config.fp8_block;
  numerics.kv_group = config.kv_quant_group;
  numerics.index_group = config.index_quant_group;
  numerics.norm_eps = config.norm_eps;
  BELAY_ASSIGN_OR_RETURN(
      model->backend,
      backends::Create(options.backend, numerics, model->pool.get()));
  BELAY_ASSIGN_OR_RETURN(
      model->weights, model::BindWeights(
                          config, spec::Rank{},
                          [&](std::string_view name) -> StatusOr<StoredView> {
                            return model->checkpoint->Slice(name, spec::Rank{});
                          },
                          *model->backend,
                          [&](int64_t /*done*/, int64_t /*total*/) {
                            model->checkpoint->ReleasePages();
                          }));
  engine::EngineOptions engine_options;
  engine_options.n_slots = options.max_batch;
  engine_options.max_context =
      std::min<int64_t>(options.max_context, config.max_positions);
  engine_options.budget_bytes = options.memory_bytes;
  engine_options.prefix_cache_bytes = options.prefix_bytes;
  BELAY_ASSIGN_OR_RETURN(
      auto engine,
      engine::Engine::Create({&config, model->weights.get(),
                              model->backend.get(), &model->communicator},
                             engine_options));
  model->pump = std::make_unique<Pump>(std::move(engine));
  return model;
}

}  // namespace belay::capi
