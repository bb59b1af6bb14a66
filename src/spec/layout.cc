// SPDX-License-Identifier: Apache-2.0
#include "spec/layout.h"

#include <algorithm>
#include <string>

#include "base/error_ids.h"

namespace belay::spec {
namespace {

size_t AlignedBytes(const Region& region) {
  return (region.bytes() + kRegionAlignment - 1) / kRegionAlignment *
         kRegionAlignment;
}

// Hands out regions one after another and counts them by kind.
class Placer {
 public:
  explicit Placer(Layout& layout) : layout_(layout) {}

  Region Place(MemoryKind kind, DType dtype, const Shape& shape) {
    const Region region{layout_.total_bytes, dtype, shape};
    const size_t bytes = AlignedBytes(region);
    layout_.total_bytes += bytes;
    layout_.bytes_by_kind[static_cast<size_t>(kind)] += bytes;
    return region;
  }

  void Place(Slot slot, MemoryKind kind, DType dtype, const Shape& shape) {
    layout_.slots[static_cast<size_t>(slot)] = Place(kind, dtype, shape);
  }

 private:
  Layout& layout_;
};

RowFormat KvFormat(const ModelConfig& c, const LayoutOptions& o) {
  const int dim = static_cast<int>(c.head_dim);
  if (o.exact) return {RowKind::kF32, dim, 0, 0};
  if (o.kv_rows != RowKind::kFp8Rope) return {o.kv_rows, dim, 0, 0};
  return {RowKind::kFp8Rope, dim, static_cast<int>(c.rope_head_dim),
          c.kv_quant_group};
}

RowFormat IndexFormat(const ModelConfig& c, const LayoutOptions& o) {
  const int dim = static_cast<int>(c.index_head_dim);
  if (o.exact) return {RowKind::kF32, dim, 0, 0};
  if (o.index_rows != RowKind::kFp4) return {o.index_rows, dim, 0, 0};
  return {RowKind::kFp4, dim, 0, c.index_quant_group};
}

void PlaceActivations(const ModelConfig& c, const Layout& layout, Placer& p) {
  const LayoutOptions& o = layout.options;
  const int64_t t = o.max_tokens;
  const int64_t heads = c.n_heads / layout.rank.tp;
  const int64_t mid = c.o_groups / layout.rank.tp * c.o_lora_rank;
  const DType act = o.exact ? DType::kF32 : DType::kBF16;
  const auto place = [&](Slot slot, DType dtype, const Shape& shape) {
    p.Place(slot, MemoryKind::kActivations, dtype, shape);
  };
  place(Slot::kH, act, {t, c.hc_mult, c.dim});
  place(Slot::kHNext, act, {o.mtp ? t : 0, c.hc_mult, c.dim});
  place(Slot::kX, act, {t, c.dim});
  place(Slot::kXn, act, {t, c.dim});
  place(Slot::kY, act, {t, c.dim});
  place(Slot::kPost, DType::kF32, {t, c.hc_mult});
  place(Slot::kComb, DType::kF32, {t, c.hc_mult, c.hc_mult});
  place(Slot::kQr, act, {t, c.q_lora_rank});
  place(Slot::kQ, act, {t, heads, c.head_dim});
  place(Slot::kO, act, {t, heads, c.head_dim});
  const auto row_bytes = static_cast<int64_t>(KvFormat(c, o).bytes());
  place(Slot::kFresh, DType::kU8, {t, row_bytes});
  place(Slot::kRaw, DType::kF32,
        {t, 2, 2 * std::max(c.head_dim, c.index_head_dim)});
  place(Slot::kSelection, DType::kI32, {t, c.index_topk});
  place(Slot::kMid, act, {t, mid});
  place(Slot::kGateLogits, DType::kF32, {t, c.n_routed_experts});
  place(Slot::kExperts, DType::kI32, {t, c.n_activated_experts});
  place(Slot::kExpertWeights, DType::kF32, {t, c.n_activated_experts});
  place(Slot::kAcc, DType::kF32, {t, c.dim});
}

void PlaceStep(const ModelConfig& c, const Layout& layout, Placer& p) {
  const LayoutOptions& o = layout.options;
  const int64_t rows = o.max_logit_rows;
  const int64_t local_vocab = c.vocab_size / layout.rank.tp;
  const DType act = o.exact ? DType::kF32 : DType::kBF16;
  const auto place = [&](Slot slot, DType dtype, const Shape& shape) {
    p.Place(slot, MemoryKind::kStep, dtype, shape);
  };
  place(Slot::kHeadH, act, {rows, c.hc_mult, c.dim});
  place(Slot::kHeadX, act, {rows, c.dim});
  place(Slot::kLogits, DType::kF32, {rows, c.vocab_size});
  if (layout.rank.tp > 1) {
    place(Slot::kLogitsLocal, DType::kF32, {rows, local_vocab});
  }
  place(Slot::kTokenIds, DType::kI32, {o.max_tokens});
  place(Slot::kPositions, DType::kI32, {o.max_tokens});
  place(Slot::kSlots, DType::kI32, {o.max_tokens});
  place(Slot::kLogitRows, DType::kI32, {rows});
  place(Slot::kPageTable, DType::kI32, {o.n_slots, layout.max_pages_per_slot});
  place(Slot::kSampled, DType::kI32, {rows});
  place(Slot::kLogprobs, DType::kF32, {rows});
  place(Slot::kTopIds, DType::kI32, {rows, o.top_logprobs});
  place(Slot::kTopLogprobs, DType::kF32, {rows, o.top_logprobs});
}

LayerRegions PlaceLayer(const ModelConfig& c, const LayoutOptions& o, int ratio,
                        Placer& p) {
  LayerRegions r;
  r.ratio = ratio;
  r.kv_format = KvFormat(c, o);
  r.index_format = IndexFormat(c, o);
  const auto kv_bytes = static_cast<int64_t>(r.kv_format.bytes());
  r.window = p.Place(MemoryKind::kWindow, DType::kU8,
                     {o.n_slots, c.window_size + o.draft_len, kv_bytes});
  if (ratio == 0) return r;
  // Ratio 4 pools two blocks (overlap) of doubly wide rows.
  const int64_t wide = ratio == 4 ? 2 : 1;
  const int64_t n_ring = wide * ratio + o.draft_len;
  const int64_t rows_per_page = kPageTokens / ratio;
  r.state = p.Place(MemoryKind::kCompressorState, DType::kF32,
                    {o.n_slots, n_ring, 2, wide * c.head_dim});
  r.pages = p.Place(MemoryKind::kPages, DType::kU8,
                    {o.n_pages, rows_per_page, kv_bytes});
  if (ratio != 4) return r;
  r.index_state = p.Place(MemoryKind::kCompressorState, DType::kF32,
                          {o.n_slots, n_ring, 2, wide * c.index_head_dim});
  r.index_pages = p.Place(
      MemoryKind::kPages, DType::kU8,
      {o.n_pages, rows_per_page, static_cast<int64_t>(r.index_format.bytes())});
  return r;
}

// Gives the rows of a resume point their places and counts what a page holds.
void PlanPrefixes(const ModelConfig& c, Layout& layout) {
  const auto place = [&](int64_t n_rows, const Region& ring) {
    const size_t row_bytes =
        ring.bytes() /
        static_cast<size_t>(ring.shape[0] * ring.shape[1]);  // slots, rows
    const ResumeRows rows{layout.resume_point_bytes, n_rows, row_bytes};
    layout.resume_point_bytes += static_cast<size_t>(n_rows) * row_bytes;
    return rows;
  };
  for (LayerRegions& r : layout.layers) {
    r.resume_window = place(c.window_size, r.window);
    for (const Region* pages : {&r.pages, &r.index_pages}) {
      if (!pages->exists()) continue;
      layout.page_bytes +=
          pages->bytes() / static_cast<size_t>(layout.options.n_pages);
    }
    if (r.ratio != 4) continue;
    r.resume_state = place(r.ratio, r.state);
    r.resume_index = place(r.ratio, r.index_state);
  }
  layout.n_resume_points = static_cast<int64_t>(layout.options.resume_bytes /
                                                layout.resume_point_bytes);
  layout.bytes_by_kind[static_cast<size_t>(MemoryKind::kResumePoints)] =
      static_cast<size_t>(layout.n_resume_points) * layout.resume_point_bytes;
}

Status CheckCounts(const LayoutOptions& o) {
  const auto check = [](std::string_view name, int64_t value) {
    if (value >= 1) return absl::OkStatus();
    return MakeError(kArgUsage, {.where = std::string(name),
                                 .what = "",
                                 .expected = ">= 1",
                                 .got = std::to_string(value)});
  };
  BELAY_RETURN_IF_ERROR(check("slots", o.n_slots));
  BELAY_RETURN_IF_ERROR(check("tokens per step", o.max_tokens));
  BELAY_RETURN_IF_ERROR(check("logit rows", o.max_logit_rows));
  return check("context", o.max_context);
}

Status CheckRank(const ModelConfig& c, const Rank& rank) {
  const auto check = [](std::string_view what, int64_t n, int parts, int part) {
    if (parts >= 1 && part >= 0 && part < parts && n % parts == 0) {
      return absl::OkStatus();
    }
    return MakeError(kCkptUnsliceable,
                     {.where = std::string(what),
                      .what = "rank " + std::to_string(part),
                      .expected = "a divisor of " + std::to_string(n),
                      .got = std::to_string(parts)});
  };
  BELAY_RETURN_IF_ERROR(check("heads", c.n_heads, rank.tp, rank.tp_rank));
  BELAY_RETURN_IF_ERROR(check("o_groups", c.o_groups, rank.tp, rank.tp_rank));
  BELAY_RETURN_IF_ERROR(
      check("vocabulary", c.vocab_size, rank.tp, rank.tp_rank));
  return check("experts", c.n_routed_experts, rank.ep, rank.ep_rank);
}

}  // namespace

std::string_view MemoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kActivations:
      return "activations";
    case MemoryKind::kWindow:
      return "window";
    case MemoryKind::kCompressorState:
      return "compressor_state";
    case MemoryKind::kPages:
      return "pages";
    case MemoryKind::kStep:
      return "step";
    case MemoryKind::kWorkspace:
      return "workspace";
    case MemoryKind::kResumePoints:
      return "resume_points";
    case MemoryKind::kCount:
      break;
  }
  return "";
}

size_t Region::bytes() const {
  return static_cast<size_t>(shape.n_elements()) * DtypeBytes(dtype);
}

StatusOr<Layout> MakeLayout(const ModelConfig& config, const Rank& rank,
                            const LayoutOptions& options) {
  BELAY_RETURN_IF_ERROR(CheckCounts(options));
  BELAY_RETURN_IF_ERROR(CheckRank(config, rank));
  Layout layout;
  layout.rank = rank;
  layout.options = options;
  layout.max_pages_per_slot =
      (options.max_context + options.draft_len + kPageTokens - 1) / kPageTokens;
  if (options.n_pages == 0) {
    layout.options.n_pages = options.n_slots * layout.max_pages_per_slot;
  }
  layout.bytes_by_kind[static_cast<size_t>(MemoryKind::kWorkspace)] =
      options.workspace_bytes;
  Placer placer(layout);
  PlaceActivations(config, layout, placer);
  PlaceStep(config, layout, placer);
  const int64_t n_layers =
      config.n_layers + (options.mtp ? config.n_mtp_layers : 0);
  for (int64_t i = 0; i < n_layers; ++i) {
    const int ratio = config.compress_ratios[static_cast<size_t>(i)];
    layout.layers.push_back(PlaceLayer(config, layout.options, ratio, placer));
  }
  PlanPrefixes(config, layout);
  return layout;
}

int64_t LargestContext(const ModelConfig& config, const Rank& rank,
                       LayoutOptions options, size_t budget_bytes) {
  options.n_pages = 0;
  const auto fits = [&](int64_t n_pages) {
    options.max_context = n_pages * kPageTokens - options.draft_len;
    const auto layout = MakeLayout(config, rank, options);
    return layout.ok() && layout->all_bytes() <= budget_bytes;
  };
  int64_t lo = 0;
  int64_t hi = config.max_positions / kPageTokens + 1;
  while (hi - lo > 1) {
    const int64_t middle = (lo + hi) / 2;
    (fits(middle) ? lo : hi) = middle;
  }
  return std::max<int64_t>(0, lo * kPageTokens - options.draft_len);
}

}  // namespace belay::spec
