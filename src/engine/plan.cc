// SPDX-License-Identifier: Apache-2.0
#include "engine/plan.h"

#include <algorithm>
#include <string>

#include "base/error_ids.h"
#include "model/state.h"

namespace belay::engine {
namespace {

Status CheckBudget(const spec::Layout& layout, const spec::ModelConfig& config,
                   size_t budget_bytes) {
  if (budget_bytes == 0 || layout.all_bytes() <= budget_bytes) {
    return absl::OkStatus();
  }
  const int64_t fits =
      spec::LargestContext(config, layout.rank, layout.options, budget_bytes);
  return MakeError(
      kEngMemoryBudget,
      {.where = "context " + std::to_string(layout.options.max_context),
       .what = std::to_string(layout.all_bytes() - budget_bytes) +
               " bytes are missing; the largest context that fits is " +
               std::to_string(fits),
       .expected = "<= " + std::to_string(budget_bytes) + " bytes",
       .got = std::to_string(layout.all_bytes()) + " bytes"});
}

}  // namespace

StatusOr<spec::Layout> PlanMemory(const EngineParts& parts,
                                  const EngineOptions& options) {
  if (options.n_draft_tokens > 0 && parts.weights->mtp.empty()) {
    return MakeError(kEngNoMtp, ErrorFacts{});
  }
  if (options.max_context > parts.config->max_positions) {
    return MakeError(
        kEngContextTooLong,
        {.where = "context",
         .what = "",
         .expected = "<= " + std::to_string(parts.config->max_positions),
         .got = std::to_string(options.max_context)});
  }
  spec::LayoutOptions layout_options;
  layout_options.n_slots = options.n_slots;
  layout_options.draft_len = options.n_draft_tokens;
  const int64_t n_decode_rows =
      options.n_slots * (1 + layout_options.draft_len);
  // Every running sequence must be able to decode in every step.
  layout_options.max_tokens =
      std::max<int64_t>(options.max_tokens_per_step, n_decode_rows);
  layout_options.max_logit_rows = std::max<int64_t>(n_decode_rows, 1);
  layout_options.max_context = options.max_context;
  layout_options.n_pages = options.n_pages;
  layout_options.mtp = options.n_draft_tokens > 0;
  layout_options.resume_bytes = options.prefix_cache_bytes;
  model::SetFormats(*parts.backend, &layout_options);
  layout_options.workspace_bytes = parts.backend->WorkspaceBytes(
      model::LimitsFor(*parts.config, spec::Rank{}, layout_options));
  BELAY_ASSIGN_OR_RETURN(
      spec::Layout layout,
      spec::MakeLayout(*parts.config, spec::Rank{}, layout_options));
  BELAY_RETURN_IF_ERROR(
      CheckBudget(layout, *parts.config, options.budget_bytes));
  return layout;
}

StatusOr<std::unique_ptr<PrefixSpill>> OpenSpill(const EngineOptions& options,
                                                 const spec::Layout& layout) {
  if (options.spill_folder.empty() || layout.n_resume_points == 0) {
    return nullptr;
  }
  // Pages of one model, but other formats or layers, are not the same bytes.
  uint64_t fingerprint = options.model_fingerprint;
  const auto mix = [&](uint64_t value) {
    fingerprint = (fingerprint ^ value) * 0x9e3779b97f4a7c15u;
    fingerprint ^= fingerprint >> 29;
  };
  for (const spec::LayerRegions& layer : layout.layers) {
    mix(static_cast<uint64_t>(layer.ratio));
    mix(static_cast<uint64_t>(layer.kv_format.kind));
    mix(layer.kv_format.bytes());
    mix(static_cast<uint64_t>(layer.index_format.kind));
    mix(static_cast<uint64_t>(layer.resume_window.n_rows));
  }
  mix(static_cast<uint64_t>(layout.rank.tp));
  mix(static_cast<uint64_t>(layout.rank.tp_rank));
  SpillOptions spill;
  spill.folder = options.spill_folder;
  spill.max_bytes = options.spill_bytes;
  spill.fingerprint = fingerprint;
  spill.page_bytes = layout.page_bytes;
  spill.point_bytes = layout.resume_point_bytes;
  return PrefixSpill::Open(spill);
}

}  // namespace belay::engine
