// SPDX-License-Identifier: Apache-2.0
// What a step reads and computes, and what a sequence keeps: the numbers behind
// plans and measurements.
#ifndef BELAY_SPEC_COST_H_
#define BELAY_SPEC_COST_H_

#include <array>
#include <cstdint>

#include "spec/config.h"
#include "spec/tensors.h"
#include "tensor/row_format.h"

namespace belay::spec {

// Cache memory of one sequence, without alignment. `bytes_per_token` is what
// grows: rows of compressed KV and of the indexer. The rest is there from the
// first token on: window rings and the compressors' raw rows.
struct CacheCost {
  double bytes_per_token = 0;
  uint64_t bytes_per_page = 0;  // kPageTokens tokens
  uint64_t window_bytes = 0;
  uint64_t compressor_bytes = 0;

  uint64_t fixed_bytes() const { return window_bytes + compressor_bytes; }
};

// `kv` and `index` are the row formats of the back end; n_layers layers and,
// with `mtp`, the MTP layers.
CacheCost CostOfCache(const ModelConfig& config, const RowFormat& kv,
                      const RowFormat& index, bool mtp = false);

// A step: every sequence brings `n_tokens` tokens to `context` tokens before
// them, and wants `n_logit_rows` rows of logits.
struct StepShape {
  int64_t n_sequences = 1;
  int64_t n_tokens = 1;      // a sequence
  int64_t context = 0;       // tokens already in the cache, a sequence
  int64_t n_logit_rows = 1;  // a sequence
};

struct FamilyCost {
  double bytes = 0;  // of weights read, each once a step
  double flops = 0;  // of products with them, 2 a multiply-add
};

// Whole model, one rank, without MTP. Weights are read once a step whatever the
// number of tokens, but experts: with uniform routing, T tokens meet
// E (1 - (1 - k / E)^T) of E experts. Embedding rows are read one a token.
// Attention: 4 * heads * head_dim a candidate row and token, causal; the
// indexer's scores: 2 * heads * dim a row and token.
struct StepCost {
  std::array<FamilyCost, kFamilies> families{};
  double attention_flops = 0;
  double indexer_flops = 0;
  double cache_bytes = 0;  // rows read, each once a sequence

  double bytes() const;
  double flops() const;
};
StepCost CostOfStep(const ModelConfig& config, const StepShape& step,
                    const RowFormat& kv, const RowFormat& index);

// The official row formats of a model: FP8 codes with bf16 rope for KV, FP4 for
// the indexer.
RowFormat OfficialKvRow(const ModelConfig& config);
RowFormat OfficialIndexRow(const ModelConfig& config);

}  // namespace belay::spec

#endif  // BELAY_SPEC_COST_H_
