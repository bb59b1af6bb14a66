// SPDX-License-Identifier: Apache-2.0
// Attention over a sliding window and compressed rows.
// Source: DeepSeek-V4 inference/model.py (Attention, Compressor, Indexer,
// apply_rotary_emb, precompute_freqs_cis), kernel.py (sparse_attn, act_quant,
// fp4_act_quant).
#ifndef BELAY_OPS_ATTENTION_H_
#define BELAY_OPS_ATTENTION_H_

#include <cstdint>

#include "ops/batch.h"
#include "ops/cache.h"
#include "ops/linear.h"
#include "tensor/view.h"

namespace belay::ops {

// Rotary embedding of the LAST rope_dim dims, adjacent pairs (2i, 2i + 1),
// angle = fl(position * freq[i]); a' = a cos - b sin, b' = a sin + b cos in
// f32, rounded once.
struct RopeTable {
  ConstTensorView freq;  // [rope_dim / 2] f32, YaRN already applied
};

// Rotates in place. `inverse` uses the conjugate.
struct RopeTailParams {
  ConstTensorView positions;  // [n_tokens] i32
  RopeTable rope;
  bool inverse = false;
  TensorView x;  // [n_tokens, n_heads, head_dim] bf16 or f32, in place
};

// qr = rmsnorm(wq_a x); q = wq_b qr as heads; with head_norm each head is
// divided by its RMS, official: in bf16 steps u = bf(q^2), v = bf(mean u), v =
// bf(v + eps), r = bf(rsqrt v), q = bf(q r), all dims; then rope.
struct QueryProjectParams {
  ConstTensorView x;  // [n_tokens, dim] bf16 or f32: the normed layer input
  const BoundLinear* wq_a = nullptr;  // [q_lora, dim]
  ConstTensorView q_norm;             // [q_lora] bf16 or f32
  const BoundLinear* wq_b = nullptr;  // [n_heads * head_dim, q_lora]
  bool head_norm = true;
  RopeTable rope;
  ConstTensorView positions;  // [n_tokens] i32
  TensorView qr;              // [n_tokens, q_lora] out: the indexer needs it
  TensorView q;               // [n_tokens, n_heads, head_dim] out
};

// row = rmsnorm(wkv x); rope; encoded in `format` (official: act_quant in place
// of the nope dims in groups of 64 = the FP8 codes and scales of the row; kBf16
// and kF32 rows hold the values that these stand for).
struct KvProjectParams {
  ConstTensorView x;                 // [n_tokens, dim]
  const BoundLinear* wkv = nullptr;  // [head_dim, dim]
  ConstTensorView kv_norm;           // [head_dim] bf16 or f32
  RopeTable rope;
  ConstTensorView positions;  // [n_tokens] i32
  RowFormat format;
  TensorView fresh;  // [n_tokens, format.bytes()] u8 out
};

// Copies the last min(n_tokens, n_ring) fresh rows of every span to the ring.
// Runs after SparseAttention, which still wants the rows that these replace.
struct KvStoreParams {
  BatchView batch;
  ConstTensorView fresh;  // [n_tokens, format.bytes()] u8
  WindowCache window;
};

struct CompressorWeights {
  const BoundLinear* wkv = nullptr;    // [width, dim] bf16, f32 product
  const BoundLinear* wgate = nullptr;  // [width, dim] bf16, f32 product
  ConstTensorView ape;                 // [ratio, width] f32
  ConstTensorView norm;                // [head_dim] bf16 or f32
};

// Pools finished blocks. raw = (wkv x, wgate x) in f32 for every token. Row j
// is made when the span brings position (j + 1) * ratio - 1. Without overlap
// (ratio 128, width = head_dim): per channel, softmax over the block of score +
// ape[pos % ratio], row = sum kv * p. With overlap (ratio 4, width = 2
// head_dim): 8 slots, the FIRST half channels of tokens 4j-4 .. 4j-1 and the
// SECOND half of 4j .. 4j+3; for j = 0 the missing four weigh exactly 0. Then
// bf16, rmsnorm, rope at position j * ratio, and the encoding of cache.format
// (KV rows as KvProject; with `hadamard`, the indexer's rows: Hadamard
// transform as in IndexerSelect, then fp4_act_quant, as kFp4 codes or in place;
// in exact numerics the values as they are). Tokens before the span come from
// `state`; afterwards the span's last min(n_tokens, n_ring) raw rows go there.
struct KvCompressParams {
  BatchView batch;
  ConstTensorView x;  // [n_tokens, dim]
  CompressorWeights weights;
  bool overlap = false;
  bool hadamard = false;  // an indexer row; always so for kFp4
  RopeTable rope;
  CompressorState state;
  PagedCache cache;
  TensorView raw;  // [n_tokens, 2, width] f32 scratch
};

// For every token the compressed rows to attend to. q = wq_b qr, rope, Hadamard
// (natural order, f32, * fl(d^-0.5), rounded once), fp4_act_quant in groups of
// 32. w = bf(bf(weights_proj x) * fl(d^-0.5 H^-0.5)). score(j) = bf(sum_h
// bf(relu(bf(q_h . k_j)) * w_h)) over rows j < (pos + 1) / ratio. The k best,
// highest first, ties to the lower row; -1 where there are fewer.
struct IndexerSelectParams {
  BatchView batch;
  ConstTensorView x;                  // [n_tokens, dim]
  ConstTensorView qr;                 // [n_tokens, q_lora]
  const BoundLinear* wq_b = nullptr;  // [n_index_heads * index_dim, q_lora]
  const BoundLinear* weights_proj = nullptr;  // [n_index_heads, dim] bf16
  int n_index_heads = 0;
  int index_dim = 0;
  RopeTable rope;
  PagedCache keys;       // kFp4 or kF32 rows of index_dim
  TensorView selection;  // [n_tokens, index_topk] i32 out, compressed row ids
  // [n_tokens, n_rows] f32 out, -inf = not visible, n_rows >= the rows of the
  // longest sequence; only for tests, empty on the usual path.
  TensorView scores;
};

// o = softmax(q k^T * fl(head_dim^-0.5), with a sink) v over candidates in
// order: `window` slots of positions pos - window + 1 .. pos (those < 0 masked,
// at the end of the window's slots), then compressed rows: `selection` when
// given, else rows 0 .. (pos + 1) / ratio - 1. K = V = the row. Official: tiles
// of 64 candidates; s = fl(fl(q.k) * scale); m = max(m, s); p = exp(s - m); l =
// l r + sum p (p unrounded); acc = acc r + sum bf(p) v; at the end l +=
// exp(sink - m), o = bf(acc / l). Rows of the span come from `fresh`, older
// ones from `window`. Masked slots (also -1 anywhere in `selection`) keep their
// place in the tiles; the window has window_size slots in every case, and 0
// means no window. o = 0 when every candidate is masked.
struct SparseAttentionParams {
  BatchView batch;
  ConstTensorView q;      // [n_tokens, n_heads, head_dim]
  ConstTensorView sink;   // [n_heads] f32
  ConstTensorView fresh;  // [n_tokens, row bytes] u8
  WindowCache window;
  int window_size = 128;      // positions, the own one included
  PagedCache compressed;      // ratio 0: none
  ConstTensorView selection;  // [n_tokens, k] i32, -1 = none; empty: all rows
  TensorView o;               // [n_tokens, n_heads, head_dim] q's dtype
};

// Inverse rope was done. Per group g: a_g = round(wo_a_g o_g) (no activation
// quantisation); y = wo_b concat(a), an FP8 linear.
struct AttentionOutParams {
  ConstTensorView o;                  // [n_tokens, n_heads * head_dim]
  const BoundLinear* wo_a = nullptr;  // [n_groups * o_lora, n_heads*head_dim /
                                      // n_groups] quantise_input false; group g
                                      // = rows g * o_lora ..
  int n_groups = 1;
  const BoundLinear* wo_b = nullptr;  // [dim, n_groups * o_lora]
  TensorView mid;                     // [n_tokens, n_groups * o_lora] scratch
  TensorView y;                       // [n_tokens, dim] out
};

}  // namespace belay::ops

#endif  // BELAY_OPS_ATTENTION_H_
