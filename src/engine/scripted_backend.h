// SPDX-License-Identifier: Apache-2.0
// A back end for the engine's own tests: it computes nothing, but writes every
// token into the cache page where the engine put it, and answers with a hash of
// what it reads back through the page table. Any token in a wrong place, page
// or order changes the answer. The window's ring and the compressor's hold the
// tokens too, and a wrong one there changes the answer as well.
#ifndef BELAY_ENGINE_SCRIPTED_BACKEND_H_
#define BELAY_ENGINE_SCRIPTED_BACKEND_H_

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/weights.h"
#include "ops/backend.h"
#include "spec/config.h"

namespace belay::engine {

inline constexpr int32_t kScriptVocab = 97;
// The token after which no logit is finite.
inline constexpr int32_t kPoison = kScriptVocab - 1;

// The state of a sequence after one more token.
inline uint64_t ScriptHash(uint64_t hash, int32_t token) {
  hash = (hash ^ static_cast<uint64_t>(token + 1)) * 0x9e3779b97f4a7c15u;
  return hash ^ (hash >> 29);
}
// The greedy next token; never the poison.
inline int32_t ScriptNext(uint64_t hash) {
  return static_cast<int32_t>(hash % static_cast<uint64_t>(kPoison));
}

class ScriptedBackend final : public ops::Backend {
 public:
  // `sampler` does the sampling; borrowed.
  explicit ScriptedBackend(ops::Backend& sampler) : sampler_(sampler) {
    numerics_.mode = ops::NumericsMode::kExact;  // rows of whole words
  }

  // The MTP block guesses wrong for every token whose position is a multiple
  // of this.
  int wrong_every = 3;
  // What Finish() says.
  Status fault;

  std::string_view name() const override { return "scripted"; }
  const ops::Numerics& numerics() const override { return numerics_; }
  std::vector<ops::Implementation> Explain() const override { return {}; }
  StatusOr<std::unique_ptr<ops::DeviceBuffer>> Allocate(size_t n) override {
    return std::make_unique<Host>(n);
  }
  size_t WorkspaceBytes(const ops::OpLimits&) const override { return 0; }
  Status Plan(const ops::OpLimits&, std::span<std::byte>) override {
    return absl::OkStatus();
  }
  void CopyIn(TensorView dst, const void* src) override {
    std::memcpy(dst.data(), src, dst.bytes());
  }
  void CopyOut(void* dst, ConstTensorView src) override {
    std::memcpy(dst, src.data(), src.bytes());
  }
  Status Finish() override { return fault; }
  StatusOr<std::unique_ptr<ops::BoundLinear>> BindLinear(
      const ops::LinearSource&) override {
    return nullptr;
  }
  StatusOr<std::unique_ptr<ops::BoundExperts>> BindExperts(
      std::span<const ops::ExpertSource>, int64_t) override {
    return nullptr;
  }
  StatusOr<ConstTensorView> BindTensor(ConstTensorView host) override {
    return host;
  }

  void Embed(const ops::EmbedParams& p) override {
    in_mtp_ = false;
    tokens_ = p.token_ids;
  }
  void AddBroadcast(const ops::AddBroadcastParams&) override { in_mtp_ = true; }
  void KvProject(const ops::KvProjectParams& p) override {
    for (int64_t t = 0; t < p.fresh.n_rows(); ++t) {
      *p.fresh.row<int32_t>(t) = tokens_.as<int32_t>()[static_cast<size_t>(t)];
    }
  }
  void KvStore(const ops::KvStoreParams& p) override {
    for (const ops::Span& span : p.batch.spans) {
      for (int32_t i = 0; i < span.n_tokens; ++i) {
        *Ring<int32_t>(p.window.rows, span.slot, span.start_pos + i) =
            *p.fresh.row<int32_t>(span.first_token + i);
      }
    }
  }
  // Checks the rows that the first block of each span pools from the ring.
  void KvCompress(const ops::KvCompressParams& p) override {
    ring_is_wrong_.assign(p.batch.spans.size(), false);
    for (size_t s = 0; s < p.batch.spans.size(); ++s) {
      const ops::Span& span = p.batch.spans[s];
      const int32_t block = span.start_pos / 4;
      for (int32_t pos = std::max(0, 4 * (block - 1)); pos < span.start_pos;
           ++pos) {
        if (*Ring<float>(p.state.raw, span.slot, pos) !=
            static_cast<float>(*Place(p.batch, p.cache, span.slot, pos))) {
          ring_is_wrong_[s] = true;
        }
      }
    }
    for (const ops::Span& span : p.batch.spans) {
      for (int32_t i = 0; i < span.n_tokens; ++i) {
        const int32_t flat = span.first_token + i;
        const auto token = static_cast<float>(
            tokens_.as<int32_t>()[static_cast<size_t>(flat)]);
        *p.raw.row<float>(flat) = token;
        *Ring<float>(p.state.raw, span.slot, span.start_pos + i) = token;
      }
    }
  }
  void SparseAttention(const ops::SparseAttentionParams& p) override {
    hashes_.clear();
    poisoned_.clear();
    if (!in_mtp_) pages_ = p.compressed;
    for (size_t s = 0; s < p.batch.spans.size(); ++s) {
      for (int32_t i = 0; i < p.batch.spans[s].n_tokens; ++i) Token(p, s, i);
    }
  }
  void GatherRows(const ops::GatherRowsParams& p) override {
    const auto rows = p.rows.as<int32_t>();
    rows_.assign(rows.begin(), rows.end());
  }
  void Logits(const ops::LogitsParams& p) override {
    for (int64_t r = 0; r < p.logits.n_rows(); ++r) {
      const auto flat = static_cast<size_t>(rows_[static_cast<size_t>(r)]);
      float* logits = p.logits.row<float>(r);
      for (int32_t v = 0; v < kScriptVocab; ++v) {
        const uint64_t noise = ScriptHash(hashes_[flat], v + 1000) >> 40;
        logits[v] = static_cast<float>(noise) * 0x1p-24f;  // [0, 1)
        if (poisoned_[flat]) {
          logits[v] = std::numeric_limits<float>::quiet_NaN();
        }
      }
      if (!poisoned_[flat]) logits[ScriptNext(hashes_[flat])] = 3;
    }
  }
  void Sample(const ops::SampleParams& p) override { sampler_.Sample(p); }

  void RmsNorm(const ops::RmsNormParams&) override {}
  void Linear(const ops::LinearParams&) override {}
  void HcPre(const ops::HcPreParams&) override {}
  void HcPost(const ops::HcPostParams&) override {}
  void HcHead(const ops::HcHeadParams&) override {}
  void QueryProject(const ops::QueryProjectParams&) override {}
  void RopeTail(const ops::RopeTailParams&) override {}
  void IndexerSelect(const ops::IndexerSelectParams&) override {}
  void AttentionOut(const ops::AttentionOutParams&) override {}
  void Route(const ops::RouteParams&) override {}
  void RoutedExperts(const ops::RoutedExpertsParams&) override {}
  void SharedExpert(const ops::SharedExpertParams&) override {}

 private:
  class Host final : public ops::DeviceBuffer {
   public:
    explicit Host(size_t n) : bytes_(n) {}
    void* data() const override { return bytes_.data(); }
    size_t bytes() const override { return bytes_.size(); }

   private:
    mutable std::vector<std::byte> bytes_;
  };

  template <typename T>
  static T* Ring(const TensorView& rows, int32_t slot, int32_t position) {
    const int64_t n_ring = rows.dim(1);
    const size_t row_bytes = rows.row_bytes() / static_cast<size_t>(n_ring);
    return reinterpret_cast<T*>(rows.row<std::byte>(slot) +
                                static_cast<size_t>(position % n_ring) *
                                    row_bytes);
  }

  // Where the batch's page table puts the token of a position: four of them in
  // each compressed row.
  static int32_t* Place(const ops::BatchView& batch,
                        const ops::PagedCache& pages, int32_t slot,
                        int32_t position) {
    const int32_t page =
        batch.page_table.row<int32_t>(slot)[position / kPageTokens];
    BELAY_CHECK(page >= 0);
    const int32_t in_page = position % kPageTokens;
    const size_t row_bytes = pages.format.bytes();
    return reinterpret_cast<int32_t*>(pages.rows.row<std::byte>(page) +
                                      static_cast<size_t>(in_page / 4) *
                                          row_bytes) +
           in_page % 4;
  }

  void Token(const ops::SparseAttentionParams& p, size_t s, int32_t i) {
    const ops::Span& span = p.batch.spans[s];
    const int32_t token =
        tokens_.as<int32_t>()[static_cast<size_t>(span.first_token + i)];
    const int32_t position = span.start_pos + i;
    const auto at = [&](int32_t pos) {
      return Place(p.batch, pages_, span.slot, pos);
    };
    // The MTP block reads what the main layers wrote and adds one token.
    if (!in_mtp_) *at(position) = token;
    uint64_t hash = 0;
    for (int32_t pos = 0; pos <= position; ++pos) {
      hash = ScriptHash(hash, *at(pos));
    }
    if (in_mtp_) {
      hash = ScriptHash(hash, token);
      if ((position + 2) % wrong_every == 0) hash = ScriptHash(hash, 0);
    } else {
      bool wrong = ring_is_wrong_[s];
      for (int32_t pos = std::max(0, position - p.window_size + 1);
           pos < span.start_pos; ++pos) {
        wrong |= *Ring<int32_t>(p.window.rows, span.slot, pos) != *at(pos);
      }
      if (wrong) hash = ScriptHash(hash, 0);
    }
    hashes_.push_back(hash);
    poisoned_.push_back(token == kPoison);
  }

  ops::Backend& sampler_;
  ops::Numerics numerics_;
  bool in_mtp_ = false;
  ConstTensorView tokens_;           // of the pass
  ops::PagedCache pages_;            // of the main layer
  std::vector<bool> ring_is_wrong_;  // by span
  std::vector<uint64_t> hashes_;     // of each flat token's prefix
  std::vector<bool> poisoned_;
  std::vector<int32_t> rows_;
};

// A model of one layer of ratio 4 and an MTP block, without any weight.
struct ScriptedModel {
  ScriptedModel() {
    config.dim = 8;
    config.n_layers = 1;
    config.n_mtp_layers = 1;
    config.vocab_size = kScriptVocab;
    config.max_positions = 4096;
    config.n_heads = 1;
    config.head_dim = 128;
    config.q_lora_rank = 8;
    config.o_groups = 1;
    config.o_lora_rank = 8;
    config.window_size = 8;
    config.compress_ratios = {4, 0};
    config.index_topk = 1;
    config.n_routed_experts = 1;
    config.n_activated_experts = 1;
    config.moe_inter_dim = 8;
    weights.layers.resize(1);
    weights.layers[0].rope = &weights.rope_main;
    weights.layers[0].ratio = 4;
    weights.mtp.resize(1);
    weights.mtp[0].block.rope = &weights.rope_main;
  }
  spec::ModelConfig config;
  model::ModelWeights weights;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_SCRIPTED_BACKEND_H_
