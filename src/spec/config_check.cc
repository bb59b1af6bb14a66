// SPDX-License-Identifier: Apache-2.0
// What the operators ask of a config.
#include <bit>
#include <cmath>
#include <utility>

#include "base/error_ids.h"
#include "spec/config.h"

namespace belay::spec {
namespace {

class Checker {
 public:
  Checker(const ModelConfig& config, std::string_view where)
      : c_(config), where_(where) {}

  Status Run() {
    Ranges();
    FloatRanges();
    Ratios();
    Attention();
    Blocks();
    Experts();
    Draft();
    return std::move(status_);
  }

 private:
  void Fail(const ErrorId& id, std::string key, std::string expected,
            std::string got) {
    if (!status_.ok()) return;  // the first one is the one to mend
    status_ = MakeError(id, {std::string(where_) + ": " + std::move(key), "",
                             std::move(expected), std::move(got)});
  }
  void Range(const char* key, int64_t value, int64_t min, int64_t max) {
    if (value >= min && value <= max) return;
    Fail(kConfBadValue, key, std::to_string(min) + " .. " + std::to_string(max),
         std::to_string(value));
  }
  void FloatRange(const char* key, double value, double min, double max) {
    if (std::isfinite(value) && value >= min && value <= max) return;
    Fail(kConfBadValue, key, std::to_string(min) + " .. " + std::to_string(max),
         std::to_string(value));
  }
  // Not called with a divisor of 0 after Ranges has passed.
  void Divides(const char* key, int64_t value, int64_t divisor) {
    if (!status_.ok() || value % divisor == 0) return;
    Fail(kConfInconsistent, key, "a multiple of " + std::to_string(divisor),
         std::to_string(value));
  }

  // The upper bounds are far beyond any released model; they keep products of
  // sizes inside 63 bits.
  void Ranges() {
    constexpr int64_t kMaxDim = 1 << 18;
    Range("hidden_size", c_.dim, 1, kMaxDim);
    Range("num_hidden_layers", c_.n_layers, 1, 4096);
    Range("num_hash_layers", c_.n_hash_layers, 0, c_.n_layers);
    Range("num_nextn_predict_layers", c_.n_mtp_layers, 0, 8);
    Range("vocab_size", c_.vocab_size, 2, 1 << 24);
    Range("max_position_embeddings", c_.max_positions, 1, 1 << 30);
    Range("num_attention_heads", c_.n_heads, 1, 4096);
    Range("head_dim", c_.head_dim, 2, 4096);
    Range("qk_rope_head_dim", c_.rope_head_dim, 2, c_.head_dim - 1);
    Range("q_lora_rank", c_.q_lora_rank, 1, kMaxDim);
    Range("o_groups", c_.o_groups, 1, 4096);
    Range("o_lora_rank", c_.o_lora_rank, 1, kMaxDim);
    Range("sliding_window", c_.window_size, 1, 1 << 20);
    Range("index_n_heads", c_.index_n_heads, 1, 4096);
    Range("index_head_dim", c_.index_head_dim, 2, 4096);
    Range("index_topk", c_.index_topk, 1, 1 << 20);
    Range("n_routed_experts", c_.n_routed_experts, 1, 1 << 16);
    Range("n_shared_experts", c_.n_shared_experts, 1, 1);
    Range("num_experts_per_tok", c_.n_activated_experts, 1, 256);
    Range("moe_intermediate_size", c_.moe_inter_dim, 1, kMaxDim);
    Range("hc_mult", c_.hc_mult, 1, 16);
    Range("hc_sinkhorn_iters", c_.hc_sinkhorn_iters, 1, 1000);
    Range("original_max_position_embeddings", c_.original_seq_len, 1, 1 << 30);
    Range("bos_token_id", c_.bos_id, 0, c_.vocab_size - 1);
    Range("eos_token_id", c_.eos_id, 0, c_.vocab_size - 1);
    Range("weight_block_size", c_.fp8_block, 32, 4096);
    Range("fp4_block", c_.fp4_block, 2, 4096);
    Range("kv_quant_group", c_.kv_quant_group, 1, 4096);
    Range("index_quant_group", c_.index_quant_group, 2, 4096);
    Range("dspark_block_size", c_.draft_block, 0, 1024);
    // Ten times Pro: a table of tensors stays in memory.
    Range("num_hidden_layers * n_routed_experts",
          (c_.n_layers + c_.n_mtp_layers) * c_.n_routed_experts, 1, 1 << 18);
  }

  void FloatRanges() {
    FloatRange("routed_scaling_factor", c_.route_scale, 1e-6, 1e6);
    FloatRange("swiglu_limit", c_.swiglu_limit, 1e-6, 1e30);
    FloatRange("hc_eps", c_.hc_eps, 1e-12, 1);
    FloatRange("rms_norm_eps", c_.norm_eps, 1e-12, 1);
    FloatRange("rope_theta", c_.rope_theta, 1.0001, 1e15);
    FloatRange("compress_rope_theta", c_.compress_rope_theta, 1.0001, 1e15);
    FloatRange("factor", c_.rope_factor, 1, 1e6);
    FloatRange("beta_fast", c_.beta_fast, 1e-6, 1e9);
    FloatRange("beta_slow", c_.beta_slow, 1e-6, c_.beta_fast);
  }

  void Ratios() {
    if (!status_.ok()) return;
    const auto n_ratios = static_cast<int64_t>(c_.compress_ratios.size());
    if (n_ratios != c_.n_layers + c_.n_mtp_layers) {
      Fail(kConfInconsistent, "compress_ratios",
           std::to_string(c_.n_layers + c_.n_mtp_layers) + " entries",
           std::to_string(n_ratios));
      return;
    }
    for (int64_t i = 0; i < n_ratios; ++i) {
      const int ratio = c_.compress_ratios[static_cast<size_t>(i)];
      if (ratio != 0 && ratio != 4 && ratio != 128) {
        Fail(kConfBadValue, "compress_ratios", "0, 4 or 128",
             std::to_string(ratio));
      }
      if (i >= c_.n_layers && ratio != 0) {
        Fail(kConfInconsistent, "compress_ratios", "0 for an MTP layer",
             std::to_string(ratio));
      }
    }
  }

  void Attention() {
    Divides("qk_rope_head_dim", c_.rope_head_dim, 2);
    Divides("head_dim - qk_rope_head_dim", c_.head_dim - c_.rope_head_dim,
            c_.kv_quant_group);
    Divides("num_attention_heads", c_.n_heads, c_.o_groups);
    Divides("index_head_dim", c_.index_head_dim, c_.index_quant_group);
    Divides("index_quant_group", c_.index_quant_group, 2);
    if (!std::has_single_bit(static_cast<uint64_t>(c_.index_head_dim))) {
      Fail(kConfInconsistent, "index_head_dim",
           "a power of two (Hadamard transform)",
           std::to_string(c_.index_head_dim));
    }
    if (c_.index_head_dim < c_.rope_head_dim) {
      Fail(kConfInconsistent, "index_head_dim",
           "at least qk_rope_head_dim = " + std::to_string(c_.rope_head_dim),
           std::to_string(c_.index_head_dim));
    }
  }

  // The input of every FP8 linear is quantised in whole blocks along K.
  void Blocks() {
    Divides("hidden_size", c_.dim, c_.fp8_block);
    Divides("q_lora_rank", c_.q_lora_rank, c_.fp8_block);
    Divides("o_groups * o_lora_rank", c_.o_groups * c_.o_lora_rank,
            c_.fp8_block);
    Divides("moe_intermediate_size", c_.moe_inter_dim, c_.fp8_block);
    Divides("weight_block_size", c_.fp8_block, c_.fp4_block);
    Divides("fp4_block", c_.fp4_block, 2);
  }

  void Experts() {
    if (c_.n_activated_experts > c_.n_routed_experts) {
      Fail(kConfInconsistent, "num_experts_per_tok",
           "at most n_routed_experts = " + std::to_string(c_.n_routed_experts),
           std::to_string(c_.n_activated_experts));
    }
  }

  void Draft() {
    for (const int layer : c_.draft_tap_layers) {
      Range("dspark_target_layer_ids", layer, 0, c_.n_layers - 1);
    }
    if (c_.draft_block > 0 && c_.n_mtp_layers > 0) {
      Fail(kConfInconsistent, "num_nextn_predict_layers",
           "no MTP layers beside a draft model",
           std::to_string(c_.n_mtp_layers));
    }
  }

  const ModelConfig& c_;
  std::string_view where_;
  Status status_;
};

}  // namespace

Status CheckConfig(const ModelConfig& config, std::string_view where) {
  return Checker(config, where).Run();
}

}  // namespace belay::spec
