// SPDX-License-Identifier: Apache-2.0
#include "model/weights.h"

#include <utility>

#include "base/error_ids.h"
#include "spec/names.h"

namespace belay::model {
namespace {

namespace names = spec::names;

// A tensor that must be there.
StatusOr<StoredView> NeedTensor(const TensorLookup& lookup,
                                const std::string& name) {
  BELAY_ASSIGN_OR_RETURN(const StoredView view, lookup(name));
  if (view.empty()) {
    return MakeError(kCkptMissingTensor,
                     {.where = name, .what = "", .expected = "", .got = ""});
  }
  return view;
}

// Binds one layer after another under a name prefix.
class Binder {
 public:
  Binder(const spec::ModelConfig& config, const spec::Rank& rank,
         const TensorLookup& lookup, ops::Backend& backend)
      : c_(config), rank_(rank), lookup_(lookup), be_(backend) {}

  StatusOr<StoredView> Need(const std::string& name) const {
    return NeedTensor(lookup_, name);
  }

  Status Tensor(const std::string& name, ConstTensorView& out) const {
    BELAY_ASSIGN_OR_RETURN(const StoredView stored, Need(name));
    if (stored.format != BlockFormat::kNone) {
      return MakeError(kCkptWrongDtype,
                       {.where = name,
                        .what = "",
                        .expected = "BF16 or F32",
                        .got = std::string(BlockFormatName(stored.format))});
    }
    BELAY_ASSIGN_OR_RETURN(out, be_.BindTensor(stored.view));
    return absl::OkStatus();
  }

  Status Embedding(StoredView& out) const {
    BELAY_ASSIGN_OR_RETURN(out,
                           Need(std::string(names::kEmbed) + names::kWeight));
    BELAY_ASSIGN_OR_RETURN(out.view, be_.BindTensor(out.view));
    return absl::OkStatus();
  }

  StatusOr<ops::LinearSource> Source(const std::string& name) const {
    return LinearSourceOf(c_, lookup_, name);
  }

  Status BindLinear(const std::string& name, Linear& out,
                    bool quantise_input = true) const {
    BELAY_ASSIGN_OR_RETURN(ops::LinearSource source, Source(name));
    source.quantise_input = quantise_input;
    auto bound = be_.BindLinear(source);
    if (!bound.ok()) return WithContext(bound.status(), name);
    out = std::move(bound).value();
    return absl::OkStatus();
  }

  Status Hc(const std::string& name, ops::HcWeights& out) const {
    BELAY_RETURN_IF_ERROR(Tensor(name + names::kHcFn, out.fn));
    BELAY_RETURN_IF_ERROR(Tensor(name + names::kHcBase, out.base));
    return Tensor(name + names::kHcScale, out.scale);
  }

  Status Compressor(const std::string& name, CompressorWeights& out) const {
    BELAY_RETURN_IF_ERROR(BindLinear(name + names::kCompressorWkv, out.wkv));
    BELAY_RETURN_IF_ERROR(
        BindLinear(name + names::kCompressorWgate, out.wgate));
    BELAY_RETURN_IF_ERROR(Tensor(name + names::kCompressorApe, out.ape));
    return Tensor(name + names::kCompressorNorm, out.norm);
  }

  Status Attention(const std::string& layer, int ratio,
                   AttentionWeights& out) const {
    BELAY_RETURN_IF_ERROR(Tensor(layer + names::kAttnNorm, out.norm));
    BELAY_RETURN_IF_ERROR(BindLinear(layer + names::kWqA, out.wq_a));
    BELAY_RETURN_IF_ERROR(Tensor(layer + names::kQNorm, out.q_norm));
    BELAY_RETURN_IF_ERROR(BindLinear(layer + names::kWqB, out.wq_b));
    BELAY_RETURN_IF_ERROR(BindLinear(layer + names::kWkv, out.wkv));
    BELAY_RETURN_IF_ERROR(Tensor(layer + names::kKvNorm, out.kv_norm));
    BELAY_RETURN_IF_ERROR(Tensor(layer + names::kSink, out.sink));
    BELAY_RETURN_IF_ERROR(
        BindLinear(layer + names::kWoA, out.wo_a, /*quantise_input=*/false));
    BELAY_RETURN_IF_ERROR(BindLinear(layer + names::kWoB, out.wo_b));
    if (ratio == 0) return absl::OkStatus();
    BELAY_RETURN_IF_ERROR(
        Compressor(layer + names::kCompressor, out.compressor));
    if (ratio != 4) return absl::OkStatus();
    BELAY_RETURN_IF_ERROR(
        BindLinear(layer + names::kIndexerWqB, out.index_wq_b));
    BELAY_RETURN_IF_ERROR(
        BindLinear(layer + names::kIndexerWeights, out.index_weights_proj));
    return Compressor(layer + names::kIndexerCompressor, out.index_compressor);
  }

  StatusOr<ops::ExpertSource> Expert(const std::string& name) const {
    ops::ExpertSource source;
    BELAY_ASSIGN_OR_RETURN(source.w1, Source(name + names::kW1));
    BELAY_ASSIGN_OR_RETURN(source.w2, Source(name + names::kW2));
    BELAY_ASSIGN_OR_RETURN(source.w3, Source(name + names::kW3));
    return source;
  }

  Status Moe(const std::string& layer, bool is_hash, MoeWeights& out) const {
    BELAY_RETURN_IF_ERROR(Tensor(layer + names::kFfnNorm, out.norm));
    BELAY_RETURN_IF_ERROR(BindLinear(layer + names::kGate, out.gate));
    BELAY_RETURN_IF_ERROR(is_hash ? Tensor(layer + names::kGateTable, out.table)
                                  : Tensor(layer + names::kGateBias, out.bias));
    const int64_t n_local = c_.n_routed_experts / rank_.ep;
    const int64_t first = n_local * rank_.ep_rank;
    std::vector<ops::ExpertSource> sources;
    for (int64_t e = first; e < first + n_local; ++e) {
      BELAY_ASSIGN_OR_RETURN(sources.emplace_back(),
                             Expert(layer + names::ExpertPrefix(e)));
    }
    BELAY_ASSIGN_OR_RETURN(out.experts, be_.BindExperts(sources, first));
    BELAY_ASSIGN_OR_RETURN(const ops::ExpertSource shared,
                           Expert(layer + names::kSharedExpert));
    BELAY_ASSIGN_OR_RETURN(out.shared, be_.BindExperts({&shared, 1}, 0));
    return absl::OkStatus();
  }

  Status Layer(const std::string& prefix, int64_t index,
               const ModelWeights& model, LayerWeights& out) const {
    out.ratio = c_.compress_ratios[static_cast<size_t>(index)];
    out.rope = out.ratio == 0 ? &model.rope_main : &model.rope_compressed;
    BELAY_RETURN_IF_ERROR(Hc(prefix + names::kHcAttn, out.hc_attn));
    BELAY_RETURN_IF_ERROR(Attention(prefix, out.ratio, out.attn));
    BELAY_RETURN_IF_ERROR(Hc(prefix + names::kHcFfn, out.hc_ffn));
    return Moe(prefix, c_.is_hash(index), out.moe);
  }

  Status Mtp(int64_t index, const ModelWeights& model, MtpWeights& out) const {
    const std::string prefix = names::MtpPrefix(index);
    BELAY_RETURN_IF_ERROR(Tensor(prefix + names::kMtpENorm, out.enorm));
    BELAY_RETURN_IF_ERROR(Tensor(prefix + names::kMtpHNorm, out.hnorm));
    BELAY_RETURN_IF_ERROR(BindLinear(prefix + names::kMtpEProj, out.e_proj));
    BELAY_RETURN_IF_ERROR(BindLinear(prefix + names::kMtpHProj, out.h_proj));
    BELAY_RETURN_IF_ERROR(Layer(prefix, c_.n_layers + index, model, out.block));
    BELAY_RETURN_IF_ERROR(Hc(prefix + names::kHcHead, out.hc_head));
    return Tensor(prefix + names::kNorm, out.norm);
  }

  Status Globals(ModelWeights& out) const {
    out.rope_main_freq = spec::RopeFrequencies(c_, /*compressed=*/false);
    out.rope_compressed_freq = spec::RopeFrequencies(c_, /*compressed=*/true);
    BELAY_RETURN_IF_ERROR(Rope(out.rope_main_freq, out.rope_main));
    BELAY_RETURN_IF_ERROR(Rope(out.rope_compressed_freq, out.rope_compressed));
    BELAY_RETURN_IF_ERROR(Embedding(out.embed));
    out.first_vocab_row = c_.vocab_size / rank_.tp * rank_.tp_rank;
    BELAY_RETURN_IF_ERROR(Hc(names::kHcHead, out.hc_head));
    BELAY_RETURN_IF_ERROR(Tensor(names::kNorm, out.norm));
    return BindLinear(names::kHead, out.head);
  }

 private:
  Status Rope(const std::vector<float>& freq, ops::RopeTable& out) const {
    const ConstTensorView host(freq.data(), DType::kF32,
                               {static_cast<int64_t>(freq.size())});
    BELAY_ASSIGN_OR_RETURN(out.freq, be_.BindTensor(host));
    return absl::OkStatus();
  }

  const spec::ModelConfig& c_;
  const spec::Rank& rank_;
  const TensorLookup& lookup_;
  ops::Backend& be_;
};

}  // namespace

StatusOr<ops::LinearSource> LinearSourceOf(const spec::ModelConfig& config,
                                           const TensorLookup& lookup,
                                           const std::string& name) {
  ops::LinearSource source;
  BELAY_ASSIGN_OR_RETURN(const StoredView stored,
                         NeedTensor(lookup, name + names::kWeight));
  source.weight = stored.view;
  source.format = stored.format;
  source.packed = stored.packed;
  const DType dtype = source.weight.dtype();
  if (dtype == DType::kF8E4M3 || dtype == DType::kI8) {
    BELAY_ASSIGN_OR_RETURN(const StoredView scale,
                           NeedTensor(lookup, name + names::kScale));
    source.scale = scale.view;
  }
  const bool fp4 = dtype == DType::kI8;
  source.block_n = fp4 ? 1 : config.fp8_block;
  source.block_k = fp4 ? config.fp4_block : config.fp8_block;
  return source;
}

StatusOr<std::unique_ptr<ModelWeights>> BindWeights(
    const spec::ModelConfig& config, const spec::Rank& rank,
    const TensorLookup& lookup, ops::Backend& backend,
    const BindProgress& progress) {
  const Binder binder(config, rank, lookup, backend);
  auto weights = std::make_unique<ModelWeights>();
  BELAY_RETURN_IF_ERROR(binder.Globals(*weights));
  const int64_t total = config.n_layers + config.n_mtp_layers;
  const auto report = [&](int64_t done) {
    if (progress) progress(done, total);
  };
  weights->layers.resize(static_cast<size_t>(config.n_layers));
  for (int64_t i = 0; i < config.n_layers; ++i) {
    BELAY_RETURN_IF_ERROR(
        binder.Layer(names::LayerPrefix(i), i, *weights,
                     weights->layers[static_cast<size_t>(i)]));
    report(i + 1);
  }
  weights->mtp.resize(static_cast<size_t>(config.n_mtp_layers));
  for (int64_t i = 0; i < config.n_mtp_layers; ++i) {
    BELAY_RETURN_IF_ERROR(
        binder.Mtp(i, *weights, weights->mtp[static_cast<size_t>(i)]));
    report(config.n_layers + i + 1);
  }
  return weights;
}

}  // namespace belay::model
