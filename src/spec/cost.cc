// SPDX-License-Identifier: Apache-2.0
#include "spec/cost.h"

#include <algorithm>
#include <cmath>

namespace belay::spec {
namespace {

// Sum over the tokens t = 0 .. n - 1 of a step of min((context + t + 1) /
// ratio, limit): rows that each token sees.
double RowsSeen(const StepShape& step, int64_t ratio, int64_t limit) {
  double rows = 0;
  for (int64_t t = 0; t < step.n_tokens; ++t) {
    rows +=
        static_cast<double>(std::min((step.context + t + 1) / ratio, limit));
  }
  return rows;
}

void AddAttention(const ModelConfig& c, const StepShape& step, int ratio,
                  const RowFormat& kv, const RowFormat& index, StepCost& cost) {
  constexpr int64_t kNoLimit = INT64_MAX;
  const auto n_sequences = static_cast<double>(step.n_sequences);
  const int64_t end = step.context + step.n_tokens;
  double seen = RowsSeen(step, 1, c.window_size);
  auto rows =
      static_cast<double>(std::min(end, c.window_size + step.n_tokens - 1));
  if (ratio != 0) {
    const int64_t limit = ratio == 4 ? c.index_topk : kNoLimit;
    const int64_t n_rows = end / ratio;  // whole ones
    const auto visible = static_cast<double>(n_rows);
    const double compressed = RowsSeen(step, ratio, limit);
    seen += compressed;
    rows += std::min(visible, compressed);
    if (ratio == 4) {
      cost.indexer_flops += n_sequences * RowsSeen(step, ratio, kNoLimit) * 2 *
                            static_cast<double>(c.index_n_heads) *
                            static_cast<double>(c.index_head_dim);
      cost.cache_bytes +=
          n_sequences * visible * static_cast<double>(index.bytes());
    }
  }
  cost.attention_flops += n_sequences * seen * 4 *
                          static_cast<double>(c.n_heads) *
                          static_cast<double>(c.head_dim);
  cost.cache_bytes += n_sequences * rows * static_cast<double>(kv.bytes());
}

// How often a step reads a tensor's bytes, and how many tokens use it.
struct Use {
  double reads = 1;
  double tokens = 0;
};

Use UseOf(const ModelConfig& c, const StepShape& step,
          const ExpectedTensor& tensor) {
  const auto n = static_cast<double>(step.n_sequences * step.n_tokens);
  const auto vocab = static_cast<double>(c.vocab_size);
  if (tensor.family == Family::kEmbed || tensor.role == Role::kTable) {
    return {n / vocab, 0};  // a row a token
  }
  if (tensor.family == Family::kHead) {
    return {1, static_cast<double>(step.n_sequences * step.n_logit_rows)};
  }
  if (tensor.family == Family::kExperts) {
    const double share = static_cast<double>(c.n_activated_experts) /
                         static_cast<double>(c.n_routed_experts);
    return {1 - std::pow(1 - share, n), n * share};
  }
  return {1, n};
}

}  // namespace

RowFormat OfficialKvRow(const ModelConfig& c) {
  return {RowKind::kFp8Rope, static_cast<int>(c.head_dim),
          static_cast<int>(c.rope_head_dim), c.kv_quant_group};
}

RowFormat OfficialIndexRow(const ModelConfig& c) {
  return {RowKind::kFp4, static_cast<int>(c.index_head_dim), 0,
          c.index_quant_group};
}

CacheCost CostOfCache(const ModelConfig& config, const RowFormat& kv,
                      const RowFormat& index, bool mtp) {
  CacheCost cost;
  const int64_t n_layers = config.n_layers + (mtp ? config.n_mtp_layers : 0);
  for (int64_t i = 0; i < n_layers; ++i) {
    cost.window_bytes += static_cast<uint64_t>(config.window_size) * kv.bytes();
    const auto ratio =
        static_cast<uint64_t>(config.compress_ratios[static_cast<size_t>(i)]);
    if (ratio == 0) continue;
    const uint64_t rows_per_page = kPageTokens / ratio;
    cost.bytes_per_page += rows_per_page * kv.bytes();
    // A raw row is the KV projection and the score, in f32; ratio 4 pools two
    // blocks of doubly wide rows.
    const uint64_t wide = ratio == 4 ? 2 : 1;
    auto width = static_cast<uint64_t>(config.head_dim);
    if (ratio == 4) {
      cost.bytes_per_page += rows_per_page * index.bytes();
      width += static_cast<uint64_t>(config.index_head_dim);
    }
    cost.compressor_bytes += wide * ratio * 2 * wide * width * sizeof(float);
  }
  cost.bytes_per_token = static_cast<double>(cost.bytes_per_page) / kPageTokens;
  return cost;
}

StepCost CostOfStep(const ModelConfig& config, const StepShape& step,
                    const RowFormat& kv, const RowFormat& index) {
  StepCost cost;
  for (const ExpectedTensor& tensor : ExpectedTensors(config)) {
    if (tensor.layer >= config.n_layers) continue;
    const Use use = UseOf(config, step, tensor);
    FamilyCost& family = cost.families[static_cast<size_t>(tensor.family)];
    family.bytes += use.reads * static_cast<double>(tensor.bytes());
    if (tensor.shape.rank() == 2) {
      family.flops += 2 * use.tokens * static_cast<double>(tensor.parameters());
    }
  }
  for (int64_t i = 0; i < config.n_layers; ++i) {
    AddAttention(config, step, config.compress_ratios[static_cast<size_t>(i)],
                 kv, index, cost);
  }
  return cost;
}

double StepCost::bytes() const {
  double sum = cache_bytes;
  for (const FamilyCost& family : families) sum += family.bytes;
  return sum;
}

double StepCost::flops() const {
  double sum = attention_flops + indexer_flops;
  for (const FamilyCost& family : families) sum += family.flops;
  return sum;
}

}  // namespace belay::spec
