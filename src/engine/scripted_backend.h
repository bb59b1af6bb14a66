// SPDX-License-Identifier: Apache-2.0
// A back end for the engine's own tests: it computes nothing, but remembers
// every token in the cache page where the engine put it, and answers with a
// hash of what it reads back through the page table. Any token in a wrong
// place, page or order changes the answer.
#ifndef BELAY_ENGINE_SCRIPTED_BACKEND_H_
#define BELAY_ENGINE_SCRIPTED_BACKEND_H_

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
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
  explicit ScriptedBackend(ops::Backend& sampler) : sampler_(sampler) {}

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

  void Embed(const ops::EmbedParams&) override { in_mtp_ = false; }
  void AddBroadcast(const ops::AddBroadcastParams&) override { in_mtp_ = true; }
  void SparseAttention(const ops::SparseAttentionParams& p) override {
    hashes_.clear();
    poisoned_.clear();
    for (const ops::Span& span : p.batch.spans) {
      for (int32_t i = 0; i < span.n_tokens; ++i) {
        Token(p.batch, span, i);
      }
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
  void KvProject(const ops::KvProjectParams&) override {}
  void RopeTail(const ops::RopeTailParams&) override {}
  void KvStore(const ops::KvStoreParams&) override {}
  void KvCompress(const ops::KvCompressParams&) override {}
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

  // Where the batch's page table puts a position; -1 when it has no page.
  static int64_t Place(const ops::BatchView& batch, int32_t slot,
                       int32_t position) {
    const int32_t page =
        batch.page_table.row<int32_t>(slot)[position / kPageTokens];
    return page < 0 ? -1 : page * kPageTokens + position % kPageTokens;
  }

  void Token(const ops::BatchView& batch, const ops::Span& span, int32_t i) {
    const int32_t token =
        batch.token_ids
            .as<int32_t>()[static_cast<size_t>(span.first_token + i)];
    const int32_t position = span.start_pos + i;
    const int64_t place = Place(batch, span.slot, position);
    BELAY_CHECK(place >= 0);
    // The MTP block reads what the main layers wrote and adds one token.
    if (!in_mtp_) memory_[place] = token;
    uint64_t hash = 0;
    for (int32_t p = 0; p <= position; ++p) {
      hash = ScriptHash(hash, memory_[Place(batch, span.slot, p)]);
    }
    if (in_mtp_) {
      hash = ScriptHash(hash, token);
      if ((position + 2) % wrong_every == 0) hash = ScriptHash(hash, 0);
    }
    hashes_.push_back(hash);
    poisoned_.push_back(token == kPoison);
  }

  ops::Backend& sampler_;
  ops::Numerics numerics_;
  bool in_mtp_ = false;
  std::map<int64_t, int32_t> memory_;  // place -> token
  std::vector<uint64_t> hashes_;       // of each flat token's prefix
  std::vector<bool> poisoned_;
  std::vector<int32_t> rows_;
};

// A model of one sliding layer and an MTP block without any weight.
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
    config.compress_ratios = {0, 0};
    config.index_topk = 1;
    config.n_routed_experts = 1;
    config.n_activated_experts = 1;
    config.moe_inter_dim = 8;
    weights.layers.resize(1);
    weights.layers[0].rope = &weights.rope_main;
    weights.mtp.resize(1);
    weights.mtp[0].block.rope = &weights.rope_main;
  }
  spec::ModelConfig config;
  model::ModelWeights weights;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_SCRIPTED_BACKEND_H_
