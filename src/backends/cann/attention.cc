// SPDX-License-Identifier: Apache-2.0
// SparseAttention: window rows, then compressed rows, with a sink.
//
// The window of consecutive tokens is a view: row i of a table of the span's
// rows, oldest first, begins token i's window, so that keys [n, window, dim]
// are the table with the stride of one row between tokens. Only while a
// sequence is younger than its window do all tokens begin at row 0.
#include <algorithm>
#include <cmath>

#include "backends/cann/backend.h"

namespace belay::cann {

// What the tokens of a span choose from.
struct Candidates {
  Array window;  // [n_old + n_tokens, dim]: rows before the span, its own
  int64_t n_old = 0;
  Array compressed;  // [n, dim]: all compressed rows; empty with a selection
  Array cache;       // [rows of all pages, dim]: with a selection
  int64_t n_compressed = 0;  // places of each token behind the window's
};

namespace {

// Scores and selected rows of as many tokens at once as this memory holds.
constexpr int64_t kChunkBytes = int64_t{48} << 20;
constexpr int64_t kCompressedStep = 64;

int64_t RoundUp(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

// score += kMasked where row * step > position + slack, for all heads; score
// [n, heads, m], positions [n].
void MaskLater(Compute& c, const Array& score, const Array& counting,
               const Array& positions, int64_t step, int64_t slack) {
  const Compute::Scope scope(c);
  const int64_t n = score.dim(0);
  const int64_t m = score.dim(2);
  const Array ends = c.Temp(kI32, {1, m});
  c.Cast(ends.Reshaped({m}), counting.Part(0, 0, m));
  if (step != 1) c.Scale(ends, static_cast<double>(step));
  const Array late = c.Temp(kI32, {n, m});
  c.Sub(late, ends, positions.Insert(1));
  const Array hidden = c.Temp(kBool, {n, m});
  c.Greater(hidden, late, static_cast<double>(slack));
  const Array mask = c.Temp(kF32, {n, 1, m});
  c.Cast(mask.Reshaped({n, m}), hidden);
  c.Scale(mask, kMasked);
  c.Plus(score, mask);
}

// The softmax of one tile after another, as the official kernel runs it: each
// weighs p = exp(s - m) with the largest score m so far, p rounded for the
// values only. score [rows, n_tiles * tile] becomes the values' weights
// relative to the last m. Results [rows, 1].
struct Softmaxed {
  Array weights;  // [rows, n_tiles * tile] f32
  Array sum;      // of the unrounded weights
  Array largest;
};

Array LargestSoFar(Compute& c, const Array& score, int64_t tile) {
  const int64_t rows = score.dim(0);
  const int64_t n = score.dim(1) / tile;
  const Array largest = c.Temp(kF32, {n, rows});
  const Compute::Scope scope(c);
  const Array each = c.Temp(kF32, {rows, n, 1});
  c.Max(each, score.Reshaped({rows, n, tile}), 2);
  const Array columns = c.Temp(kF32, {n, rows});
  c.Cast(columns, each.Reshaped({rows, n}).Swapped(0, 1));
  c.Cast(largest.Part(0, 0, 1), columns.Part(0, 0, 1));
  // Pairs {largest so far, of this tile} next to one another.
  const Array pair = c.Temp(kF32, {2, rows});
  for (int64_t i = 1; i < n; ++i) {
    c.Cast(pair.Part(0, 0, 1), largest.Part(0, i - 1, 1));
    c.Cast(pair.Part(0, 1, 1), columns.Part(0, i, 1));
    c.Max(largest.Part(0, i, 1), pair, 0);
  }
  return largest;
}

Softmaxed TiledSoftmax(Compute& c, const Array& score, int64_t tile,
                       bool rounded) {
  const int64_t rows = score.dim(0);
  const int64_t n = score.dim(1) / tile;
  const Array largest = LargestSoFar(c, score, tile);
  const Softmaxed out = {score, c.Temp(kF32, {rows, 1}),
                         largest.Part(0, n - 1, 1).Reshaped({rows, 1})};
  const Compute::Scope scope(c);
  const Array tiles = score.Reshaped({rows, n, tile});
  c.Sub(tiles, tiles, largest.Swapped(0, 1).Insert(2));
  c.Exp(tiles, tiles);
  const Array sums = c.Temp(kF32, {rows, n});
  c.Sum(sums, tiles, 2);
  if (rounded) {
    const Array halves = c.Temp(kBf16, {rows, n, tile});
    c.Cast(halves, tiles);
    c.Cast(tiles, halves);
  }
  if (n == 1) {
    c.Cast(out.sum, sums);
    return out;
  }
  const Array factor = c.Temp(kF32, {rows, n});
  c.Sub(factor, largest.Swapped(0, 1), out.largest);
  c.Exp(factor, factor);
  c.Times(sums, factor);
  c.Sum(out.sum.Reshaped({rows}), sums, 1);
  c.Times(tiles, factor.Insert(2));
  return out;
}

}  // namespace

// Tokens [first, first + n) of a span, all younger than their window or none.
void CannBackend::AttendTokens(const ops::SparseAttentionParams& p, size_t s,
                               const Candidates& all, int64_t first,
                               int64_t n) {
  const Compute::Scope scope(c_);
  const ops::Span& span = p.batch.spans[s];
  const int64_t at = span.first_token + first;
  const int64_t heads = p.q.dim(1);
  const int64_t dim = p.q.dim(2);
  const int64_t position = span.start_pos + first;
  const bool young = position < p.window_size;
  const int64_t n_window =
      young ? std::min<int64_t>(position + n, p.window_size) : p.window_size;
  const int64_t tile = numerics_.attention_tile;
  const int64_t width =
      RoundUp(std::max<int64_t>(p.window_size + all.n_compressed, 1), tile);
  const Array q = ArrayOf(p.q).Part(0, at, n);
  const Array positions = index_.Positions(s, first, n);

  const Array score = c_.Temp(kF32, {n, heads, width});
  c_.Fill(score, kMasked);
  // [n, n_window, dim], the tokens' windows one row apart.
  Array window;
  if (n_window > 0) {
    const int64_t from = young ? 0 : all.n_old + first - p.window_size + 1;
    window = all.window.Part(0, from, n_window)
                 .Insert(0, n, young ? 0 : all.window.stride(0));
    c_.Matmul(score.Part(2, 0, n_window), q, window.Swapped(1, 2));
  }
  Array chosen;     // [n, n_compressed, dim]
  Array selection;  // [n, n_compressed] i32
  if (all.n_compressed > 0) {
    if (p.selection.empty()) {
      chosen = all.compressed.Insert(0, n, 0);
    } else {
      selection = ArrayOf(p.selection).Part(0, at, n);
      const Array ids = c_.Temp(kI32, {n, all.n_compressed});
      c_.AtLeast(ids, selection, 0);
      const Array rows = c_.Temp(kI32, {n * all.n_compressed});
      index_.PagedRowsOf(s, p.compressed, ids, rows);
      const Array flat = c_.Temp(all.cache.dtype, {rows.dim(0), dim});
      c_.GatherRows(flat, all.cache, rows);
      chosen = flat.Reshaped({n, all.n_compressed, dim});
    }
    c_.Matmul(score.Part(2, p.window_size, all.n_compressed), q,
              chosen.Swapped(1, 2));
  }
  c_.Scale(score, static_cast<double>(static_cast<float>(
                      1.0 / std::sqrt(static_cast<double>(dim)))));
  if (young && n_window > 0) {
    MaskLater(c_, score.Part(2, 0, n_window), constants_.counting, positions, 1,
              0);
  }
  if (all.n_compressed > 0) {
    const Array part = score.Part(2, p.window_size, all.n_compressed);
    if (p.selection.empty()) {
      MaskLater(c_, part, constants_.counting, positions, p.compressed.ratio,
                1 - p.compressed.ratio);
    } else {
      const Array mask = c_.Temp(kF32, {n, 1, all.n_compressed});
      const Array there = c_.Temp(kBool, {n, all.n_compressed});
      c_.Greater(there, selection, -1);
      c_.Cast(mask.Reshaped({n, all.n_compressed}), there);
      c_.Offset(mask, -1);
      c_.Scale(mask, -kMasked);
      c_.Plus(part, mask);
    }
  }

  const Softmaxed soft = TiledSoftmax(c_, score.Reshaped({n * heads, width}),
                                      tile, numerics_.official());
  const Array sum = soft.sum.Reshaped({n, heads});
  const Array sink = c_.Temp(kF32, {n, heads});
  c_.Sub(sink, ArrayOf(p.sink).Insert(0), soft.largest.Reshaped({n, heads}));
  c_.Exp(sink, sink);
  c_.Plus(sum, sink);
  const Array acc = c_.Temp(kF32, {n, heads, dim});
  if (n_window > 0) {
    c_.Matmul(acc, score.Part(2, 0, n_window), window);
  } else {
    c_.Fill(acc, 0);
  }
  if (all.n_compressed > 0) {
    const Array more = c_.Temp(kF32, {n, heads, dim});
    c_.Matmul(more, score.Part(2, p.window_size, all.n_compressed), chosen);
    c_.Plus(acc, more);
  }
  c_.Div(ArrayOf(p.o).Part(0, at, n), acc, sum.Insert(2));
}

void CannBackend::AttendSpan(const ops::SparseAttentionParams& p, size_t s) {
  const Compute::Scope scope(c_);
  const ops::Span& span = p.batch.spans[s];
  const int64_t dim = p.q.dim(2);
  const int64_t window = p.window_size;
  Candidates all;
  const Array ring = RowsOf(p.window.rows, p.window.format);
  const TensorView fresh_bytes(const_cast<void*>(p.fresh.data()),  // NOLINT
                               p.fresh.dtype(), p.fresh.shape());
  const Array fresh = RowsOf(fresh_bytes, p.window.format)
                          .Part(0, span.first_token, span.n_tokens);
  all.n_old =
      std::min<int64_t>(std::max<int64_t>(window - 1, 0), span.start_pos);
  all.window = fresh;
  if (all.n_old > 0) {
    all.window = c_.Temp(ring.dtype, {all.n_old + span.n_tokens, dim});
    c_.GatherRows(all.window.Part(0, 0, all.n_old), ring,
                  index_.Ring(s, p.window.rows.dim(1),
                              span.start_pos - all.n_old, all.n_old));
    c_.Cast(all.window.Part(0, all.n_old, span.n_tokens), fresh);
  }
  const int64_t n_rows =
      p.compressed.ratio == 0
          ? 0
          : (span.start_pos + span.n_tokens) / p.compressed.ratio;
  if (n_rows > 0) {
    const Array cache = RowsOf(p.compressed.rows, p.compressed.format);
    if (p.selection.empty()) {
      all.n_compressed = RoundUp(n_rows, kCompressedStep);
      all.compressed = c_.Temp(cache.dtype, {all.n_compressed, dim});
      c_.GatherRows(all.compressed, cache,
                    index_.OldRows(s, p.compressed, all.n_compressed, n_rows));
    } else {
      all.n_compressed = p.selection.dim(1);
      all.cache = cache;
    }
  }
  const int64_t each = p.q.dim(1) * (window + all.n_compressed + 64) * 8 +
                       (p.selection.empty() ? 0 : all.n_compressed * dim * 4) +
                       p.q.dim(1) * dim * 8;
  const int64_t chunk = std::clamp<int64_t>(kChunkBytes / each / 4 * 4, 4, 512);
  // Tokens that are younger than the window begin at row 0, the others not.
  const int64_t n_young =
      std::clamp<int64_t>(window - span.start_pos, 0, span.n_tokens);
  for (int64_t first = 0; first < span.n_tokens;) {
    const int64_t end = first < n_young ? n_young : span.n_tokens;
    const int64_t n = std::min(chunk, end - first);
    AttendTokens(p, s, all, first, n);
    first += n;
  }
}

void CannBackend::SparseAttention(const ops::SparseAttentionParams& p) {
  if (!Enter("SparseAttention")) return;
  index_.Begin(p.batch);
  for (size_t s = 0; s < p.batch.spans.size(); ++s) AttendSpan(p, s);
}

}  // namespace belay::cann
