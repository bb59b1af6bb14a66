// SPDX-License-Identifier: Apache-2.0
// The weights of one rank, bound once to a back end. Names end here: behind
// this header a weight is a field.
#ifndef BELAY_MODEL_WEIGHTS_H_
#define BELAY_MODEL_WEIGHTS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/backend.h"
#include "spec/config.h"
#include "spec/rank.h"
#include "tensor/block_format.h"
#include "tensor/view.h"

namespace belay::model {

using Linear = std::unique_ptr<ops::BoundLinear>;

struct CompressorWeights {
  Linear wkv;            // [width, dim]
  Linear wgate;          // [width, dim]
  ConstTensorView ape;   // [ratio, width] f32
  ConstTensorView norm;  // [head_dim or index_head_dim] bf16 or f32

  ops::CompressorWeights view() const {
    return {.wkv = wkv.get(), .wgate = wgate.get(), .ape = ape, .norm = norm};
  }
};

struct AttentionWeights {
  ConstTensorView norm;     // [dim] bf16 or f32
  Linear wq_a;              // [q_lora, dim]
  ConstTensorView q_norm;   // [q_lora] bf16 or f32
  Linear wq_b;              // [n_heads * head_dim, q_lora], this rank's heads
  Linear wkv;               // [head_dim, dim]
  ConstTensorView kv_norm;  // [head_dim] bf16 or f32
  ConstTensorView sink;     // [n_heads] f32
  Linear wo_a;              // [groups * o_lora, heads * head_dim / groups]
  Linear wo_b;              // [dim, groups * o_lora]
  CompressorWeights compressor;        // ratio != 0
  CompressorWeights index_compressor;  // CSA
  Linear index_wq_b;                   // CSA
  Linear index_weights_proj;           // CSA
};

struct MoeWeights {
  ConstTensorView norm;   // [dim] bf16 or f32
  Linear gate;            // [n_experts, dim]
  ConstTensorView bias;   // [n_experts] f32; layers routed by score
  ConstTensorView table;  // [vocab, k] i64; hash layers
  std::unique_ptr<ops::BoundExperts> experts;  // this rank's
  std::unique_ptr<ops::BoundExperts> shared;
};

struct LayerWeights {
  int ratio = 0;  // tokens a compressed row; 0 = none
  const ops::RopeTable* rope = nullptr;
  ops::HcWeights hc_attn;
  AttentionWeights attn;
  ops::HcWeights hc_ffn;
  MoeWeights moe;
};

struct MtpWeights {
  ConstTensorView enorm;  // [dim] bf16 or f32
  ConstTensorView hnorm;  // [dim] bf16 or f32
  Linear e_proj;          // [dim, dim]
  Linear h_proj;          // [dim, dim]
  LayerWeights block;
  ops::HcWeights hc_head;
  ConstTensorView norm;  // [dim] bf16 or f32
};

struct ModelWeights {
  StoredView embed;  // [vocab rows of this rank, dim] bf16, f16, f32 or blocks
  int64_t first_vocab_row = 0;
  std::vector<LayerWeights> layers;
  std::vector<MtpWeights> mtp;
  ops::HcWeights hc_head;
  ConstTensorView norm;  // [dim] bf16 or f32
  Linear head;           // [vocab rows of this rank, dim]

  std::vector<float> rope_main_freq;
  std::vector<float> rope_compressed_freq;
  ops::RopeTable rope_main;        // ratio-0 layers and MTP
  ops::RopeTable rope_compressed;  // the others
};

// A tensor by its official name, already sliced for the rank; empty when the
// checkpoint has none. Whether that is an error is the caller's question.
// Weights of linears may be in any format that ops::LinearSource names, norms
// bf16 or f32.
using TensorLookup = std::function<StatusOr<StoredView>(std::string_view name)>;

// The linear `name` ("layers.0.attn.wq_a") as a back end binds it, with its
// scale where the dtype has one. CKPT-007 when a part is missing, and what
// `lookup` says.
StatusOr<ops::LinearSource> LinearSourceOf(const spec::ModelConfig& config,
                                           const TensorLookup& lookup,
                                           const std::string& name);

// Called after each layer (load progress).
using BindProgress = std::function<void(int64_t done, int64_t total)>;

// Binds every weight of `rank`. The tensors behind `lookup` must outlive the
// result. Errors: CKPT-007 (missing), what the back end refuses (BACK-002),
// what `lookup` says.
StatusOr<std::unique_ptr<ModelWeights>> BindWeights(
    const spec::ModelConfig& config, const spec::Rank& rank,
    const TensorLookup& lookup, ops::Backend& backend,
    const BindProgress& progress = nullptr);

}  // namespace belay::model

#endif  // BELAY_MODEL_WEIGHTS_H_
