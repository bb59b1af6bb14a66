// SPDX-License-Identifier: Apache-2.0
// KvCompress: pools blocks of tokens into compressed rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/ref/backend.h"
#include "backends/ref/matmul.h"
#include "backends/ref/rope.h"
#include "backends/ref/rows.h"

namespace belay::ref {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// One pooled slot: a token's projections, or nothing (before position 0).
struct Slot {
  const float* kv = nullptr;
  const float* score = nullptr;  // without ape
  const float* ape = nullptr;
};

// The raw rows of one token: from this step's, or the ring of earlier steps.
Slot SlotOf(const ops::KvCompressParams& p, const ops::Span& span,
            int32_t position, int64_t first_channel) {
  if (position < 0) return {};
  const int64_t width = p.raw.dim(2);
  const int32_t i = position - span.start_pos;
  const int64_t n_ring = p.state.raw.dim(1);
  const float* raw = i >= 0 ? p.raw.row<float>(span.first_token + i)
                            : p.state.raw.row<float>(span.slot) +
                                  (position % n_ring) * 2 * width;
  const float* ape = p.weights.ape.row<float>(position % p.cache.ratio);
  return {raw + first_channel, raw + width + first_channel,
          ape + first_channel};
}

// Per channel: softmax of score + ape over the slots, then sum kv * p.
void Pool(std::span<const Slot> slots, std::span<float> out) {
  for (size_t c = 0; c < out.size(); ++c) {
    std::vector<float> e(slots.size(), kMinusInfinity);
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].kv != nullptr) e[i] = slots[i].score[c] + slots[i].ape[c];
    }
    const float max = *std::max_element(e.begin(), e.end());
    double total = 0.0;
    for (float& v : e) total += v = std::exp(v - max);
    double sum = 0.0;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].kv == nullptr) continue;
      const float weight = e[i] / static_cast<float>(total);
      sum += static_cast<double>(slots[i].kv[c]) * weight;
    }
    out[c] = static_cast<float>(sum);
  }
}

// The slots of block `block`: its own tokens, and with overlap first the block
// before, whose tokens give their FIRST half channels, while the own tokens
// give their SECOND half.
std::vector<Slot> SlotsOf(const ops::KvCompressParams& p, const ops::Span& span,
                          int32_t block) {
  const int32_t ratio = p.cache.ratio;
  const int64_t own_channel = p.overlap ? p.raw.dim(2) / 2 : 0;
  std::vector<Slot> slots;
  if (p.overlap) {
    for (int32_t i = 0; i < ratio; ++i) {
      slots.push_back(SlotOf(p, span, (block - 1) * ratio + i, 0));
    }
  }
  for (int32_t i = 0; i < ratio; ++i) {
    slots.push_back(SlotOf(p, span, block * ratio + i, own_channel));
  }
  return slots;
}

void StoreRaw(const ops::KvCompressParams& p, const ops::Span& span) {
  const auto n_ring = static_cast<int32_t>(p.state.raw.dim(1));
  const int64_t n = p.raw.row_elements();
  for (int32_t i = std::max(0, span.n_tokens - n_ring); i < span.n_tokens;
       ++i) {
    std::copy_n(p.raw.row<float>(span.first_token + i), n,
                p.state.raw.row<float>(span.slot) +
                    ((span.start_pos + i) % n_ring) * n);
  }
}

}  // namespace

void RefBackend::FinishBlock(const ops::KvCompressParams& p,
                             std::span<float> pooled, int64_t block,
                             std::byte* out) const {
  Round(pooled);
  RmsNormRow(pooled, LoadVector(p.weights.norm), numerics_.norm_eps, pooled);
  Round(pooled);
  Rotation(p.rope, static_cast<int32_t>(block * p.cache.ratio)).Apply(pooled);
  Round(pooled);
  if (p.hadamard || p.cache.format.kind == ops::RowKind::kFp4) {
    Hadamard(pooled);
    Round(pooled);
    EncodeIndexRow(numerics_, p.cache.format, pooled, out);
  } else {
    EncodeKvRow(numerics_, p.cache.format, 2 * p.rope.freq.dim(0), pooled, out);
  }
}

void RefBackend::KvCompress(const ops::KvCompressParams& p) {
  const Matrix x = Load(p.x);
  const Matrix kv = MatMul(numerics_, AsRef(p.weights.wkv), x);
  const Matrix score = MatMul(numerics_, AsRef(p.weights.wgate), x);
  for (int64_t t = 0; t < x.n_rows(); ++t) {
    float* raw = p.raw.row<float>(t);
    raw = std::copy(kv.row(t).begin(), kv.row(t).end(), raw);
    std::copy(score.row(t).begin(), score.row(t).end(), raw);
  }
  for (const ops::Span& span : p.batch.spans) {
    const int32_t ratio = p.cache.ratio;
    const int32_t end = span.start_pos + span.n_tokens;
    for (int32_t block = span.start_pos / ratio; (block + 1) * ratio <= end;
         ++block) {
      std::vector<float> pooled(static_cast<size_t>(p.cache.format.head_dim));
      Pool(SlotsOf(p, span, block), pooled);
      FinishBlock(p, pooled, block,
                  PagedRow(p.cache, p.batch, span.slot, block));
    }
    StoreRaw(p, span);
  }
}

}  // namespace belay::ref
