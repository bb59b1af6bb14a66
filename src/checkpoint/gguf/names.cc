// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf/names.h"

#include <charconv>

namespace belay::checkpoint::gguf {
namespace {

// An official name and its spellings, after the prefixes of the layer.
struct Spelling {
  std::string_view official;
  std::string_view usual;
  std::string_view other1 = {};
  std::string_view other2 = {};
  Part part = Part::kWhole;
};

constexpr Spelling kGlobals[] = {
    {"embed.weight", "token_embd.weight"},
    {"head.weight", "output.weight"},
    {"norm.weight", "output_norm.weight"},
    {"hc_head_fn", "output_hc_fn.weight", "hc_head_fn.weight"},
    {"hc_head_base", "output_hc_base.weight", "hc_head_base.weight"},
    {"hc_head_scale", "output_hc_scale.weight", "hc_head_scale.weight"},
};

constexpr Spelling kOfLayer[] = {
    {"attn_norm.weight", "attn_norm.weight"},
    {"ffn_norm.weight", "ffn_norm.weight"},
    {"hc_attn_fn", "hc_attn_fn.weight"},
    {"hc_attn_base", "hc_attn_base.weight"},
    {"hc_attn_scale", "hc_attn_scale.weight"},
    {"hc_ffn_fn", "hc_ffn_fn.weight"},
    {"hc_ffn_base", "hc_ffn_base.weight"},
    {"hc_ffn_scale", "hc_ffn_scale.weight"},
    {"attn.attn_sink", "attn_sinks.weight"},
    {"attn.wq_a.weight", "attn_q_a.weight"},
    {"attn.q_norm.weight", "attn_q_a_norm.weight"},
    {"attn.wq_b.weight", "attn_q_b.weight"},
    {"attn.wkv.weight", "attn_kv.weight", "attn_kv_latent.weight",
     "attn_kv_a_mqa.weight"},
    {"attn.kv_norm.weight", "attn_kv_a_norm.weight"},
    {"attn.wo_a.weight", "attn_output_a.weight"},
    {"attn.wo_b.weight", "attn_output_b.weight"},
    {"attn.compressor.ape", "attn_compressor_ape.weight",
     "attn_compress_ape.weight"},
    {"attn.compressor.wkv.weight", "attn_compressor_kv.weight",
     "attn_compress_kv.weight"},
    {"attn.compressor.wgate.weight", "attn_compressor_gate.weight",
     "attn_compress_gate.weight"},
    {"attn.compressor.norm.weight", "attn_compressor_norm.weight",
     "attn_compress_norm.weight"},
    {"attn.indexer.wq_b.weight", "indexer.attn_q_b.weight"},
    {"attn.indexer.weights_proj.weight", "indexer.proj.weight"},
    {"attn.indexer.compressor.ape", "indexer_compressor_ape.weight",
     "indexer.compress_ape.weight"},
    {"attn.indexer.compressor.wkv.weight", "indexer_compressor_kv.weight",
     "indexer.compress_kv.weight"},
    {"attn.indexer.compressor.wgate.weight", "indexer_compressor_gate.weight",
     "indexer.compress_gate.weight"},
    {"attn.indexer.compressor.norm.weight", "indexer_compressor_norm.weight",
     "indexer.compress_norm.weight"},
    {"ffn.gate.weight", "ffn_gate_inp.weight"},
    {"ffn.gate.tid2eid", "ffn_gate_tid2eid.weight"},
    {"ffn.gate.bias", "exp_probs_b.bias"},
    {"ffn.shared_experts.w1.weight", "ffn_gate_shexp.weight"},
    {"ffn.shared_experts.w2.weight", "ffn_down_shexp.weight"},
    {"ffn.shared_experts.w3.weight", "ffn_up_shexp.weight"},
    // Of MTP blocks.
    {"e_proj.weight", "nextn.eh_proj.weight", {}, {}, Part::kLeftHalf},
    {"h_proj.weight", "nextn.eh_proj.weight", {}, {}, Part::kRightHalf},
    {"enorm.weight", "nextn.enorm.weight"},
    {"hnorm.weight", "nextn.hnorm.weight"},
    {"norm.weight", "nextn.shared_head_norm.weight"},
    {"hc_head_fn", "nextn.hc_head_fn.weight"},
    {"hc_head_base", "nextn.hc_head_base.weight"},
    {"hc_head_scale", "nextn.hc_head_scale.weight"},
};

void AddPlaces(const Spelling& s, const std::string& prefix,
               std::vector<Place>& places) {
  for (const std::string_view name : {s.usual, s.other1, s.other2}) {
    if (name.empty()) continue;
    places.push_back({prefix + std::string(name), s.part, 0});
  }
}

// N of "PREFIX N.rest"; `text` becomes the rest.
bool TakeIndex(std::string_view prefix, std::string_view& text,
               int64_t& index) {
  if (text.substr(0, prefix.size()) != prefix) return false;
  const char* const begin = text.data() + prefix.size();
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(begin, end, index);
  if (error != std::errc() || rest == end || *rest != '.') return false;
  text.remove_prefix(static_cast<size_t>(rest + 1 - text.data()));
  return true;
}

// ds4 keeps MTP blocks as mtp.N. with the layer's own spellings and names of
// its own, and e_proj and h_proj apart.
void AddDs4Mtp(std::string_view rest, const std::string& prefix,
               std::vector<Place>& places) {
  for (const Spelling& s : kOfLayer) {
    if (s.official != rest) continue;
    if (s.usual.substr(0, 6) != "nextn.") {
      places.push_back({prefix + std::string(s.usual), Part::kWhole, 0});
    } else {
      const bool has_suffix = rest.find(".weight") != std::string_view::npos;
      places.push_back(
          {prefix + std::string(rest) + (has_suffix ? "" : ".weight"),
           Part::kWhole, 0});
    }
  }
}

}  // namespace

std::vector<Place> PlacesOf(const spec::ModelConfig& config,
                            std::string_view official) {
  std::vector<Place> places;
  std::string_view rest = official;
  int64_t index = 0;
  const bool is_mtp = TakeIndex("mtp.", rest, index);
  if (!is_mtp && !TakeIndex("layers.", rest, index)) {
    for (const Spelling& s : kGlobals) {
      if (s.official == official) AddPlaces(s, "", places);
    }
    return places;
  }
  const std::string block =
      "blk." + std::to_string(is_mtp ? config.n_layers + index : index) + ".";
  const std::string ds4 = "mtp." + std::to_string(index) + ".";
  int64_t expert = 0;
  if (TakeIndex("ffn.experts.", rest, expert)) {
    const char* const stack = rest == "w1.weight"   ? "ffn_gate_exps.weight"
                              : rest == "w2.weight" ? "ffn_down_exps.weight"
                              : rest == "w3.weight" ? "ffn_up_exps.weight"
                                                    : nullptr;
    if (stack == nullptr) return places;
    places.push_back({block + stack, Part::kExpert, expert});
    if (is_mtp) places.push_back({ds4 + stack, Part::kExpert, expert});
    return places;
  }
  for (const Spelling& s : kOfLayer) {
    if (s.official == rest) AddPlaces(s, block, places);
  }
  if (is_mtp) AddDs4Mtp(rest, ds4, places);
  return places;
}

}  // namespace belay::checkpoint::gguf
