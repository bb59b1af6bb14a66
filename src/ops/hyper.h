// SPDX-License-Identifier: Apache-2.0
// Embedding, hyper-connections, the head.
// Source: DeepSeek-V4 inference/model.py (ParallelEmbedding, hc_pre, hc_post,
// hc_head, ParallelHead), kernel.py (hc_split_sinkhorn).
#ifndef BELAY_OPS_HYPER_H_
#define BELAY_OPS_HYPER_H_

#include <cstdint>

#include "ops/linear.h"
#include "tensor/block_format.h"
#include "tensor/view.h"

namespace belay::ops {

// h[t, s, :] = table[id[t] - first_id] for every stream s; zero when the id is
// not in [first_id, first_id + n_rows): the sum over ranks is the embedding.
struct EmbedParams {
  ConstTensorView token_ids;  // [n_tokens] i32
  StoredView table;      // [n_rows, dim] bf16, f16, f32 or blocks; this rank's
  int64_t first_id = 0;  // id of the first row
  TensorView h;          // [n_tokens, hc_mult, dim] bf16 or f32
};

// The weights of one hyper-connection site.
struct HcWeights {
  ConstTensorView fn;  // [(2 + hc) * hc, hc * dim] f32; hc_head: [hc, hc * dim]
  ConstTensorView base;   // [(2 + hc) * hc] f32;           hc_head: [hc]
  ConstTensorView scale;  // [3] f32 (pre, post, comb);     hc_head: [1]
};

// mixes = (flat(h) fn^T) * rsqrt(mean(flat(h)^2) + norm_eps); flat(h) is
// [hc*dim] f32. pre_j = sigmoid(m_j * s0 + b_j) + hc_eps; post_j = 2 sigmoid(m
// * s1 + b); comb [hc, hc] = row softmax of (m * s2 + b) + hc_eps, then /
// (column sum + hc_eps), then (n_iters - 1) times { / (row sum + hc_eps), /
// (column sum + hc_eps) }. x = sum_j pre_j h_j, rounded once.
struct HcPreParams {
  ConstTensorView h;  // [n_tokens, hc, dim] bf16 or f32
  HcWeights weights;
  int sinkhorn_iters = 20;
  float hc_eps = 1e-6f;
  float norm_eps = 1e-6f;
  TensorView x;     // [n_tokens, dim] h's dtype
  TensorView post;  // [n_tokens, hc] f32
  TensorView comb;  // [n_tokens, hc, hc] f32
};

// h_out[k] = post_k * y + sum_j comb[j][k] * h_j in f32, rounded once: the
// COLUMN index of comb is the output stream.
struct HcPostParams {
  ConstTensorView h;     // [n_tokens, hc, dim] bf16 or f32
  ConstTensorView y;     // [n_tokens, dim] h's dtype: the sublayer's output
  ConstTensorView post;  // [n_tokens, hc] f32
  ConstTensorView comb;  // [n_tokens, hc, hc] f32
  TensorView h_out;      // [n_tokens, hc, dim]; may alias h
};

// x = sum_j pre_j h_j with pre = sigmoid(m * scale + base) + hc_eps, m as in
// HcPre: no sinkhorn.
struct HcHeadParams {
  ConstTensorView h;  // [n_rows, hc, dim] bf16 or f32
  HcWeights weights;  // the [hc, hc * dim] form
  float hc_eps = 1e-6f;
  float norm_eps = 1e-6f;
  TensorView x;  // [n_rows, dim] h's dtype
};

// Copies rows of h: the tokens whose logits are wanted.
struct GatherRowsParams {
  ConstTensorView src;   // [n_src, ...] any dtype, contiguous rows
  ConstTensorView rows;  // [n_rows] i32, each in [0, n_src)
  TensorView dst;        // [n_rows, ...] src's dtype; must not alias src
};

// logits = x W^T in f32, W widened (the official head holds f32 weights). No
// activation quantisation.
struct LogitsParams {
  const BoundLinear* weight = nullptr;  // [n_vocab_rows, dim], this rank's rows
  ConstTensorView x;                    // [n_rows, dim] bf16 or f32
  TensorView logits;                    // [n_rows, n_vocab_rows] f32
};

// MTP input: h_out[t, s, :] = round(e[t, :] + hp[t, s, :]) (e_proj of the
// normed embedding, broadcast over streams, plus h_proj of the normed hidden
// state).
struct AddBroadcastParams {
  ConstTensorView e;   // [n_tokens, dim] bf16 or f32
  ConstTensorView hp;  // [n_tokens, hc, dim] e's dtype
  TensorView h_out;    // [n_tokens, hc, dim]; may alias hp
};

}  // namespace belay::ops

#endif  // BELAY_OPS_HYPER_H_
