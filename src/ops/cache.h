// SPDX-License-Identifier: Apache-2.0
// Cache memory as operators see it. Rows are opaque bytes in one of a few
// formats; spec decides sizes and the model owns the memory.
#ifndef BELAY_OPS_CACHE_H_
#define BELAY_OPS_CACHE_H_

#include <cstddef>
#include <cstdint>

#include "tensor/view.h"

namespace belay::ops {

// Tokens in a page; a multiple of both compression ratios (4 and 128).
inline constexpr int kPageTokens = 128;

// How one cache row is stored.
enum class RowKind : uint8_t {
  // KV row: e4m3 codes of the nope dims, one e8m0 scale per `group` dims, then
  // bf16 rope dims. 448 + 7 + 128 = 583 bytes at head_dim 512. Lossless in the
  // official numerics, since the row was quantised in place before.
  kFp8Rope,
  // Indexer row: packed e2m1 codes (low nibble = even dim), then one e8m0 scale
  // per `group` dims. 64 + 4 = 68 bytes at 128 dims.
  kFp4,
  kBf16,  // dims in bf16 (Ascend A2 / A3)
  kF32,   // dims in float32 (exact numerics)
};

struct RowFormat {
  RowKind kind = RowKind::kF32;
  int head_dim = 0;  // all dims, rope included
  int rope_dim = 0;  // trailing dims kept in bf16; kFp8Rope only
  int group = 0;     // dims a scale

  constexpr size_t bytes() const {
    const auto n = static_cast<size_t>(head_dim);
    const auto rope = static_cast<size_t>(rope_dim);
    switch (kind) {
      case RowKind::kFp8Rope:
        return (n - rope) + (n - rope) / static_cast<size_t>(group) + 2 * rope;
      case RowKind::kFp4:
        return n / 2 + n / static_cast<size_t>(group);
      case RowKind::kBf16:
        return 2 * n;
      case RowKind::kF32:
        return 4 * n;
    }
    return 0;
  }
};

// The last rows of each sequence, a ring by position: the row of position p is
// at [slot, p % n_ring]. n_ring >= window + the most draft tokens that can be
// taken back. Operators read only positions >= 0 of the slot's own sequence, so
// a reused slot needs no clearing.
struct WindowCache {
  TensorView rows;  // [n_slots, n_ring, format.bytes()] u8
  RowFormat format;
};

// Compressed rows in pages: row j of a slot (tokens [ratio j, ratio j + ratio))
// is at [page_table[slot][j / rows_per_page], j % rows_per_page].
struct PagedCache {
  TensorView rows;  // [n_pages, rows_per_page, format.bytes()] u8
  RowFormat format;
  int ratio = 0;  // tokens a row; rows_per_page = kPageTokens / ratio
};

// The compressor's raw rows, before pooling: a ring by position, as
// WindowCache.
// [.., 0, :] is the kv projection, [.., 1, :] the score projection WITHOUT ape
// (ape is added when a block is pooled). n_ring >= the tokens that a row pools
// (8 for ratio 4 with overlap, 128 for ratio 128) + draft tokens.
struct CompressorState {
  TensorView raw;  // [n_slots, n_ring, 2, width] f32
};

}  // namespace belay::ops

#endif  // BELAY_OPS_CACHE_H_
