// SPDX-License-Identifier: Apache-2.0
#include "spec/presets.h"

#include <string>

#include "base/error_ids.h"

namespace belay::spec {
namespace {

// Two layers of `first`, then 4 and 128 by turns, then the MTP layers.
std::vector<int> Ratios(int first, int64_t n_layers, int64_t n_mtp_layers) {
  std::vector<int> ratios;
  for (int64_t i = 0; i < n_layers; ++i) {
    ratios.push_back(i < 2 ? first : (i % 2 == 0 ? 4 : 128));
  }
  ratios.resize(static_cast<size_t>(n_layers + n_mtp_layers), 0);
  return ratios;
}

// config.json of DeepSeek-V4-Flash.
ModelConfig Flash() {
  ModelConfig c;
  c.dim = 4096;
  c.n_layers = 43;
  c.n_hash_layers = 3;
  c.n_mtp_layers = 1;
  c.vocab_size = 129280;
  c.n_heads = 64;
  c.q_lora_rank = 1024;
  c.o_groups = 8;
  c.o_lora_rank = 1024;
  c.compress_ratios = Ratios(0, c.n_layers, c.n_mtp_layers);
  c.index_n_heads = 64;
  c.index_topk = 512;
  c.n_routed_experts = 256;
  c.n_activated_experts = 6;
  c.moe_inter_dim = 2048;
  c.route_scale = 1.5f;
  return c;
}

// config.json of DeepSeek-V4-Pro.
ModelConfig Pro() {
  ModelConfig c = Flash();
  c.dim = 7168;
  c.n_layers = 61;
  c.n_heads = 128;
  c.q_lora_rank = 1536;
  c.o_groups = 16;
  c.compress_ratios = Ratios(128, c.n_layers, c.n_mtp_layers);
  c.index_topk = 1024;
  c.n_routed_experts = 384;
  c.moe_inter_dim = 3072;
  c.route_scale = 2.5f;
  return c;
}

ModelConfig WithFp8Experts(ModelConfig c) {
  c.expert_format = ExpertFormat::kFp8;
  return c;
}
ModelConfig FlashBase() { return WithFp8Experts(Flash()); }
ModelConfig ProBase() { return WithFp8Experts(Pro()); }

// The sizes of the tiny golden checkpoints.
ModelConfig Golden() {
  ModelConfig c;
  c.dim = 256;
  c.n_layers = 6;
  c.n_hash_layers = 1;
  c.n_mtp_layers = 1;
  c.vocab_size = 1024;
  c.n_heads = 8;
  c.head_dim = 128;
  c.q_lora_rank = 128;
  c.o_groups = 2;
  c.o_lora_rank = 128;
  c.window_size = 16;
  c.compress_ratios = {128, 4, 128, 4, 4, 0, 0};
  c.index_n_heads = 4;
  c.index_topk = 8;
  c.n_routed_experts = 16;
  c.n_activated_experts = 2;
  c.moe_inter_dim = 128;
  c.route_scale = 1.5f;
  return c;
}

ModelConfig GoldenBase() {
  ModelConfig c = WithFp8Experts(Golden());
  c.n_layers = 3;
  c.compress_ratios = {128, 4, 0, 0};
  return c;
}

// The sizes of the trained checkpoint in data/demo.
ModelConfig Demo() {
  ModelConfig c = Golden();
  c.vocab_size = 2560;
  c.n_heads = 4;
  c.window_size = 128;
  c.compress_ratios = {0, 4, 128, 4, 128, 4, 0};
  c.index_n_heads = 2;
  c.index_topk = 64;
  c.n_routed_experts = 8;
  return c;
}

// Random models for speed and loader tests: the released head size, rope,
// window and streams, little else. No MTP layer, as in the GGUF files of the
// same names that peers are measured with.
ModelConfig Tiny() {
  ModelConfig c;
  c.dim = 512;
  c.n_layers = 6;
  c.n_hash_layers = 3;
  c.vocab_size = 4096;
  c.max_positions = 65536;
  c.n_heads = 4;
  c.q_lora_rank = 256;
  c.o_groups = 2;
  c.o_lora_rank = 128;
  c.compress_ratios = Ratios(0, c.n_layers, 0);
  c.index_n_heads = 8;
  c.index_topk = 64;
  c.n_routed_experts = 8;
  c.n_activated_experts = 2;
  c.moe_inter_dim = 256;
  c.route_scale = 1.5f;
  return c;
}

ModelConfig Small() {
  ModelConfig c = Tiny();
  c.dim = 1024;
  c.n_layers = 12;
  c.vocab_size = 32768;
  c.n_heads = 8;
  c.q_lora_rank = 512;
  c.o_groups = 4;
  c.o_lora_rank = 256;
  c.compress_ratios = Ratios(0, c.n_layers, 0);
  c.index_n_heads = 16;
  c.index_topk = 128;
  c.n_routed_experts = 16;
  c.moe_inter_dim = 512;
  return c;
}

ModelConfig Mid() {
  ModelConfig c = Small();
  c.dim = 2048;
  c.n_heads = 16;
  c.o_lora_rank = 512;
  c.index_n_heads = 32;
  c.index_topk = 256;
  c.n_routed_experts = 32;
  c.n_activated_experts = 6;
  c.moe_inter_dim = 1024;
  return c;
}

ModelConfig Article() {
  ModelConfig c = Small();
  c.max_positions = 512;
  return c;
}

// All of Flash's dimensions in few layers: fused operators on Ascend accept no
// others.
ModelConfig FlashSlice() {
  ModelConfig c = Flash();
  c.n_layers = 4;
  c.n_hash_layers = 1;
  c.vocab_size = 4096;
  c.compress_ratios = {0, 4, 128, 4, 0};
  c.n_routed_experts = 8;
  return c;
}

constexpr Preset kPresets[] = {
    {"flash", "DeepSeek-V4-Flash, 284 B parameters, 13 B active", Flash},
    {"pro", "DeepSeek-V4-Pro, 1.6 T parameters, 49 B active", Pro},
    {"flash-base", "DeepSeek-V4-Flash-Base: FP8 experts", FlashBase},
    {"pro-base", "DeepSeek-V4-Pro-Base: FP8 experts", ProBase},
    {"golden", "sizes of the golden checkpoint with FP4 experts", Golden},
    {"golden-base", "sizes of the golden checkpoint with FP8 experts",
     GoldenBase},
    {"demo", "sizes of the trained demo checkpoint", Demo},
    {"tiny", "6 layers, dim 512, 8 experts", Tiny},
    {"small", "12 layers, dim 1024, 16 experts", Small},
    {"mid", "12 layers, dim 2048, 32 experts", Mid},
    {"article", "small with a context of 512", Article},
    {"flash-slice", "4 layers with all of Flash's dimensions, 8 experts",
     FlashSlice},
};

}  // namespace

std::span<const Preset> Presets() { return kPresets; }

StatusOr<ModelConfig> PresetConfig(std::string_view name) {
  std::string names;
  for (const Preset& preset : kPresets) {
    if (preset.name == name) return preset.make();
    if (!names.empty()) names += ", ";
    names += preset.name;
  }
  return MakeError(kArgUsage,
                   {"preset", "", "one of " + names, std::string(name)});
}

}  // namespace belay::spec
