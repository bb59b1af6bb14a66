// SPDX-License-Identifier: Apache-2.0
// IndexerSelect: which compressed rows a token attends to.
#include <algorithm>
#include <cmath>

#include "backends/cann/backend.h"
#include "backends/cann/quant.h"

namespace belay::cann {
namespace {

// Scores of as many tokens at once as this memory holds.
constexpr int64_t kScoreBytes = int64_t{48} << 20;
// Rows are counted in steps of this, so that shapes change seldom.
constexpr int64_t kRowStep = 64;

int64_t RoundUp(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

}  // namespace

// rows = fp4_act_quant(round(H values / sqrt(n))).
void CannBackend::EncodeIndex(const Array& rows, const Array& values) {
  const Compute::Scope scope(c_);
  const int64_t n = values.dim(0);
  const int64_t dim = values.dim(1);
  const Array wide = c_.Temp(kF32, {n, dim});
  c_.Matmul(wide, values, constants_.hadamard);
  c_.Scale(wide, static_cast<double>(static_cast<float>(
                     1.0 / std::sqrt(static_cast<double>(dim)))));
  if (!numerics_.official()) return c_.Cast(rows, wide);
  const Array rounded = c_.Temp(kBf16, {n, dim});
  c_.Cast(rounded, wide);
  QuantDequant(c_, rows, rounded, numerics_.index_group, Code::kE2m1);
}

// q [n_tokens, heads, dim] and w [n_tokens, heads] of all tokens.
void CannBackend::SelectRows(const ops::IndexerSelectParams& p, size_t s,
                             const Array& q, const Array& w) {
  const Compute::Scope scope(c_);
  const ops::Span& span = p.batch.spans[s];
  const int64_t n_rows = (span.start_pos + span.n_tokens) / p.keys.ratio;
  const int64_t topk = p.selection.dim(1);
  const Array selection = ArrayOf(p.selection);
  const bool official = numerics_.official();
  if (n_rows == 0) {
    return c_.Fill(selection.Part(0, span.first_token, span.n_tokens), -1);
  }
  // Never fewer than are chosen: k is the same in every step.
  const int64_t n = RoundUp(std::max(n_rows, topk), kRowStep);
  const int64_t heads = q.dim(1);
  const int64_t dim = q.dim(2);
  const Array cache = RowsOf(p.keys.rows, p.keys.format);
  const Array keys = c_.Temp(cache.dtype, {n, dim});
  c_.GatherRows(keys, cache, index_.OldRows(s, p.keys, n, n_rows));
  const int64_t chunk =
      std::clamp<int64_t>(kScoreBytes / (n * heads * 8) / 4 * 4, 4, 1024);
  for (int64_t first = 0; first < span.n_tokens; first += chunk) {
    const Compute::Scope inner(c_);
    const int64_t t = std::min(chunk, span.n_tokens - first);
    const int64_t at = span.first_token + first;
    // score = sum over heads of relu(q k) w, rounded at each step.
    const Array each = c_.Temp(act(), {t * heads, n});
    c_.Matmul(each, q.Part(0, at, t).Reshaped({t * heads, dim}),
              keys.Swapped(0, 1));
    c_.AtLeast(each, each, 0);
    c_.Times(each, w.Part(0, at, t).Reshaped({t * heads, 1}));
    const Array score = c_.Temp(kF32, {t, n});
    const Array each3 = each.Reshaped({t, heads, n});
    if (official) {
      const Array rounded = c_.Temp(kBf16, {t, n});
      c_.Sum(rounded, each3, 1);
      c_.Cast(score, rounded);
    } else {
      c_.Sum(score, each3, 1);
    }
    // -inf where the row is not finished before the token.
    const Array late = c_.Temp(kI32, {t, n});
    const Array ends = c_.Temp(kI32, {1, n});
    c_.Cast(ends.Reshaped({n}), constants_.counting.Part(0, 0, n));
    c_.Scale(ends, p.keys.ratio);
    c_.Sub(late, ends, index_.Positions(s, first, t).Insert(1));
    const Array hidden = c_.Temp(kBool, {t, n});
    c_.Greater(hidden, late, 1 - p.keys.ratio);
    const Array mask = c_.Temp(kF32, {t, n});
    c_.Cast(mask, hidden);
    c_.Scale(mask, kMasked);
    c_.Scale(mask, 1e10);  // beyond FLOAT: -inf, and -0 stays
    c_.Plus(score, mask);

    const Array best = c_.Temp(kF32, {t, topk});
    const Array ids = c_.Temp(kI64, {t, topk});
    c_.Largest(best, ids, score, static_cast<int>(topk), 1);
    // id where the score is finite, else -1: (id + 1) * valid - 1.
    const Array valid = c_.Temp(kBool, {t, topk});
    c_.Greater(valid, best, -3.3e38);
    const Array out = selection.Part(0, at, t);
    const Array factor = c_.Temp(kI32, {t, topk});
    c_.Cast(out, ids);
    c_.Cast(factor, valid);
    c_.Offset(out, 1);
    c_.Times(out, factor);
    c_.Offset(out, -1);
    if (p.scores.empty()) continue;
    const Array scores = ArrayOf(p.scores).Part(0, at, t);
    const int64_t shown = std::min(n, scores.dim(1));
    c_.Fill(scores, -HUGE_VAL);
    c_.Cast(scores.Part(1, 0, shown), score.Part(1, 0, shown));
  }
}

void CannBackend::IndexerSelect(const ops::IndexerSelectParams& p) {
  if (!Enter("IndexerSelect")) return;
  index_.Begin(p.batch);
  const Compute::Scope scope(c_);
  const int64_t n = p.qr.dim(0);
  const int64_t heads = p.n_index_heads;
  const int64_t dim = p.index_dim;
  const Array raw = c_.Temp(act(), {n, heads, dim});
  Project(raw.Reshaped({n, heads * dim}), AsCann(p.wq_b), ArrayOf(p.qr));
  RotateTail(raw, raw,
             AnglesOf(ArrayOf(p.batch.positions), ArrayOf(p.rope.freq), false));
  const Array q = c_.Temp(act(), {n, heads, dim});
  EncodeIndex(q.Reshaped({n * heads, dim}), raw.Reshaped({n * heads, dim}));
  const Array w = c_.Temp(act(), {n, heads});
  Project(w, AsCann(p.weights_proj), ArrayOf(p.x));
  c_.Scale(w, static_cast<double>(static_cast<float>(
                  1.0 / std::sqrt(static_cast<double>(dim * heads)))));
  for (size_t s = 0; s < p.batch.spans.size(); ++s) SelectRows(p, s, q, w);
}

}  // namespace belay::cann
