// SPDX-License-Identifier: Apache-2.0
// How the released checkpoints spell their tensors: the one place for names.
// Linear layers hold "<name>.weight" and, when quantised, "<name>.scale".
// Source: model.safetensors.index.json of the releases, inference/model.py.
#ifndef BELAY_SPEC_NAMES_H_
#define BELAY_SPEC_NAMES_H_

#include <cstdint>
#include <string>

namespace belay::spec::names {

inline constexpr char kWeight[] = ".weight";
inline constexpr char kScale[] = ".scale";

// Globals; kNorm and kHcHead stand in every MTP block, too.
inline constexpr char kEmbed[] = "embed";
inline constexpr char kHead[] = "head";
inline constexpr char kNorm[] = "norm.weight";
inline constexpr char kHcHead[] = "hc_head";  // + the three below

// Behind a hyper-connection's name.
inline constexpr char kHcFn[] = "_fn";
inline constexpr char kHcBase[] = "_base";
inline constexpr char kHcScale[] = "_scale";

// Behind a layer's prefix.
inline constexpr char kHcAttn[] = "hc_attn";
inline constexpr char kHcFfn[] = "hc_ffn";
inline constexpr char kAttnNorm[] = "attn_norm.weight";
inline constexpr char kFfnNorm[] = "ffn_norm.weight";
inline constexpr char kSink[] = "attn.attn_sink";
inline constexpr char kWqA[] = "attn.wq_a";
inline constexpr char kQNorm[] = "attn.q_norm.weight";
inline constexpr char kWqB[] = "attn.wq_b";
inline constexpr char kWkv[] = "attn.wkv";
inline constexpr char kKvNorm[] = "attn.kv_norm.weight";
inline constexpr char kWoA[] = "attn.wo_a";
inline constexpr char kWoB[] = "attn.wo_b";
inline constexpr char kCompressor[] = "attn.compressor";  // + the four below
inline constexpr char kIndexerWqB[] = "attn.indexer.wq_b";
inline constexpr char kIndexerWeights[] = "attn.indexer.weights_proj";
inline constexpr char kIndexerCompressor[] = "attn.indexer.compressor";
inline constexpr char kGate[] = "ffn.gate";
inline constexpr char kGateBias[] = "ffn.gate.bias";
inline constexpr char kGateTable[] = "ffn.gate.tid2eid";
inline constexpr char kSharedExpert[] = "ffn.shared_experts.";  // + w1 w2 w3

// Behind a compressor's name.
inline constexpr char kCompressorWkv[] = ".wkv";
inline constexpr char kCompressorWgate[] = ".wgate";
inline constexpr char kCompressorApe[] = ".ape";
inline constexpr char kCompressorNorm[] = ".norm.weight";

// Behind an expert's prefix: gate, down, up.
inline constexpr char kW1[] = "w1";
inline constexpr char kW2[] = "w2";
inline constexpr char kW3[] = "w3";

// Behind an MTP block's prefix.
inline constexpr char kMtpEProj[] = "e_proj";
inline constexpr char kMtpHProj[] = "h_proj";
inline constexpr char kMtpENorm[] = "enorm.weight";
inline constexpr char kMtpHNorm[] = "hnorm.weight";

inline std::string LayerPrefix(int64_t layer) {
  return "layers." + std::to_string(layer) + ".";
}
inline std::string MtpPrefix(int64_t index) {
  return "mtp." + std::to_string(index) + ".";
}
// Behind a layer's prefix.
inline std::string ExpertPrefix(int64_t expert) {
  return "ffn.experts." + std::to_string(expert) + ".";
}

}  // namespace belay::spec::names

#endif  // BELAY_SPEC_NAMES_H_
