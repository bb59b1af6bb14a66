// SPDX-License-Identifier: Apache-2.0
// KvCompress: pools finished blocks of tokens into compressed rows.
#include "backends/cann/backend.h"

namespace belay::cann {

void CannBackend::FinishBlocks(const ops::KvCompressParams& p, size_t s,
                               const Array& pooled, int64_t first_block) {
  const Compute::Scope scope(c_);
  const int64_t n = pooled.dim(0);
  const int64_t dim = pooled.dim(1);
  const Array freq = ArrayOf(p.rope.freq);
  const Array row = c_.Temp(act(), {n, dim});
  c_.Cast(row, pooled);
  c_.RmsNorm(row, row, ArrayOf(p.weights.norm),
             static_cast<double>(numerics_.norm_eps));
  const Array heads = row.Reshaped({n, 1, dim});
  RotateTail(
      heads, heads,
      AnglesOf(index_.Blocks(s, p.cache.ratio, first_block, n), freq, false));

  const Array cache = RowsOf(p.cache.rows, p.cache.format);
  const Array rows = c_.Temp(cache.dtype, {n, dim});
  if (p.hadamard || p.cache.format.kind == RowKind::kFp4) {
    EncodeIndex(rows, row);
  } else {
    EncodeKv(rows, row, dim - 2 * freq.dim(0));
  }
  c_.ScatterRows(cache, index_.NewRows(s, p.cache, first_block, n), rows);
}

// raw [n, 2, width] of all tokens.
void CannBackend::CompressSpan(const ops::KvCompressParams& p, size_t s,
                               const Array& raw) {
  const ops::Span& span = p.batch.spans[s];
  const int64_t ratio = p.cache.ratio;
  const int64_t first = span.start_pos / ratio;
  const int64_t n = (span.start_pos + span.n_tokens) / ratio - first;
  if (n <= 0) return;
  const Compute::Scope scope(c_);
  const int64_t width = raw.dim(2);
  const int64_t dim = p.cache.format.head_dim;
  const int64_t row = 2 * width;

  // A table of raw rows from `begin` on: of the ring, then of the span. With
  // overlap it begins a block early; before position 0 nothing weighs anything.
  const int64_t begin = (first - (p.overlap ? 1 : 0)) * ratio;
  const int64_t n_absent = begin < 0 ? -begin : 0;
  const int64_t n_old = span.start_pos - begin - n_absent;
  const int64_t n_own = (first + n) * ratio - span.start_pos;
  const Array table = c_.Temp(kF32, {n_absent + n_old + n_own, 2, width});
  if (n_absent > 0) {
    c_.Fill(table.Part(0, 0, n_absent).Part(1, 0, 1), 0);
    c_.Fill(table.Part(0, 0, n_absent).Part(1, 1, 1), kMasked);
  }
  const Array flat = table.Reshaped({table.dim(0), row});
  if (n_old > 0) {
    const Array ring = ArrayOf(p.state.raw);
    const int64_t n_ring = ring.dim(1);
    c_.GatherRows(flat.Part(0, n_absent, n_old),
                  ring.Reshaped({ring.dim(0) * n_ring, row}),
                  index_.Ring(s, n_ring, begin + n_absent, n_old));
  }
  c_.Cast(flat.Part(0, n_absent + n_old, n_own),
          raw.Reshaped({raw.dim(0), row}).Part(0, span.first_token, n_own));

  // [n, slots, dim] of kv and of score + ape. The block before gives its first
  // half channels, the own one its second half.
  const int64_t n_slots = (p.overlap ? 2 : 1) * ratio;
  const Array kv = c_.Temp(kF32, {n, n_slots, dim});
  const Array score = c_.Temp(kF32, {n, n_slots, dim});
  const Array ape = ArrayOf(p.weights.ape);
  const auto block = [&](int64_t from, int64_t which, int64_t channel) {
    Array a = table.Part(0, from, 1).Part(1, which, 1).Part(2, channel, dim);
    a.dims = {n, ratio, dim};
    a.strides = {ratio * row, row, 1};
    return a;
  };
  const auto take = [&](int64_t from, int64_t slot, int64_t channel) {
    c_.Cast(kv.Part(1, slot, ratio), block(from, 0, channel));
    c_.Add(score.Part(1, slot, ratio), block(from, 1, channel),
           ape.Part(1, channel, dim));
  };
  if (p.overlap) {
    take(0, 0, 0);
    take(ratio, ratio, width / 2);
  } else {
    take(0, 0, 0);
  }
  const Array weight = c_.Temp(kF32, {n, n_slots, dim});
  c_.Softmax(weight, score, 1);
  c_.Times(kv, weight);
  const Array pooled = c_.Temp(kF32, {n, dim});
  c_.Sum(pooled, kv, 1);
  FinishBlocks(p, s, pooled, first);
}

void CannBackend::KvCompress(const ops::KvCompressParams& p) {
  if (!Enter("KvCompress")) return;
  index_.Begin(p.batch);
  const Array raw = ArrayOf(p.raw);
  const Array x = ArrayOf(p.x);
  for (const auto& [part, weight] :
       {std::pair{0, p.weights.wkv}, std::pair{1, p.weights.wgate}}) {
    Array out = raw.Part(1, part, 1);  // [n, width] with the stride of both
    out.rank = 2;
    out.dims = {raw.dim(0), raw.dim(2)};
    out.strides = {2 * raw.dim(2), 1};
    Project(out, AsCann(weight), x);
  }
  for (size_t s = 0; s < p.batch.spans.size(); ++s) CompressSpan(p, s, raw);
  const Array ring = ArrayOf(p.state.raw);
  StoreRing(ring.Reshaped({ring.dim(0), ring.dim(1), 2 * ring.dim(3)}),
            raw.Reshaped({raw.dim(0), 2 * raw.dim(2)}), p.batch.spans);
}

}  // namespace belay::cann
