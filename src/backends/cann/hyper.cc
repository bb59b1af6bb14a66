// SPDX-License-Identifier: Apache-2.0
// Embedding, hyper-connections, copies of rows.
#include "backends/cann/backend.h"
#include "base/error_ids.h"

namespace belay::cann {
namespace {

// x [n, width] of another dtype, contiguous.
Array Widened(Compute& c, const Array& x) {
  const Array wide = c.Temp(kF32, {x.dim(0), x.dim(1)});
  c.Cast(wide, x);
  return wide;
}

// x[t] = sum_j weight[t, j] h[t, j], h32 [n, hc * dim] f32, weight [n, hc] f32
// with any stride between rows.
void Collapse(Compute& c, const Array& x, const Array& weight,
              const Array& h32) {
  const int64_t n = x.dim(0);
  const int64_t dim = x.dim(1);
  c.Matmul(x.Insert(1), weight.Insert(1),
           h32.Reshaped({n, h32.dim(1) / dim, dim}));
}

}  // namespace

void CannBackend::Embed(const ops::EmbedParams& p) {
  if (!Enter("Embed")) return;
  if (p.table.format != BlockFormat::kNone) {
    return Refuse("an embedding in blocks of GGUF", "BF16, F16 or F32");
  }
  const Compute::Scope scope(c_);
  const Array table = ArrayOf(p.table.view);
  const Array h = ArrayOf(p.h);
  const int64_t n = h.dim(0);
  const int64_t dim = h.dim(2);
  // Ids of other ranks give zeros: look row 0 or the last up, times 0.
  const Array ids = c_.Temp(kI32, {n});
  c_.Cast(ids, ArrayOf(p.token_ids));
  if (p.first_id != 0) c_.Offset(ids, -static_cast<double>(p.first_id));
  const Array row = c_.Temp(kI32, {n});
  c_.Clamp(row, ids, 0, static_cast<double>(table.dim(0) - 1));
  const Array here = c_.Temp(kBool, {n});
  c_.Equal(here, row, ids);
  const Array factor = c_.Temp(h.dtype, {n, 1});
  c_.Cast(factor.Reshaped({n}), here);
  Array rows = c_.Temp(table.dtype, {n, dim});
  c_.GatherRows(rows, table, row);
  if (rows.dtype != h.dtype) {
    const Array other = c_.Temp(h.dtype, {n, dim});
    c_.Cast(other, rows);
    rows = other;
  }
  c_.Times(rows, factor);
  c_.Offset(rows, 0);  // -0 of other ranks' rows becomes 0
  c_.Cast(h, rows.Insert(1, h.dim(1), 0));
}

Array CannBackend::Mixes(const Array& h32, const Array& fn, double norm_eps) {
  const int64_t n = h32.dim(0);
  const Array mixes = c_.Temp(kF32, {n, fn.dim(0)});
  const Compute::Scope scope(c_);
  c_.Matmul(mixes, h32, fn.Swapped(0, 1));
  const Array square = c_.Temp(kF32, {n, h32.dim(1)});
  c_.Mul(square, h32, h32);
  const Array rms = c_.Temp(kF32, {n, 1});
  c_.Mean(rms, square, 1);
  c_.Offset(rms, norm_eps);
  c_.Sqrt(rms, rms);
  c_.Div(rms, constants_.one, rms);
  c_.Times(mixes, rms);
  return mixes;
}

// The mixes by a product, since the fused operators that make them, too, take
// some sizes only; sigmoids, iterations and the sum over streams in one.
void CannBackend::HcPreFused(const ops::HcPreParams& p) {
  const Compute::Scope scope(c_);
  const Array h = ArrayOf(p.h);
  const Array fn = ArrayOf(p.weights.fn);
  const int64_t n = h.dim(0);
  const Array inverse_rms = c_.Temp(kF32, {n, 1});
  c_.HcInverseRms(inverse_rms, h, static_cast<double>(p.norm_eps));
  const Array mixes = c_.Temp(kF32, {n, fn.dim(0)});
  const Array h32 = Widened(c_, h.Reshaped({n, h.dim(1) * h.dim(2)}));
  c_.Matmul(mixes, h32, fn.Swapped(0, 1));
  c_.HcPreSinkhorn(
      {.x = ArrayOf(p.x), .post = ArrayOf(p.post), .comb = ArrayOf(p.comb)},
      {.mixes = mixes,
       .inverse_rms = inverse_rms,
       .scale = ArrayOf(p.weights.scale),
       .base = ArrayOf(p.weights.base),
       .h = h},
      p.sinkhorn_iters, static_cast<double>(p.hc_eps));
}

void CannBackend::HcPre(const ops::HcPreParams& p) {
  if (!Enter("HcPre")) return;
  const int64_t n = p.h.dim(0);
  const int64_t hc = p.h.dim(1);
  if (hc == 4 && c_.has_hc_pre()) return HcPreFused(p);
  const Compute::Scope scope(c_);
  const auto eps = static_cast<double>(p.hc_eps);
  const int64_t n_mixes = (2 + hc) * hc;
  const Array h32 = Widened(c_, ArrayOf(p.h).Reshaped({n, hc * p.h.dim(2)}));
  const Array mixes =
      Mixes(h32, ArrayOf(p.weights.fn), static_cast<double>(p.norm_eps));
  const Array scales = c_.Temp(kF32, {n_mixes});
  c_.GatherFlat(scales, ArrayOf(p.weights.scale), constants_.hc_scales);
  c_.Times(mixes, scales);
  c_.Plus(mixes, ArrayOf(p.weights.base));

  const Array pre = c_.Temp(kF32, {n, hc});
  c_.Sigmoid(pre, mixes.Part(1, 0, hc));
  c_.Offset(pre, eps);
  const Array post = ArrayOf(p.post);
  c_.Sigmoid(post, mixes.Part(1, hc, hc));
  c_.Scale(post, 2);

  const Array comb = ArrayOf(p.comb);
  Array logits = mixes.Part(1, 2 * hc, hc * hc).Insert(1, hc, hc);
  logits.dims[2] = hc;
  c_.Softmax(comb, logits, 2);
  c_.Offset(comb, eps);
  const Array sums = c_.Temp(kF32, {n, hc});
  for (int i = 0; i < 2 * p.sinkhorn_iters - 1; ++i) {
    const bool columns = i % 2 == 0;
    c_.Sum(sums, comb, columns ? 1 : 2);
    c_.Offset(sums, eps);
    c_.Div(comb, comb, sums.Insert(columns ? 1 : 2));
  }
  Collapse(c_, ArrayOf(p.x), pre, h32);
}

void CannBackend::HcPost(const ops::HcPostParams& p) {
  if (!Enter("HcPost")) return;
  const Compute::Scope scope(c_);
  const int64_t n = p.h.dim(0);
  const int64_t hc = p.h.dim(1);
  const int64_t dim = p.h.dim(2);
  if (hc == 4 && c_.has_hc_post()) {
    // It does not work in place.
    const Array out = c_.Temp(AclDtype(p.h.dtype()), {n, hc, dim});
    c_.HcPost(out, ArrayOf(p.y), ArrayOf(p.h), ArrayOf(p.post),
              ArrayOf(p.comb));
    return c_.Cast(ArrayOf(p.h_out), out);
  }
  const Array h32 = Widened(c_, ArrayOf(p.h).Reshaped({n, hc * dim}));
  const Array y32 = Widened(c_, ArrayOf(p.y));
  const Array mixed = c_.Temp(kF32, {n, hc, dim});
  // The column of comb is the output stream: its transpose times h.
  c_.Matmul(mixed, ArrayOf(p.comb).Swapped(1, 2), h32.Reshaped({n, hc, dim}));
  const Array added = c_.Temp(kF32, {n, hc, dim});
  c_.Mul(added, ArrayOf(p.post).Insert(2), y32.Insert(1));
  c_.Add(ArrayOf(p.h_out), added, mixed);
}

void CannBackend::HcHead(const ops::HcHeadParams& p) {
  if (!Enter("HcHead")) return;
  const Compute::Scope scope(c_);
  const int64_t n = p.h.dim(0);
  const Array h32 =
      Widened(c_, ArrayOf(p.h).Reshaped({n, p.h.dim(1) * p.h.dim(2)}));
  const Array pre =
      Mixes(h32, ArrayOf(p.weights.fn), static_cast<double>(p.norm_eps));
  c_.Times(pre, ArrayOf(p.weights.scale));
  c_.Plus(pre, ArrayOf(p.weights.base));
  c_.Sigmoid(pre, pre);
  c_.Offset(pre, static_cast<double>(p.hc_eps));
  Collapse(c_, ArrayOf(p.x), pre, h32);
}

void CannBackend::GatherRows(const ops::GatherRowsParams& p) {
  if (!Enter("GatherRows")) return;
  const Array src = ArrayOf(p.src);
  const Array dst = ArrayOf(p.dst);
  const int64_t width = p.src.row_elements();
  c_.GatherRows(dst.Reshaped({dst.dim(0), width}),
                src.Reshaped({src.dim(0), width}), ArrayOf(p.rows));
}

void CannBackend::AddBroadcast(const ops::AddBroadcastParams& p) {
  if (!Enter("AddBroadcast")) return;
  c_.Add(ArrayOf(p.h_out), ArrayOf(p.e).Insert(1), ArrayOf(p.hp));
}

}  // namespace belay::cann
