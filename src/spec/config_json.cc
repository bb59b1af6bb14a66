// SPDX-License-Identifier: Apache-2.0
// The config as config.json of a release.
#include <charconv>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "spec/config.h"

namespace belay::spec {
namespace {

using Json = nlohmann::json;

// The double with the fewest digits that still is `value` as a float: 1e-06,
// not 9.99999997e-07.
double ShortestDouble(float value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof(text) - 1, value).ptr;
  *end = '\0';
  return std::strtod(text, nullptr);
}

// 10000, not 10000.0, as the releases write it.
Json Number(double value) {
  const auto whole = static_cast<int64_t>(value);
  return static_cast<double>(whole) == value ? Json(whole) : Json(value);
}

void AddOwnKeys(const ModelConfig& c, Json& root) {
  const ModelConfig standard;
  Json own = Json::object();
  if (c.fp4_block != standard.fp4_block) own["fp4_block"] = c.fp4_block;
  if (c.kv_quant_group != standard.kv_quant_group) {
    own["kv_quant_group"] = c.kv_quant_group;
  }
  if (c.index_quant_group != standard.index_quant_group) {
    own["index_quant_group"] = c.index_quant_group;
  }
  if (c.q_head_norm != standard.q_head_norm) own["q_head_norm"] = c.q_head_norm;
  if (c.encoding_revision != standard.encoding_revision) {
    own["encoding_revision"] = c.encoding_revision;
  }
  if (!own.empty()) root["belay"] = std::move(own);
}

void AddFormats(const ModelConfig& c, Json& root) {
  root["quantization_config"] = {
      {"activation_scheme", "dynamic"},
      {"fmt", "e4m3"},
      {"quant_method", "fp8"},
      {"scale_fmt", "ue8m0"},
      {"weight_block_size", {c.fp8_block, c.fp8_block}}};
  root["rope_scaling"] = {
      {"beta_fast", Number(c.beta_fast)},
      {"beta_slow", Number(c.beta_slow)},
      {"factor", Number(c.rope_factor)},
      {"original_max_position_embeddings", c.original_seq_len},
      {"type", "yarn"}};
}

void AddDraftKeys(const ModelConfig& c, Json& root) {
  if (c.draft_block == 0) return;
  root["dspark_block_size"] = c.draft_block;
  root["dspark_target_layer_ids"] = c.draft_tap_layers;
  for (int i = 0; i < c.n_draft_stages; ++i) {
    root["compress_ratios"].push_back(0);
  }
}

}  // namespace

std::string ConfigToJson(const ModelConfig& c) {
  Json root = {
      {"architectures", {"DeepseekV4ForCausalLM"}},
      {"attention_bias", false},
      {"bos_token_id", c.bos_id},
      {"compress_ratios", c.compress_ratios},
      {"compress_rope_theta", Number(c.compress_rope_theta)},
      {"eos_token_id", c.eos_id},
      {"expert_dtype", c.expert_format == ExpertFormat::kFp4 ? "fp4" : "fp8"},
      {"hc_eps", ShortestDouble(c.hc_eps)},
      {"hc_mult", c.hc_mult},
      {"hc_sinkhorn_iters", c.hc_sinkhorn_iters},
      {"head_dim", c.head_dim},
      {"hidden_act", "silu"},
      {"hidden_size", c.dim},
      {"index_head_dim", c.index_head_dim},
      {"index_n_heads", c.index_n_heads},
      {"index_topk", c.index_topk},
      {"max_position_embeddings", c.max_positions},
      {"model_type", "deepseek_v4"},
      {"moe_intermediate_size", c.moe_inter_dim},
      {"n_routed_experts", c.n_routed_experts},
      {"n_shared_experts", c.n_shared_experts},
      {"norm_topk_prob", true},
      {"num_attention_heads", c.n_heads},
      {"num_experts_per_tok", c.n_activated_experts},
      {"num_hash_layers", c.n_hash_layers},
      {"num_hidden_layers", c.n_layers},
      {"num_key_value_heads", 1},
      {"num_nextn_predict_layers", c.n_mtp_layers},
      {"o_groups", c.o_groups},
      {"o_lora_rank", c.o_lora_rank},
      {"q_lora_rank", c.q_lora_rank},
      {"qk_rope_head_dim", c.rope_head_dim},
      {"rms_norm_eps", ShortestDouble(c.norm_eps)},
      {"rope_theta", Number(c.rope_theta)},
      {"routed_scaling_factor", ShortestDouble(c.route_scale)},
      {"scoring_func", "sqrtsoftplus"},
      {"sliding_window", c.window_size},
      {"swiglu_limit", ShortestDouble(c.swiglu_limit)},
      {"tie_word_embeddings", false},
      {"topk_method", "noaux_tc"},
      {"torch_dtype", "bfloat16"},
      {"vocab_size", c.vocab_size},
  };
  AddFormats(c, root);
  AddDraftKeys(c, root);
  AddOwnKeys(c, root);
  return root.dump(2) + "\n";
}

}  // namespace belay::spec
