// SPDX-License-Identifier: Apache-2.0
// Where everything lives that is not a weight: one function places activations,
// caches and step buffers of a rank. The engine obeys it and the planner prints
// it, so the two cannot drift apart.
#ifndef BELAY_SPEC_LAYOUT_H_
#define BELAY_SPEC_LAYOUT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "spec/config.h"
#include "spec/rank.h"
#include "tensor/dtype.h"
#include "tensor/row_format.h"
#include "tensor/shape.h"

namespace belay::spec {

// Activations and step buffers; shapes at model/state.h.
enum class Slot : uint8_t {
  kH,
  kHNext,
  kX,
  kXn,
  kY,
  kPost,
  kComb,
  kQr,
  kQ,
  kO,
  kFresh,
  kRaw,
  kSelection,
  kMid,
  kGateLogits,
  kExperts,
  kExpertWeights,
  kAcc,
  kHeadH,
  kHeadX,
  kLogitsLocal,
  kLogits,
  kTokenIds,
  kPositions,
  kSlots,
  kLogitRows,
  kPageTable,
  kSampled,
  kLogprobs,
  kTopIds,
  kTopLogprobs,
  kCount,
};

// What memory is for, in reports.
enum class MemoryKind : uint8_t {
  kActivations,
  kWindow,           // sliding-window rings
  kCompressorState,  // raw rows before pooling
  kPages,            // compressed KV rows and indexer rows
  kStep,             // inputs and results of a step, logits
  kWorkspace,        // operators' scratch
  kResumePoints,     // of the prefix cache, in host memory
  kCount,
};
std::string_view MemoryKindName(MemoryKind kind);  // "activations", ...

struct LayoutOptions {
  int64_t n_slots = 1;         // sequences at once
  int64_t max_tokens = 512;    // flat tokens of a step
  int64_t max_logit_rows = 1;  // rows of logits a step
  int64_t max_context = 4096;  // positions of one sequence
  int64_t n_pages = 0;         // 0 = enough for every slot at max_context
  int64_t draft_len = 0;       // draft tokens that can be taken back
  int64_t top_logprobs = 20;   // likeliest tokens that a row can list
  bool exact = false;          // f32 activations and cache rows
  bool mtp = false;            // place the MTP blocks' caches too
  size_t workspace_bytes = 0;  // what the back end's operators ask for
  size_t resume_bytes = 0;     // resume points may have; 0 = no prefix cache
  RowKind kv_rows = RowKind::kFp8Rope;  // of the back end; exact: kF32
  RowKind index_rows = RowKind::kFp4;   // of the back end; exact: kF32
};

struct Region {
  size_t offset = 0;  // from the start of the rank's memory
  DType dtype = DType::kU8;
  Shape shape;
  size_t bytes() const;
  bool exists() const { return shape.rank() != 0; }
};

// Rows of one ring at a page border, in the block of a resume point.
struct ResumeRows {
  size_t offset = 0;   // from the block's start
  int64_t n_rows = 0;  // the last positions before the border; 0 = nothing
  size_t row_bytes = 0;
};

// The caches of one layer; a region that the layer has no use for does not
// exist.
struct LayerRegions {
  int ratio = 0;
  RowFormat kv_format;     // window and compressed rows
  RowFormat index_format;  // indexer rows
  Region window;           // [n_slots, window + draft, row bytes] u8
  Region state;            // [n_slots, rows + draft, 2, width] f32
  Region pages;            // [n_pages, kPageTokens / ratio, row bytes] u8
  Region index_state;      // [n_slots, rows + draft, 2, 2 * index_head_dim] f32
  Region index_pages;      // [n_pages, kPageTokens / ratio, index row bytes] u8
  // What a sequence needs to go on at a page border, beside its pages: the
  // window, and the raw rows that the next compressed row still pools. That is
  // a block of 4 at ratio 4 (overlap) and nothing at ratio 128, whose blocks
  // end where pages end.
  ResumeRows resume_window;
  ResumeRows resume_state;
  ResumeRows resume_index;
};

struct Layout {
  Rank rank;
  LayoutOptions options;  // n_pages filled in
  int64_t max_pages_per_slot = 0;
  std::array<Region, static_cast<size_t>(Slot::kCount)> slots;
  std::vector<LayerRegions> layers;  // main layers, then MTP blocks
  size_t total_bytes = 0;  // of all regions; workspace and resume points are
                           // beside them
  size_t page_bytes = 0;   // of one cache page in all layers
  size_t resume_point_bytes = 0;
  int64_t n_resume_points = 0;  // what resume_bytes holds
  std::array<size_t, static_cast<size_t>(MemoryKind::kCount)> bytes_by_kind{};

  // Regions, workspace and resume points: what a budget has to hold.
  size_t all_bytes() const {
    return total_bytes + options.workspace_bytes +
           static_cast<size_t>(n_resume_points) * resume_point_bytes;
  }
  const Region& at(Slot slot) const { return slots[static_cast<size_t>(slot)]; }
};

// Every region on a multiple of this many bytes: what aclrtMalloc gives, and a
// multiple of the host's cache lines.
inline constexpr size_t kRegionAlignment = 512;

// The layout of `rank`. Errors: ARG-001 (a count below 1), CKPT-015 (tp or ep
// does not divide the model).
StatusOr<Layout> MakeLayout(const ModelConfig& config, const Rank& rank,
                            const LayoutOptions& options);

// The largest max_context, a multiple of kPageTokens, whose all_bytes() is at
// most `budget_bytes`; 0 when not even one page a slot fits.
int64_t LargestContext(const ModelConfig& config, const Rank& rank,
                       LayoutOptions options, size_t budget_bytes);

}  // namespace belay::spec

#endif  // BELAY_SPEC_LAYOUT_H_
