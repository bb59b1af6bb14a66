// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/workspace.h"

#include <algorithm>
#include <initializer_list>

#include "kernels/attention_bf16.h"
#include "kernels/matmul.h"

namespace belay::cpu {
namespace {

// Bytes of pieces of the given numbers of 4-byte elements, each aligned as
// Scratch does it.
size_t Pieces(std::initializer_list<int64_t> n_elements) {
  size_t bytes = 0;
  for (const int64_t n : n_elements) {
    bytes += AlignUp(static_cast<size_t>(n) * 4, kBufferAlignment);
  }
  return bytes;
}

// Bytes of a row that any kernel has packed: float32 takes most, but for the
// cache line by which others keep their rows apart.
size_t PackedBytes(int64_t n_cols) {
  return kernels::F32MatMul().packed_bytes(n_cols) + 64;
}

int64_t WidestInput(const ops::OpLimits& l) {
  return std::max({l.dim * l.hc_mult, l.q_lora_rank, l.n_heads * l.head_dim,
                   l.o_mid, l.moe_inter});
}

// The pairs of a pass over the experts and everything that belongs to them.
size_t ExpertBytes(const ops::OpLimits& l) {
  const int64_t tokens = std::min(l.n_tokens, kExpertTokens);
  // The shared expert is a pass of one pair a token.
  const int64_t pairs = tokens * std::max<int64_t>(1, l.n_experts_per_token);
  const int64_t experts = std::max<int64_t>(1, l.n_experts);
  const auto packed = [](int64_t n) {
    return static_cast<int64_t>(PackedBytes(n) / 4);
  };
  return Pieces({pairs, pairs, pairs, experts + 1, experts,
                 tokens * packed(l.dim), pairs * packed(l.moe_inter),
                 pairs * l.dim});
}

}  // namespace

WorkspaceSizes SizesFor(const ops::Numerics& numerics, const ops::OpLimits& l) {
  WorkspaceSizes sizes;
  const int64_t widest = WidestInput(l);
  const int64_t chunk = std::min(l.n_tokens, kTokenChunk);
  // AttentionOut packs each group of heads with a padding of its own.
  const size_t heads = static_cast<size_t>(l.n_heads) *
                       PackedBytes(std::max<int64_t>(1, l.head_dim));
  sizes.packed =
      AlignUp(static_cast<size_t>(chunk) * std::max(PackedBytes(widest), heads),
              kBufferAlignment);
  sizes.panel = AlignUp(kernels::PanelBytes(widest), kBufferAlignment);

  // At ratio 4, kIndexTokens tokens; with more rows, fewer tokens.
  constexpr auto kTile = static_cast<int64_t>(kernels::kTileRows);
  sizes.index_score_floats = (std::max<int64_t>(1, l.n_context) / 4 + kTile) /
                             kTile * kTile * kIndexTokens;
  const int64_t n_mixes = int64_t{2 + l.hc_mult} * l.hc_mult;
  sizes.shared = std::max(
      {Pieces({l.n_tokens * n_mixes}), Pieces({l.dim}),
       Pieces({l.n_tokens * l.head_dim, l.head_dim}),  // KvProject
       Pieces({std::max({l.q_lora_rank, l.head_dim, l.index_dim})}),
       Pieces({l.n_tokens * l.n_index_heads * l.index_dim,
               l.n_tokens * l.n_index_heads,
               l.n_tokens * l.n_index_heads * l.index_dim / 2,  // as bf16
               sizes.index_score_floats}),
       ExpertBytes(l)});

  const int64_t group = std::min(l.n_heads, kMaxHeadGroup);
  const int64_t tile = numerics.attention_tile;
  sizes.thread = std::max(
      {Pieces({widest}),
       Pieces({l.dim * l.hc_mult, l.dim, l.dim, l.hc_mult}),  // hyper.cc
       Pieces({tile * l.head_dim, tile, group * l.head_dim, group * l.head_dim,
               2 * group}),  // attention.cc
       Pieces({tile * l.head_dim / 2 + 1, l.head_dim, group * kTile,
               group * kTile / 2, group * l.head_dim, group, 2 * group}),
       Pieces({kTile * l.index_dim, kTile * l.index_dim}),  // ScoreIn...
       Pieces({2 * l.index_topk}),                          // SelectTop
       Pieces({kExpertChunk * kExpertRows, kExpertChunk * kExpertRows}),
       Pieces({l.n_experts, l.n_experts}),             // Route
       Pieces({l.vocab, 2 * l.vocab, 2 * l.vocab})});  // Sample
  return sizes;
}

}  // namespace belay::cpu
