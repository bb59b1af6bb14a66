// SPDX-License-Identifier: Apache-2.0
#include "model/state.h"

#include <cstddef>
#include <span>

namespace belay::model {
namespace {

using spec::Slot;

// Turns regions into views of one block of memory.
class Mapper {
 public:
  explicit Mapper(const ops::DeviceBuffer& memory)
      : base_(static_cast<std::byte*>(memory.data())) {}

  TensorView View(const spec::Region& region) const {
    if (!region.exists()) return {};
    return TensorView(base_ + region.offset, region.dtype, region.shape);
  }

 private:
  std::byte* base_;
};

Activations MapActivations(const spec::Layout& layout, const Mapper& map,
                           int n_groups) {
  const auto at = [&](Slot slot) { return map.View(layout.at(slot)); };
  Activations a;
  a.h = at(Slot::kH);
  a.h_next = at(Slot::kHNext);
  a.x = at(Slot::kX);
  a.xn = at(Slot::kXn);
  a.y = at(Slot::kY);
  a.post = at(Slot::kPost);
  a.comb = at(Slot::kComb);
  a.qr = at(Slot::kQr);
  a.q = at(Slot::kQ);
  a.o = at(Slot::kO);
  a.fresh = at(Slot::kFresh);
  a.raw = at(Slot::kRaw);
  a.selection = at(Slot::kSelection);
  a.mid = at(Slot::kMid);
  a.gate_logits = at(Slot::kGateLogits);
  a.experts = at(Slot::kExperts);
  a.expert_weights = at(Slot::kExpertWeights);
  a.acc = at(Slot::kAcc);
  a.head_h = at(Slot::kHeadH);
  a.head_x = at(Slot::kHeadX);
  a.logits = at(Slot::kLogits);
  // One rank's logits are all logits: the gather has nothing to copy.
  a.logits_local = layout.rank.tp > 1 ? at(Slot::kLogitsLocal) : a.logits;
  a.n_groups = n_groups;
  return a;
}

LayerCaches MapLayer(const spec::LayerRegions& r, const Mapper& map) {
  LayerCaches caches;
  caches.window = {.rows = map.View(r.window), .format = r.kv_format};
  if (r.ratio == 0) return caches;
  caches.state = {.raw = map.View(r.state)};
  caches.compressed = {
      .rows = map.View(r.pages), .format = r.kv_format, .ratio = r.ratio};
  if (!r.index_pages.exists()) return caches;
  caches.index_state = {.raw = map.View(r.index_state)};
  caches.index_keys = {.rows = map.View(r.index_pages),
                       .format = r.index_format,
                       .ratio = r.ratio};
  return caches;
}

}  // namespace

Activations Activations::ForTokens(int64_t n_tokens, int64_t n_rows) const {
  Activations a = *this;
  for (TensorView* view :
       {&a.h, &a.h_next, &a.x, &a.xn, &a.y, &a.post, &a.comb, &a.qr, &a.q, &a.o,
        &a.fresh, &a.raw, &a.selection, &a.mid, &a.gate_logits, &a.experts,
        &a.expert_weights, &a.acc}) {
    *view = view->rows(0, n_tokens);
  }
  for (TensorView* view : {&a.head_h, &a.head_x, &a.logits_local, &a.logits}) {
    *view = view->rows(0, n_rows);
  }
  return a;
}

void SetFormats(const ops::Backend& backend, spec::LayoutOptions* options) {
  options->exact = !backend.numerics().official();
  options->kv_rows = backend.KvRows();
  options->index_rows = backend.IndexRows();
}

ops::OpLimits LimitsFor(const spec::ModelConfig& config, const spec::Rank& rank,
                        const spec::LayoutOptions& options) {
  ops::OpLimits limits;
  limits.n_tokens = options.max_tokens;
  limits.n_context = options.max_context + options.draft_len;
  limits.dim = config.dim;
  limits.n_heads = config.n_heads / rank.tp;
  limits.head_dim = config.head_dim;
  limits.q_lora_rank = config.q_lora_rank;
  limits.o_mid = config.o_groups / rank.tp * config.o_lora_rank;
  limits.n_index_heads = config.index_n_heads;
  limits.index_dim = config.index_head_dim;
  limits.index_topk = config.index_topk;
  limits.window_size = config.window_size;
  limits.n_experts = config.n_routed_experts;
  limits.n_experts_per_token = config.n_activated_experts;
  limits.moe_inter = config.moe_inter_dim;
  limits.vocab = config.vocab_size;
  limits.hc_mult = config.hc_mult;
  return limits;
}

StatusOr<std::unique_ptr<State>> CreateState(const spec::ModelConfig& config,
                                             const spec::Layout& layout,
                                             ops::Backend& backend) {
  auto state = std::make_unique<State>();
  BELAY_ASSIGN_OR_RETURN(state->memory, backend.Allocate(layout.total_bytes));
  const ops::OpLimits limits = LimitsFor(config, layout.rank, layout.options);
  BELAY_ASSIGN_OR_RETURN(state->workspace,
                         backend.Allocate(backend.WorkspaceBytes(limits)));
  BELAY_RETURN_IF_ERROR(backend.Plan(
      limits, std::span(static_cast<std::byte*>(state->workspace->data()),
                        state->workspace->bytes())));

  const Mapper map(*state->memory);
  state->activations = MapActivations(
      layout, map, static_cast<int>(config.o_groups) / layout.rank.tp);
  for (const spec::LayerRegions& layer : layout.layers) {
    state->caches.layers.push_back(MapLayer(layer, map));
  }
  state->step = {.token_ids = map.View(layout.at(Slot::kTokenIds)),
                 .positions = map.View(layout.at(Slot::kPositions)),
                 .slots = map.View(layout.at(Slot::kSlots)),
                 .logit_rows = map.View(layout.at(Slot::kLogitRows)),
                 .page_table = map.View(layout.at(Slot::kPageTable)),
                 .sampled = map.View(layout.at(Slot::kSampled)),
                 .logprobs = map.View(layout.at(Slot::kLogprobs)),
                 .top_ids = map.View(layout.at(Slot::kTopIds)),
                 .top_logprobs = map.View(layout.at(Slot::kTopLogprobs))};
  return state;
}

}  // namespace belay::model
