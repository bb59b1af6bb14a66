// SPDX-License-Identifier: Apache-2.0
// Cache memory as operators see it. Rows are opaque bytes in one of a few
// formats; spec decides sizes and the model owns the memory.
#ifndef BELAY_OPS_CACHE_H_
#define BELAY_OPS_CACHE_H_

#include <cstddef>
#include <cstdint>

#include "tensor/row_format.h"
#include "tensor/view.h"

namespace belay::ops {

using belay::kPageTokens;
using belay::RowFormat;
using belay::RowKind;

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
