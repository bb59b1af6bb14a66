// SPDX-License-Identifier: Apache-2.0
// Queries and window rows: projections, norms, rope, the ring.
#include "backends/cann/backend.h"
#include "backends/cann/quant.h"

namespace belay::cann {
namespace {

// q / rms(q) of each head. Official: every step in bf16; the mean is summed in
// float32.
void HeadNorm(Compute& c, const Array& q, const Array& one, double eps) {
  const Compute::Scope scope(c);
  const Array heads = q.Reshaped({q.dim(0) * q.dim(1), q.dim(2)});
  const int64_t n = heads.dim(0);
  const Array square = c.Temp(q.dtype, {n, q.dim(2)});
  c.Mul(square, heads, heads);
  const Array mean = c.Temp(q.dtype, {n, 1});
  c.Mean(mean, square, 1);
  c.Offset(mean, eps);
  const Array root = c.Temp(kF32, {n, 1});
  c.Cast(root, mean);
  c.Sqrt(root, root);
  c.Div(root, one, root);
  c.Cast(mean, root);
  c.Mul(heads, heads, mean);
}

}  // namespace

CannBackend::Angles CannBackend::AnglesOf(const Array& positions,
                                          const Array& freq, bool inverse) {
  const int64_t n = positions.dim(0);
  const int64_t n_freq = freq.dim(0);
  const Angles angles = {c_.Temp(kF32, {n, 2 * n_freq}),
                         c_.Temp(kF32, {n, 2 * n_freq})};
  const Compute::Scope scope(c_);
  const Array place = c_.Temp(kF32, {n, 1, 1});
  c_.Cast(place.Reshaped({n}), positions);
  // Each frequency twice, for both numbers of its pair; the angle is the
  // float32 product.
  const Array angle = c_.Temp(kF32, {n, n_freq, 2});
  c_.Mul(angle, place, freq.Insert(1, 2, 0));
  const Array flat = angle.Reshaped({n, 2 * n_freq});
  c_.Cos(angles.cos, flat);
  c_.Sin(angles.sin, flat);
  if (inverse) c_.Neg(angles.sin, angles.sin);
  return angles;
}

void CannBackend::RotateTail(const Array& out, const Array& x,
                             const Angles& angles) {
  const Compute::Scope scope(c_);
  const int64_t n = x.dim(0);
  const int64_t heads = x.dim(1);
  const int64_t n_rope = angles.cos.dim(1);
  const int64_t n_plain = x.dim(2) - n_rope;
  if (out.data != x.data && n_plain > 0) {
    c_.Cast(out.Part(2, 0, n_plain), x.Part(2, 0, n_plain));
  }
  const Array tail = c_.Temp(kF32, {n, heads, n_rope});
  c_.Cast(tail, x.Part(2, n_plain, n_rope));
  const Array rotated = c_.Temp(kF32, {n, heads, n_rope});
  c_.Rotate(rotated.Insert(0), tail.Insert(0), angles.cos.Insert(1).Insert(0),
            angles.sin.Insert(1).Insert(0));
  c_.Cast(out.Part(2, n_plain, n_rope), rotated);
}

void CannBackend::RopeTail(const ops::RopeTailParams& p) {
  if (!Enter("RopeTail")) return;
  const Compute::Scope scope(c_);
  const Array x = ArrayOf(p.x);
  RotateTail(x, x,
             AnglesOf(ArrayOf(p.positions), ArrayOf(p.rope.freq), p.inverse));
}

void CannBackend::QueryProject(const ops::QueryProjectParams& p) {
  if (!Enter("QueryProject")) return;
  const Compute::Scope scope(c_);
  const Array qr = ArrayOf(p.qr);
  Project(qr, AsCann(p.wq_a), ArrayOf(p.x));
  c_.RmsNorm(qr, qr, ArrayOf(p.q_norm),
             static_cast<double>(numerics_.norm_eps));
  const Array q = ArrayOf(p.q);
  Project(q.Reshaped({q.dim(0), q.dim(1) * q.dim(2)}), AsCann(p.wq_b), qr);
  if (p.head_norm) {
    HeadNorm(c_, q, constants_.one, static_cast<double>(numerics_.norm_eps));
  }
  RotateTail(q, q, AnglesOf(ArrayOf(p.positions), ArrayOf(p.rope.freq), false));
}

Array CannBackend::RowsOf(const TensorView& bytes,
                          const ops::RowFormat& format) {
  const bool halves = format.kind == RowKind::kBf16;
  if (!halves && format.kind != RowKind::kF32) {
    Refuse("cache rows in FP8 or FP4", "BF16 or F32 rows");
  }
  const int64_t n = bytes.n_elements() / static_cast<int64_t>(format.bytes());
  return Array(bytes.data(), halves ? kBf16 : kF32, {n, format.head_dim});
}

void CannBackend::EncodeKv(const Array& rows, const Array& values,
                           int64_t n_quant) {
  const int64_t dim = values.dim(1);
  if (!numerics_.official() || n_quant == 0) return c_.Cast(rows, values);
  const Compute::Scope scope(c_);
  QuantDequant(c_, rows.Part(1, 0, n_quant), values.Part(1, 0, n_quant),
               numerics_.kv_group, Code::kE4m3);
  if (n_quant == dim) return;
  c_.Cast(rows.Part(1, n_quant, dim - n_quant),
          values.Part(1, n_quant, dim - n_quant));
}

void CannBackend::KvProject(const ops::KvProjectParams& p) {
  if (!Enter("KvProject")) return;
  const Compute::Scope scope(c_);
  const int64_t n = p.x.dim(0);
  const int64_t dim = p.format.head_dim;
  const Array freq = ArrayOf(p.rope.freq);
  const Array kv = c_.Temp(act(), {n, dim});
  Project(kv, AsCann(p.wkv), ArrayOf(p.x));
  c_.RmsNorm(kv, kv, ArrayOf(p.kv_norm),
             static_cast<double>(numerics_.norm_eps));
  const Array heads = kv.Reshaped({n, 1, dim});
  RotateTail(heads, heads, AnglesOf(ArrayOf(p.positions), freq, false));
  EncodeKv(RowsOf(p.fresh, p.format), kv, dim - 2 * freq.dim(0));
}

// One write when every span fits the ring: the usual case.
void CannBackend::StoreRing(const Array& ring, const Array& rows,
                            std::span<const ops::Span> spans) {
  const int64_t n_ring = ring.dim(1);
  const int64_t width = ring.dim(2);
  const Array flat = ring.Reshaped({ring.dim(0) * n_ring, width});
  bool fits = true;
  int64_t n = 0;
  for (const ops::Span& span : spans) {
    fits = fits && span.n_tokens <= n_ring && span.first_token == n;
    n += span.n_tokens;
  }
  if (fits) {
    return c_.ScatterRows(flat, index_.RingOfAll(n_ring), rows.Part(0, 0, n));
  }
  for (size_t s = 0; s < spans.size(); ++s) {
    const ops::Span& span = spans[s];
    const int64_t kept = std::min<int64_t>(span.n_tokens, n_ring);
    const int64_t skipped = span.n_tokens - kept;
    c_.ScatterRows(flat, index_.Ring(s, n_ring, span.start_pos + skipped, kept),
                   rows.Part(0, span.first_token + skipped, kept));
  }
}

void CannBackend::KvStore(const ops::KvStoreParams& p) {
  if (!Enter("KvStore")) return;
  index_.Begin(p.batch);
  const Array ring = RowsOf(p.window.rows, p.window.format);
  const TensorView fresh(const_cast<void*>(p.fresh.data()),  // NOLINT: read
                         p.fresh.dtype(), p.fresh.shape());
  StoreRing(
      ring.Reshaped({p.window.rows.dim(0), p.window.rows.dim(1), ring.dim(1)}),
      RowsOf(fresh, p.window.format), p.batch.spans);
}

}  // namespace belay::cann
