// SPDX-License-Identifier: Apache-2.0
#include "spec/config.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error_ids.h"
#include "spec/json.h"

namespace belay::spec {
namespace {

using Json = nlohmann::json;

// One number and its names: in the Hugging Face root config and in
// inference/config.json. `required`: there is no value that fits every model.
template <typename T>
struct Field {
  const char* hf;
  const char* inference;
  T ModelConfig::*member;
  bool required = false;
};

constexpr Field<int64_t> kIntFields[] = {
    {"hidden_size", "dim", &ModelConfig::dim, true},
    {"num_hidden_layers", "n_layers", &ModelConfig::n_layers, true},
    {"num_hash_layers", "n_hash_layers", &ModelConfig::n_hash_layers, true},
    {"num_nextn_predict_layers", "n_mtp_layers", &ModelConfig::n_mtp_layers},
    {"vocab_size", "vocab_size", &ModelConfig::vocab_size, true},
    {"max_position_embeddings", nullptr, &ModelConfig::max_positions},
    {"num_attention_heads", "n_heads", &ModelConfig::n_heads, true},
    {"head_dim", "head_dim", &ModelConfig::head_dim},
    {"qk_rope_head_dim", "rope_head_dim", &ModelConfig::rope_head_dim},
    {"q_lora_rank", "q_lora_rank", &ModelConfig::q_lora_rank, true},
    {"o_groups", "o_groups", &ModelConfig::o_groups, true},
    {"o_lora_rank", "o_lora_rank", &ModelConfig::o_lora_rank, true},
    {"sliding_window", "window_size", &ModelConfig::window_size},
    {"index_n_heads", "index_n_heads", &ModelConfig::index_n_heads, true},
    {"index_head_dim", "index_head_dim", &ModelConfig::index_head_dim},
    {"index_topk", "index_topk", &ModelConfig::index_topk, true},
    {"n_routed_experts", "n_routed_experts", &ModelConfig::n_routed_experts,
     true},
    {"n_shared_experts", "n_shared_experts", &ModelConfig::n_shared_experts},
    {"num_experts_per_tok", "n_activated_experts",
     &ModelConfig::n_activated_experts, true},
    {"moe_intermediate_size", "moe_inter_dim", &ModelConfig::moe_inter_dim,
     true},
    {nullptr, "original_seq_len", &ModelConfig::original_seq_len},
};

constexpr Field<int> kSmallIntFields[] = {
    {"hc_mult", "hc_mult", &ModelConfig::hc_mult},
    {"hc_sinkhorn_iters", "hc_sinkhorn_iters", &ModelConfig::hc_sinkhorn_iters},
    {"dspark_block_size", "dspark_block_size", &ModelConfig::draft_block},
    {"bos_token_id", nullptr, &ModelConfig::bos_id},
    {"eos_token_id", nullptr, &ModelConfig::eos_id},
};

constexpr Field<float> kFloatFields[] = {
    {"routed_scaling_factor", "route_scale", &ModelConfig::route_scale, true},
    {"swiglu_limit", "swiglu_limit", &ModelConfig::swiglu_limit},
    {"hc_eps", "hc_eps", &ModelConfig::hc_eps},
    {"rms_norm_eps", "norm_eps", &ModelConfig::norm_eps},
};

constexpr Field<double> kDoubleFields[] = {
    {"rope_theta", "rope_theta", &ModelConfig::rope_theta},
    {"compress_rope_theta", "compress_rope_theta",
     &ModelConfig::compress_rope_theta},
    {nullptr, "rope_factor", &ModelConfig::rope_factor},
    {nullptr, "beta_fast", &ModelConfig::beta_fast},
    {nullptr, "beta_slow", &ModelConfig::beta_slow},
};

// Names that the engine implements one value of.
struct FixedText {
  const char* key;
  const char* value;
};
constexpr FixedText kFixedTexts[] = {{"scoring_func", "sqrtsoftplus"},
                                     {"score_func", "sqrtsoftplus"},
                                     {"hidden_act", "silu"}};

struct FixedFlag {
  const char* key;
  bool value;
};
constexpr FixedFlag kFixedFlags[] = {{"norm_topk_prob", true},
                                     {"tie_word_embeddings", false},
                                     {"attention_bias", false}};

class Parser {
 public:
  Parser(const Json& root, std::string_view where)
      : root_(root), where_(where) {}

  StatusOr<ModelConfig> Parse() {
    BELAY_RETURN_IF_ERROR(CheckModelType());
    BELAY_RETURN_IF_ERROR(ReadFields(kIntFields));
    BELAY_RETURN_IF_ERROR(ReadFields(kSmallIntFields));
    BELAY_RETURN_IF_ERROR(ReadFields(kFloatFields));
    BELAY_RETURN_IF_ERROR(ReadFields(kDoubleFields));
    BELAY_RETURN_IF_ERROR(ReadRopeScaling());
    BELAY_RETURN_IF_ERROR(ReadFormats());
    BELAY_RETURN_IF_ERROR(CheckFixed());
    BELAY_RETURN_IF_ERROR(ReadOwnKeys());
    BELAY_RETURN_IF_ERROR(
        ReadInts("dspark_target_layer_ids", config_.draft_tap_layers));
    // Of a draft model that is not there.
    if (config_.draft_block == 0) config_.draft_tap_layers.clear();
    BELAY_RETURN_IF_ERROR(ReadRatios());
    BELAY_RETURN_IF_ERROR(CheckConfig(config_, where_));
    return std::move(config_);
  }

 private:
  std::string Where(std::string_view key) const {
    return std::string(where_) + ": " + std::string(key);
  }
  Status Missing(std::string_view key) const {
    return MakeError(kConfMissingKey, {Where(key), "", "", ""});
  }
  Status Bad(std::string_view key, std::string expected,
             const Json& got) const {
    return MakeError(kConfBadValue,
                     {Where(key), "", std::move(expected), ShortJson(got)});
  }

  static const Json* Find(const Json& object, const char* key) {
    if (key == nullptr) return nullptr;
    const auto it = object.find(key);
    return it == object.end() ? nullptr : &*it;
  }

  // The Hugging Face spelling names the model; inference/config.json has
  // nothing but the numbers.
  Status CheckModelType() const {
    if (!root_.is_object()) {
      return MakeError(kConfMalformed,
                       {std::string(where_), "", "an object", ""});
    }
    if (const Json* type = Find(root_, "model_type"); type != nullptr) {
      if (*type == "deepseek_v4") return absl::OkStatus();
      return MakeError(
          kConfUnknownModelType,
          {Where("model_type"), "", "deepseek_v4", ShortJson(*type)});
    }
    if (const Json* names = Find(root_, "architectures"); names != nullptr) {
      if (*names == Json::array({"DeepseekV4ForCausalLM"})) {
        return absl::OkStatus();
      }
      return MakeError(kConfUnknownModelType,
                       {Where("architectures"), "", "DeepseekV4ForCausalLM",
                        ShortJson(*names)});
    }
    return Find(root_, "dim") != nullptr ? absl::OkStatus()
                                         : Missing("model_type");
  }

  Status Read(const Json& value, std::string_view key, int64_t& out) const {
    if (!value.is_number_integer()) return Bad(key, "an integer", value);
    const bool huge = value.is_number_unsigned() &&
                      value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
    if (huge) return Bad(key, "a smaller number", value);
    out = value.get<int64_t>();
    return absl::OkStatus();
  }
  Status Read(const Json& value, std::string_view key, int& out) const {
    int64_t wide = 0;
    BELAY_RETURN_IF_ERROR(Read(value, key, wide));
    if (wide < INT32_MIN || wide > INT32_MAX) {
      return Bad(key, "a 32-bit integer", value);
    }
    out = static_cast<int>(wide);
    return absl::OkStatus();
  }
  Status Read(const Json& value, std::string_view key, double& out) const {
    if (!value.is_number()) return Bad(key, "a number", value);
    out = value.get<double>();
    return absl::OkStatus();
  }
  Status Read(const Json& value, std::string_view key, float& out) const {
    double wide = 0;
    BELAY_RETURN_IF_ERROR(Read(value, key, wide));
    out = static_cast<float>(wide);
    return absl::OkStatus();
  }
  Status Read(const Json& value, std::string_view key, bool& out) const {
    if (!value.is_boolean()) return Bad(key, "true or false", value);
    out = value.get<bool>();
    return absl::OkStatus();
  }

  template <typename T, size_t n>
  Status ReadFields(const Field<T> (&fields)[n]) {
    for (const Field<T>& field : fields) {
      BELAY_RETURN_IF_ERROR(ReadField(field));
    }
    return absl::OkStatus();
  }

  template <typename T>
  Status ReadField(const Field<T>& field) {
    const Json* hf = Find(root_, field.hf);
    const Json* inference = Find(root_, field.inference);
    if (hf == nullptr && inference == nullptr) {
      if (!field.required) return absl::OkStatus();
      const bool in_hf_spelling = Find(root_, "dim") == nullptr;
      return Missing(in_hf_spelling ? field.hf : field.inference);
    }
    if (hf != nullptr && inference != nullptr && *hf != *inference) {
      return MakeError(
          kConfInconsistent,
          {Where(field.hf), std::string("contradicts ") + field.inference,
           ShortJson(*inference), ShortJson(*hf)});
    }
    return hf != nullptr
               ? Read(*hf, field.hf, config_.*field.member)
               : Read(*inference, field.inference, config_.*field.member);
  }

  // {"type": "yarn", "factor": 16, ...}; `rope_type` is the newer name.
  Status ReadRopeScaling() {
    const Json* scaling = Find(root_, "rope_scaling");
    if (scaling == nullptr || scaling->is_null()) return absl::OkStatus();
    if (!scaling->is_object())
      return Bad("rope_scaling", "an object", *scaling);
    for (const char* name : {"type", "rope_type"}) {
      const Json* type = Find(*scaling, name);
      if (type != nullptr && *type != "yarn") return Bad(name, "yarn", *type);
    }
    if (const Json* v = Find(*scaling, "original_max_position_embeddings")) {
      BELAY_RETURN_IF_ERROR(Read(*v, "original_max_position_embeddings",
                                 config_.original_seq_len));
    }
    constexpr std::pair<const char*, double ModelConfig::*> kKeys[] = {
        {"factor", &ModelConfig::rope_factor},
        {"beta_fast", &ModelConfig::beta_fast},
        {"beta_slow", &ModelConfig::beta_slow}};
    for (const auto& [key, member] : kKeys) {
      const Json* value = Find(*scaling, key);
      if (value == nullptr) continue;
      BELAY_RETURN_IF_ERROR(Read(*value, key, config_.*member));
    }
    return absl::OkStatus();
  }

  Status ReadFormats() {
    const Json* experts = Find(root_, "expert_dtype");
    if (experts != nullptr && !experts->is_null() && *experts != "fp4") {
      if (*experts != "fp8") return Bad("expert_dtype", "fp4 or fp8", *experts);
      config_.expert_format = ExpertFormat::kFp8;
    }
    const Json* quantization = Find(root_, "quantization_config");
    if (quantization == nullptr || !quantization->is_object()) {
      return absl::OkStatus();
    }
    const Json* block = Find(*quantization, "weight_block_size");
    if (block == nullptr) return absl::OkStatus();
    if (!block->is_array() || block->size() != 2 ||
        (*block)[0] != (*block)[1]) {
      return Bad("weight_block_size", "two equal numbers", *block);
    }
    return Read((*block)[0], "weight_block_size", config_.fp8_block);
  }

  Status CheckFixed() const {
    for (const FixedText& fixed : kFixedTexts) {
      const Json* value = Find(root_, fixed.key);
      if (value != nullptr && *value != fixed.value) {
        return Bad(fixed.key, fixed.value, *value);
      }
    }
    for (const FixedFlag& fixed : kFixedFlags) {
      const Json* value = Find(root_, fixed.key);
      if (value != nullptr && *value != fixed.value) {
        return Bad(fixed.key, fixed.value ? "true" : "false", *value);
      }
    }
    const Json* kv_heads = Find(root_, "num_key_value_heads");
    if (kv_heads != nullptr && *kv_heads != 1) {
      return Bad("num_key_value_heads", "1", *kv_heads);
    }
    return absl::OkStatus();
  }

  // What the released files leave to the code.
  Status ReadOwnKeys() {
    const Json* own = Find(root_, "belay");
    if (own == nullptr) return absl::OkStatus();
    if (!own->is_object()) return Bad("belay", "an object", *own);
    constexpr std::pair<const char*, int ModelConfig::*> kKeys[] = {
        {"fp4_block", &ModelConfig::fp4_block},
        {"kv_quant_group", &ModelConfig::kv_quant_group},
        {"index_quant_group", &ModelConfig::index_quant_group}};
    for (const auto& [key, member] : kKeys) {
      const Json* value = Find(*own, key);
      if (value == nullptr) continue;
      BELAY_RETURN_IF_ERROR(Read(*value, key, config_.*member));
    }
    if (const Json* norm = Find(*own, "q_head_norm")) {
      BELAY_RETURN_IF_ERROR(Read(*norm, "q_head_norm", config_.q_head_norm));
    }
    if (const Json* revision = Find(*own, "encoding_revision")) {
      if (*revision != "initial" && *revision != "0731") {
        return Bad("encoding_revision", "initial or 0731", *revision);
      }
      config_.encoding_revision = revision->get<std::string>();
    }
    return absl::OkStatus();
  }

  Status ReadInts(const char* key, std::vector<int>& out) const {
    const Json* values = Find(root_, key);
    if (values == nullptr) return absl::OkStatus();
    if (!values->is_array()) return Bad(key, "a list of integers", *values);
    for (const Json& value : *values) {
      BELAY_RETURN_IF_ERROR(Read(value, key, out.emplace_back()));
    }
    return absl::OkStatus();
  }

  Status ReadRatios() {
    if (Find(root_, "compress_ratios") == nullptr) {
      return Missing("compress_ratios");
    }
    std::vector<int>& ratios = config_.compress_ratios;
    BELAY_RETURN_IF_ERROR(ReadInts("compress_ratios", ratios));
    const auto n_ratios = static_cast<int64_t>(ratios.size());
    if (config_.draft_block > 0) {
      // num_nextn_predict_layers stays 1 in these releases, and the list holds
      // one entry a stage.
      config_.n_mtp_layers = 0;
      config_.n_draft_stages =
          static_cast<int>(std::max<int64_t>(n_ratios - config_.n_layers, 0));
      if (n_ratios > config_.n_layers) {
        ratios.resize(static_cast<size_t>(config_.n_layers));
      }
    } else if (n_ratios == config_.n_layers && config_.n_mtp_layers >= 0 &&
               config_.n_mtp_layers <= kMaxMtpLayers) {
      ratios.resize(static_cast<size_t>(n_ratios + config_.n_mtp_layers), 0);
    }
    return absl::OkStatus();
  }

  static constexpr int64_t kMaxMtpLayers = 8;  // as CheckConfig has it

  const Json& root_;
  std::string_view where_;
  ModelConfig config_;
};

}  // namespace

StatusOr<ModelConfig> ParseConfig(std::string_view json_text,
                                  std::string_view where) {
  const std::optional<Json> root = ParseJson(json_text);
  if (!root.has_value()) {
    return MakeError(kConfMalformed, {std::string(where), "", "JSON", ""});
  }
  return Parser(*root, where).Parse();
}

}  // namespace belay::spec
