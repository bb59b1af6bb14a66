// SPDX-License-Identifier: Apache-2.0
#include "model/forward.h"

#include <algorithm>

namespace belay::model {
namespace {

// One pass: the borrowed context, this step's views, and one function a box of
// the paper's figure.
class Pass {
 public:
  Pass(const Context& ctx, const StepPlan& plan)
      : c_(*ctx.config),
        w_(*ctx.weights),
        be_(*ctx.backend),
        comm_(*ctx.communicator),
        hooks_(*ctx.hooks),
        batch_(plan.batch),
        logit_rows_(plan.logit_rows),
        caches_(ctx.state->caches),
        a_(ctx.state->activations.ForTokens(plan.batch.n_tokens,
                                            plan.logit_rows.n_rows())) {}

  void Embed(TensorView h) {
    be_.Embed({batch_.token_ids, w_.embed, w_.first_vocab_row, h});
    comm_.AllReduceSum(h);
  }

  void Layer(int layer, const LayerWeights& w) {
    HcPre(w.hc_attn);
    Attention(layer, w);
    HcPost();
    HcPre(w.hc_ffn);
    Moe(layer, w.moe);
    HcPost();
  }

  void Hidden(int layer) { hooks_.Hidden(layer, a_.h); }

  // Streams -> one vector, norm, vocabulary.
  void Head(const ops::HcWeights& hc, ConstTensorView norm) {
    if (logit_rows_.n_rows() == 0) return;
    be_.GatherRows({a_.h, logit_rows_, a_.head_h});
    be_.HcHead({a_.head_h, hc, c_.hc_eps, c_.norm_eps, a_.head_x});
    be_.RmsNorm({a_.head_x, norm, a_.head_x, c_.norm_eps});
    be_.Logits({w_.head.get(), a_.head_x, a_.logits_local});
    comm_.AllGatherColumns(a_.logits_local, a_.logits);
  }

  // The streams of the logit rows before become those of this pass, whose rows
  // are all wanted: their list is 0, 1, ...
  void TakeHeadStreams() { be_.GatherRows({a_.head_h, logit_rows_, a_.h}); }

  // h = e_proj(enorm(embed(ids))) + h_proj(hnorm(h)), e to every stream.
  void MtpInput(const MtpWeights& w) {
    const Shape flat{batch_.n_tokens, 1, c_.dim};
    Embed(a_.x.reshaped(flat));
    be_.RmsNorm({a_.x, w.enorm, a_.x, c_.norm_eps});
    be_.Linear({w.e_proj.get(), a_.x, a_.y});
    const int64_t n_streams = batch_.n_tokens * c_.hc_mult;
    const TensorView h = a_.h.reshaped({n_streams, c_.dim});
    const TensorView hp = a_.h_next.reshaped({n_streams, c_.dim});
    be_.RmsNorm({h, w.hnorm, h, c_.norm_eps});
    for (int64_t row = 0; row < n_streams; row += batch_.n_tokens) {
      be_.Linear({w.h_proj.get(), h.rows(row, batch_.n_tokens),
                  hp.rows(row, batch_.n_tokens)});
    }
    be_.AddBroadcast({a_.y, a_.h_next, a_.h});
  }

 private:
  void HcPre(const ops::HcWeights& w) {
    be_.HcPre({a_.h, w, c_.hc_sinkhorn_iters, c_.hc_eps, c_.norm_eps, a_.x,
               a_.post, a_.comb});
  }

  void HcPost() { be_.HcPost({a_.h, a_.y, a_.post, a_.comb, a_.h}); }

  void Attention(int layer, const LayerWeights& layer_weights) {
    const AttentionWeights& w = layer_weights.attn;
    const ops::RopeTable& rope = *layer_weights.rope;
    const LayerCaches& cache = caches_.layers[static_cast<size_t>(layer)];
    be_.RmsNorm({a_.x, w.norm, a_.xn, c_.norm_eps});
    be_.QueryProject({a_.xn, w.wq_a.get(), w.q_norm, w.wq_b.get(),
                      c_.q_head_norm, rope, batch_.positions, a_.qr, a_.q});
    be_.KvProject({a_.xn, w.wkv.get(), w.kv_norm, rope, batch_.positions,
                   cache.window.format, a_.fresh});
    ConstTensorView selection;
    if (layer_weights.ratio != 0) {
      hooks_.Compressed(layer, /*index=*/false,
                        Compress(layer_weights, w.compressor, cache.state,
                                 cache.compressed, /*hadamard=*/false));
      if (w.index_wq_b != nullptr) selection = Select(layer, layer_weights);
    }
    be_.SparseAttention({batch_, a_.q, w.sink, a_.fresh, cache.window,
                         static_cast<int>(c_.window_size), cache.compressed,
                         selection, a_.o});
    hooks_.Window(layer, a_.fresh);
    be_.KvStore({batch_, a_.fresh, cache.window});
    be_.RopeTail({batch_.positions, rope, /*inverse=*/true, a_.o});
    be_.AttentionOut({a_.o.reshaped({batch_.n_tokens, a_.o.row_elements()}),
                      w.wo_a.get(), a_.n_groups, w.wo_b.get(), a_.mid, a_.y});
    comm_.AllReduceSum(a_.y);
  }

  // The raw rows of this step.
  TensorView Compress(const LayerWeights& layer, const CompressorWeights& w,
                      const ops::CompressorState& state,
                      const ops::PagedCache& cache, bool hadamard) {
    const TensorView raw =
        a_.raw.reshaped({batch_.n_tokens, 2, state.raw.dim(3)});
    be_.KvCompress({batch_, a_.xn, w.view(), /*overlap=*/layer.ratio == 4,
                    hadamard, *layer.rope, state, cache, raw});
    return raw;
  }

  ConstTensorView Select(int layer, const LayerWeights& layer_weights) {
    const AttentionWeights& w = layer_weights.attn;
    const LayerCaches& cache = caches_.layers[static_cast<size_t>(layer)];
    hooks_.Compressed(layer, /*index=*/true,
                      Compress(layer_weights, w.index_compressor,
                               cache.index_state, cache.index_keys,
                               /*hadamard=*/true));
    be_.IndexerSelect(
        {batch_, a_.xn, a_.qr, w.index_wq_b.get(), w.index_weights_proj.get(),
         static_cast<int>(c_.index_n_heads),
         static_cast<int>(c_.index_head_dim), *layer_weights.rope,
         cache.index_keys, a_.selection, hooks_.WantIndexScores(layer)});
    hooks_.Selected(layer, a_.selection);
    return a_.selection;
  }

  void Moe(int layer, const MoeWeights& w) {
    be_.RmsNorm({a_.x, w.norm, a_.xn, c_.norm_eps});
    const bool forced = hooks_.ForceExperts(layer, a_.experts);
    const ops::RouteBy by = forced            ? ops::RouteBy::kForced
                            : w.table.empty() ? ops::RouteBy::kScore
                                              : ops::RouteBy::kTable;
    be_.Route({a_.xn, w.gate.get(), by, w.bias, w.table, batch_.token_ids,
               c_.route_scale, a_.experts, a_.expert_weights, a_.gate_logits,
               hooks_.WantRouteScores(layer)});
    hooks_.Routed(layer, a_.experts, a_.expert_weights);
    be_.RoutedExperts({a_.xn, w.experts.get(), a_.experts, a_.expert_weights,
                       c_.swiglu_limit, a_.acc});
    comm_.AllReduceSum(a_.acc);
    be_.SharedExpert({a_.xn, w.shared.get(), c_.swiglu_limit, a_.acc, a_.y});
  }

  const spec::ModelConfig& c_;
  const ModelWeights& w_;
  ops::Backend& be_;
  ops::Communicator& comm_;
  Hooks& hooks_;
  const ops::BatchView& batch_;
  const ConstTensorView logit_rows_;
  const Caches& caches_;
  const Activations a_;
};

}  // namespace

void Forward(const Context& ctx, const StepPlan& plan) {
  Pass pass(ctx, plan);
  pass.Embed(ctx.state->activations.ForTokens(plan.batch.n_tokens, 0).h);
  const auto& layers = ctx.weights->layers;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    pass.Hidden(static_cast<int>(layer));
    pass.Layer(static_cast<int>(layer), layers[layer]);
  }
  pass.Hidden(static_cast<int>(layers.size()));
  pass.Head(ctx.weights->hc_head, ctx.weights->norm);
}

namespace {

void RunMtp(Pass& pass, const Context& ctx, int index) {
  const MtpWeights& w = ctx.weights->mtp[static_cast<size_t>(index)];
  pass.MtpInput(w);
  pass.Layer(static_cast<int>(ctx.weights->layers.size()) + index, w.block);
  pass.Head(w.hc_head, w.norm);
}

}  // namespace

void ForwardMtp(const Context& ctx, int index, const StepPlan& plan) {
  Pass pass(ctx, plan);
  RunMtp(pass, ctx, index);
}

void ContinueMtp(const Context& ctx, int index, const StepPlan& plan) {
  Pass pass(ctx, plan);
  pass.TakeHeadStreams();
  RunMtp(pass, ctx, index);
}

}  // namespace belay::model
