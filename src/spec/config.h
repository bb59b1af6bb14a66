// SPDX-License-Identifier: Apache-2.0
// The numbers of one DeepSeek-V4 model. Flash, Pro and the small test models
// are values of this struct; nothing in the engine branches on which one it is.
// Source: config.json of the releases and inference/config.json, whose
// spellings (hidden_size / dim, num_hidden_layers / n_layers, ...) are both
// read.
#ifndef BELAY_SPEC_CONFIG_H_
#define BELAY_SPEC_CONFIG_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belay::spec {

enum class ExpertFormat : uint8_t {
  kFp4,  // I8-packed e2m1 [n, k / 2], e8m0 scale per 32 of K
  kFp8,  // e4m3 [n, k], scale per fp8_block x fp8_block (the -Base checkpoints)
};

// How attention of one layer sees the past beyond the window.
enum class LayerKind : uint8_t {
  kSliding,  // ratio 0: the window only
  kHca,      // ratio 128: all compressed rows
  kCsa,      // ratio 4: overlapping compressor, rows chosen by the indexer
};

struct ModelConfig {
  int64_t dim = 0;
  int64_t n_layers = 0;
  int64_t n_hash_layers = 0;  // the first layers, routed by token id
  int64_t n_mtp_layers = 0;
  int64_t vocab_size = 0;
  int64_t max_positions = 1048576;

  int64_t n_heads = 0;
  int64_t head_dim = 512;
  int64_t rope_head_dim = 64;
  int64_t q_lora_rank = 0;
  int64_t o_groups = 0;
  int64_t o_lora_rank = 0;  // per group
  int64_t window_size = 128;
  std::vector<int> compress_ratios;  // [n_layers + n_mtp_layers]: 0, 4 or 128

  int64_t index_n_heads = 0;
  int64_t index_head_dim = 128;
  int64_t index_topk = 0;

  int64_t n_routed_experts = 0;
  int64_t n_shared_experts = 1;
  int64_t n_activated_experts = 0;
  int64_t moe_inter_dim = 0;
  float route_scale = 1.0f;
  float swiglu_limit = 10.0f;

  int hc_mult = 4;
  int hc_sinkhorn_iters = 20;
  float hc_eps = 1e-6f;
  float norm_eps = 1e-6f;

  double rope_theta = 10000;            // ratio-0 layers and MTP, no YaRN
  double compress_rope_theta = 160000;  // the other layers, YaRN
  double rope_factor = 16;
  int64_t original_seq_len = 65536;
  double beta_fast = 32;
  double beta_slow = 1;

  int32_t bos_id = 0;
  int32_t eos_id = 1;

  // What later releases change is data.
  ExpertFormat expert_format = ExpertFormat::kFp4;
  int fp8_block = 128;  // of weights, both directions; of activations along K
  int fp4_block = 32;   // of weights, along K
  int kv_quant_group = 64;  // cache rows
  int index_quant_group = 32;
  bool q_head_norm = true;
  // A DSpark draft model in the checkpoint (V4-Flash-DSpark, V4-Flash-0731,
  // V4-Pro-0813): tokens a draft block, stages (their tensors are mtp.0 ..
  // mtp.N-1), and the layers whose hidden state it reads. No MTP head then.
  int draft_block = 0;  // 0 = no draft model
  int n_draft_stages = 0;
  std::vector<int> draft_tap_layers;
  std::string encoding_revision = "initial";  // chat encoding: initial or 0731

  friend bool operator==(const ModelConfig&, const ModelConfig&) = default;

  LayerKind kind(
      int64_t layer) const {  // layer in [0, n_layers + n_mtp_layers)
    const int ratio = compress_ratios[static_cast<size_t>(layer)];
    return ratio == 0 ? LayerKind::kSliding
                      : (ratio == 4 ? LayerKind::kCsa : LayerKind::kHca);
  }
  bool is_hash(int64_t layer) const { return layer < n_hash_layers; }
};

// Reads either spelling. Without expert_dtype the experts are FP4 (the first
// revision of Flash). compress_ratios may leave out the MTP layers (0 then) and
// may go on for the stages of a draft model. Keys that only Belay knows stand
// in an object "belay". Errors: CONF-004 (not JSON), CONF-002 (model_type or
// architectures name another model), CONF-001 (a key is missing), CONF-003 (a
// value of the wrong type or out of range), CONF-005 (values that contradict).
// `where` names the file in errors.
StatusOr<ModelConfig> ParseConfig(std::string_view json_text,
                                  std::string_view where);

// Whether every operator can work with these sizes: ranges (CONF-003) and what
// must divide what (CONF-005). ParseConfig ends with this. `where` names the
// source in errors.
Status CheckConfig(const ModelConfig& config, std::string_view where);

// config.json's text in the Hugging Face spelling; ParseConfig reads it back to
// an equal config.
std::string ConfigToJson(const ModelConfig& config);

// The rotary frequencies [rope_head_dim / 2], float32 steps as the official
// precompute_freqs_cis: freq_i = fl(1 / fl(base^(2i/d))), and with `compressed`
// base compress_rope_theta and YaRN's interpolation. The power is rounded
// correctly, so that every machine has the same table; the official code takes
// whatever powf of its device gives (1 ulp).
std::vector<float> RopeFrequencies(const ModelConfig& config, bool compressed);

}  // namespace belay::spec

#endif  // BELAY_SPEC_CONFIG_H_
