// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error_ids.h"

namespace belay::checkpoint::gguf {
namespace {

using spec::ModelConfig;

constexpr const char* kArchitecture = "deepseek4";

struct IntKey {
  const char* key;  // after "deepseek4."
  int64_t ModelConfig::*member;
  bool required = true;
};

// Where llama.cpp has a default that is wrong for this model (the head sizes),
// the key is required here.
constexpr IntKey kIntKeys[] = {
    {"block_count", &ModelConfig::n_layers},
    {"context_length", &ModelConfig::max_positions},
    {"embedding_length", &ModelConfig::dim},
    {"attention.head_count", &ModelConfig::n_heads},
    {"attention.key_length", &ModelConfig::head_dim},
    {"attention.q_lora_rank", &ModelConfig::q_lora_rank},
    {"attention.output_group_count", &ModelConfig::o_groups},
    {"attention.output_lora_rank", &ModelConfig::o_lora_rank},
    {"attention.sliding_window", &ModelConfig::window_size},
    {"attention.indexer.head_count", &ModelConfig::index_n_heads},
    {"attention.indexer.key_length", &ModelConfig::index_head_dim},
    {"attention.indexer.top_k", &ModelConfig::index_topk},
    {"rope.dimension_count", &ModelConfig::rope_head_dim},
    {"rope.scaling.original_context_length", &ModelConfig::original_seq_len,
     false},
    {"expert_count", &ModelConfig::n_routed_experts},
    {"expert_used_count", &ModelConfig::n_activated_experts},
    {"expert_shared_count", &ModelConfig::n_shared_experts},
    {"hash_layer_count", &ModelConfig::n_hash_layers},
};

template <typename T>
struct NumberKey {
  const char* key;
  T ModelConfig::*member;
  bool required = true;
};

constexpr NumberKey<float> kFloatKeys[] = {
    {"attention.layer_norm_rms_epsilon", &ModelConfig::norm_eps},
    {"expert_weights_scale", &ModelConfig::route_scale},
    {"hyper_connection.epsilon", &ModelConfig::hc_eps},
};

constexpr NumberKey<double> kDoubleKeys[] = {
    {"attention.compress_rope_freq_base", &ModelConfig::compress_rope_theta},
    {"rope.freq_base", &ModelConfig::rope_theta, false},
    {"rope.scaling.factor", &ModelConfig::rope_factor, false},
    {"rope.scaling.yarn_beta_fast", &ModelConfig::beta_fast, false},
    {"rope.scaling.yarn_beta_slow", &ModelConfig::beta_slow, false},
};

class ConfigReader {
 public:
  ConfigReader(const GgufSet& set, const std::string& where)
      : set_(set), meta_(set.metadata()), where_(where) {}

  StatusOr<ModelConfig> Read() {
    BELAY_RETURN_IF_ERROR(CheckArchitecture());
    BELAY_RETURN_IF_ERROR(ReadNumbers());
    BELAY_RETURN_IF_ERROR(ReadFixed());
    BELAY_RETURN_IF_ERROR(ReadVocabulary());
    BELAY_RETURN_IF_ERROR(ReadPerLayer());
    CountMtpLayers();
    BELAY_RETURN_IF_ERROR(ReadRatios());
    BELAY_RETURN_IF_ERROR(spec::CheckConfig(c_, where_));
    return std::move(c_);
  }

 private:
  static std::string Key(std::string_view key) {
    return std::string(kArchitecture) + "." + std::string(key);
  }
  Status Missing(const std::string& key) const {
    return MakeError(kConfMissingKey, {where_ + ": " + key, "", "", ""});
  }
  Status Bad(const std::string& key, std::string expected,
             std::string got) const {
    return MakeError(kConfBadValue, {where_ + ": " + key, "",
                                     std::move(expected), std::move(got)});
  }

  Status CheckArchitecture() const {
    const auto name = meta_.Text("general.architecture");
    if (!name.has_value()) return Missing("general.architecture");
    if (*name == kArchitecture) return absl::OkStatus();
    return MakeError(kGgufArchitecture,
                     {where_, "", kArchitecture, std::string(*name)});
  }

  // Nothing read: an optional key that is not there.
  StatusOr<std::optional<int64_t>> Int(const char* key, bool required) const {
    const std::string name = Key(key);
    if (meta_.Find(name) == nullptr) {
      if (required) return Missing(name);
      return std::optional<int64_t>();
    }
    const auto value = meta_.Int(name);
    if (!value.has_value()) return Bad(name, "an integer", "another type");
    return value;
  }

  template <typename T>
  Status ReadNumber(const NumberKey<T>& k) {
    const std::string name = Key(k.key);
    const auto value = meta_.Number(name);
    if (value.has_value()) {
      c_.*k.member = static_cast<T>(*value);
      return absl::OkStatus();
    }
    if (meta_.Find(name) != nullptr) {
      return Bad(name, "a number", "another type");
    }
    return k.required ? Missing(name) : absl::OkStatus();
  }

  Status ReadNumbers() {
    for (const IntKey& k : kIntKeys) {
      BELAY_ASSIGN_OR_RETURN(const auto value, Int(k.key, k.required));
      if (value.has_value()) c_.*k.member = *value;
    }
    for (const auto& k : kFloatKeys) BELAY_RETURN_IF_ERROR(ReadNumber(k));
    for (const auto& k : kDoubleKeys) BELAY_RETURN_IF_ERROR(ReadNumber(k));
    BELAY_ASSIGN_OR_RETURN(const auto hc, Int("hyper_connection.count", true));
    BELAY_ASSIGN_OR_RETURN(const auto iters,
                           Int("hyper_connection.sinkhorn_iterations", true));
    c_.hc_mult = static_cast<int>(std::clamp<int64_t>(*hc, 0, 1 << 20));
    c_.hc_sinkhorn_iters =
        static_cast<int>(std::clamp<int64_t>(*iters, 0, 1 << 20));
    return absl::OkStatus();
  }

  // Keys whose only value is the one that the model is built on.
  Status Require(const char* key, int64_t wanted, bool required) const {
    BELAY_ASSIGN_OR_RETURN(const auto value, Int(key, required));
    if (value.value_or(wanted) == wanted) return absl::OkStatus();
    return Bad(Key(key), std::to_string(wanted), std::to_string(*value));
  }

  Status ReadFixed() const {
    BELAY_RETURN_IF_ERROR(Require("attention.head_count_kv", 1, true));
    // 4: sqrt(softplus(x)).
    BELAY_RETURN_IF_ERROR(Require("expert_gating_func", 4, true));
    BELAY_RETURN_IF_ERROR(
        Require("attention.value_length", c_.head_dim, false));
    const std::string norm = Key("expert_weights_norm");
    if (meta_.Find(norm) == nullptr) return Missing(norm);
    if (meta_.Bool(norm) != true) return Bad(norm, "true", "false");
    const std::string scaling = Key("rope.scaling.type");
    const std::string_view type = meta_.Text(scaling).value_or("yarn");
    if (type != "yarn") return Bad(scaling, "yarn", std::string(type));
    return absl::OkStatus();
  }

  // From the key, else from the list of tokens.
  Status ReadVocabulary() {
    BELAY_ASSIGN_OR_RETURN(const auto size, Int("vocab_size", false));
    if (size.has_value()) {
      c_.vocab_size = *size;
    } else {
      const Value* const tokens = meta_.Find("tokenizer.ggml.tokens");
      const auto* const texts =
          tokens == nullptr
              ? nullptr
              : std::get_if<std::vector<std::string_view>>(tokens);
      if (texts == nullptr) return Missing(Key("vocab_size"));
      c_.vocab_size = static_cast<int64_t>(texts->size());
    }
    c_.bos_id = TokenId("bos", c_.bos_id);
    c_.eos_id = TokenId("eos", c_.eos_id);
    return absl::OkStatus();
  }

  int32_t TokenId(const char* which, int32_t otherwise) const {
    const auto id =
        meta_.Int("tokenizer.ggml." + std::string(which) + "_token_id");
    if (!id.has_value() || *id < 0 || *id >= c_.vocab_size) return otherwise;
    return static_cast<int32_t>(*id);
  }

  // One number, or one a layer; all equal, since the model has one value.
  StatusOr<double> Uniform(const char* key) const {
    const std::string name = Key(key);
    const Value* const value = meta_.Find(name);
    if (value == nullptr) return Missing(name);
    std::vector<double> all;
    if (const auto* d = std::get_if<std::vector<double>>(value)) {
      all = *d;
    } else if (const auto* i = std::get_if<std::vector<int64_t>>(value)) {
      all.assign(i->begin(), i->end());
    } else if (const auto one = meta_.Number(name)) {
      all = {*one};
    }
    if (all.empty()) return Bad(name, "a number or one a layer", "");
    for (const double v : all) {
      if (v == all.front()) continue;
      return Bad(name, "the same for every layer",
                 std::to_string(all.front()) + " and " + std::to_string(v));
    }
    return all.front();
  }

  Status ReadPerLayer() {
    BELAY_ASSIGN_OR_RETURN(const double inter,
                           Uniform("expert_feed_forward_length"));
    if (!(inter >= 1 && inter <= 1e9)) {
      return Bad(Key("expert_feed_forward_length"), ">= 1",
                 std::to_string(inter));
    }
    c_.moe_inter_dim = static_cast<int64_t>(inter);
    BELAY_ASSIGN_OR_RETURN(const double limit, Uniform("swiglu_clamp_exp"));
    c_.swiglu_limit = static_cast<float>(limit);
    if (meta_.Find(Key("swiglu_clamp_shexp")) == nullptr) {
      return absl::OkStatus();
    }
    BELAY_ASSIGN_OR_RETURN(const double shared, Uniform("swiglu_clamp_shexp"));
    if (shared == limit) return absl::OkStatus();
    return Bad(Key("swiglu_clamp_shexp"), std::to_string(limit),
               std::to_string(shared));
  }

  bool Has(const std::string& name) const {
    return set_.tensors.find(name) != set_.tensors.end();
  }

  // llama.cpp counts MTP blocks in block_count, ds4 does not.
  void CountMtpLayers() {
    while (c_.n_layers > 1 && Has("blk." + std::to_string(c_.n_layers - 1) +
                                  ".nextn.eh_proj.weight")) {
      --c_.n_layers;
      ++c_.n_mtp_layers;
    }
    if (c_.n_mtp_layers > 0) return;
    while (Has("mtp." + std::to_string(c_.n_mtp_layers) + ".e_proj.weight")) {
      ++c_.n_mtp_layers;
    }
  }

  Status ReadRatios() {
    const std::string name = Key("attention.compress_ratios");
    const Value* const value = meta_.Find(name);
    if (value == nullptr) return Missing(name);
    const auto* const ratios = std::get_if<std::vector<int64_t>>(value);
    const auto n_layers =
        static_cast<size_t>(std::max<int64_t>(0, c_.n_layers));
    if (ratios == nullptr || ratios->size() < n_layers) {
      return Bad(
          name,
          "an integer for each of " + std::to_string(n_layers) + " layers",
          ratios == nullptr ? "another type" : std::to_string(ratios->size()));
    }
    for (size_t i = 0; i < n_layers; ++i) {
      c_.compress_ratios.push_back(
          static_cast<int>(std::clamp<int64_t>((*ratios)[i], -1, 1 << 20)));
    }
    // MTP blocks see the window only, whatever an entry for them says.
    c_.compress_ratios.resize(n_layers + static_cast<size_t>(c_.n_mtp_layers),
                              0);
    return absl::OkStatus();
  }

  const GgufSet& set_;
  const Metadata& meta_;
  const std::string& where_;
  ModelConfig c_;
};

}  // namespace

StatusOr<spec::ModelConfig> ConfigFromMetadata(const GgufSet& set,
                                               const std::string& where) {
  return ConfigReader(set, where).Read();
}

}  // namespace belay::checkpoint::gguf
