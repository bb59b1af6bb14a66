// SPDX-License-Identifier: Apache-2.0
// Route, RoutedExperts, SharedExpert: routed on the device, shapes that do not
// depend on where tokens go.
#include "backends/cann/backend.h"

namespace belay::cann {
namespace {

// Rows of a grouped product: some versions fail with exactly 16.
int64_t Padded(int64_t n_rows) { return n_rows == 16 ? 17 : n_rows; }

// Where each expert's pairs end when they are sorted by key: the pairs whose
// key is not above it. keys [n] i32.
Array EndsOf(Compute& c, const Array& keys, const Array& experts) {
  const int64_t n = keys.dim(0);
  const int64_t n_experts = experts.dim(0);
  const Array ends = c.Temp(kI64, {n_experts});
  const Compute::Scope scope(c);
  const Array difference = c.Temp(kI32, {n, n_experts});
  c.Sub(difference, keys.Insert(1), experts.Insert(0));
  const Array above = c.Temp(kBool, {n, n_experts});
  c.Greater(above, difference, 0);
  const Array counted = c.Temp(kF32, {n, n_experts});
  c.Cast(counted, above);
  const Array sums = c.Temp(kF32, {n_experts});
  c.Sum(sums, counted, 0);
  c.Scale(sums, -1);
  c.Offset(sums, static_cast<double>(n));
  c.Cast(ends, sums);
  return ends;
}

// The ascending order of keys [n] i32, as i32.
Array OrderOf(Compute& c, const Array& keys) {
  const int64_t n = keys.dim(0);
  const Array order = c.Temp(kI32, {n});
  const Compute::Scope scope(c);
  const Array wide = c.Temp(kF32, {n});
  c.Cast(wide, keys);
  const Array places = c.Temp(kI64, {n});
  c.Argsort(places, wide);
  c.Cast(order, places);
  return order;
}

}  // namespace

void CannBackend::Route(const ops::RouteParams& p) {
  if (!Enter("Route")) return;
  const Compute::Scope scope(c_);
  const int64_t n = p.x.dim(0);
  const int64_t k = p.experts.dim(1);
  const Array logits = ArrayOf(p.logits);
  const int64_t n_experts = logits.dim(1);
  const Array experts = ArrayOf(p.experts);
  Project(logits, AsCann(p.gate), ArrayOf(p.x));
  const Array score = c_.Temp(kF32, {n, n_experts});
  c_.Softplus(score, logits);
  c_.Sqrt(score, score);
  Array biased = score;
  if (!p.bias.empty()) {
    biased = c_.Temp(kF32, {n, n_experts});
    c_.Add(biased, score, ArrayOf(p.bias));
  }
  if (!p.scores.empty()) c_.Cast(ArrayOf(p.scores), biased);
  if (p.by == ops::RouteBy::kScore) {
    const Array best = c_.Temp(kF32, {n, k});
    const Array ids = c_.Temp(kI64, {n, k});
    c_.Largest(best, ids, biased, static_cast<int>(k), 1);
    c_.Cast(experts, ids);
  } else if (p.by == ops::RouteBy::kTable) {
    const Array ids = c_.Temp(kI64, {n, k});
    c_.GatherRows(ids, ArrayOf(p.table), ArrayOf(p.token_ids));
    c_.Cast(experts, ids);
  }
  // The scores of the chosen, by their places in the flat matrix.
  const Array place = c_.Temp(kI32, {n, k});
  const Array starts = c_.Temp(kI32, {n, 1});
  c_.Cast(starts.Reshaped({n}), constants_.counting.Part(0, 0, n));
  c_.Scale(starts, static_cast<double>(n_experts));
  c_.Add(place, experts, starts);
  const Array weights = ArrayOf(p.weights);
  c_.GatherFlat(weights, score, place);
  const Array sum = c_.Temp(kF32, {n});
  c_.Sum(sum, weights, 1);
  c_.Div(weights, weights, sum.Insert(1));
  c_.Scale(weights, static_cast<double>(p.route_scale));
}

Array CannBackend::Gated(const Array& g, const Array& u, const Array& weights,
                         double limit) {
  const int64_t n = g.dim(0);
  const int64_t inter = g.dim(1);
  const Array out = c_.Temp(act(), {n, inter});
  const Compute::Scope scope(c_);
  const Array gate = c_.Temp(kF32, {n, inter});
  c_.Cast(gate, g);
  c_.Clamp(gate, gate, kMasked, limit);
  c_.Silu(gate, gate);
  const Array up = c_.Temp(kF32, {n, inter});
  c_.Cast(up, u);
  c_.Clamp(up, up, -limit, limit);
  c_.Times(gate, up);
  if (!weights.empty()) c_.Times(gate, weights);
  c_.Cast(out, gate);
  return out;
}

void CannBackend::RoutedExperts(const ops::RoutedExpertsParams& p) {
  if (!Enter("RoutedExperts")) return;
  const Compute::Scope scope(c_);
  const CannExperts& experts = AsCann(p.experts);
  const int64_t n = p.x.dim(0);
  const int64_t k = p.ids.dim(1);
  const int64_t pairs = n * k;
  const int64_t rows = Padded(pairs);
  const int64_t dim = experts.dim();
  const int64_t inter = experts.inter();
  const auto n_local = static_cast<double>(experts.n_local());

  // Experts of other ranks sort behind ours, where no group reaches.
  const Array keys = c_.Temp(kI32, {pairs});
  {
    const Compute::Scope inner(c_);
    const Array local = c_.Temp(kI32, {pairs});
    c_.Cast(local, ArrayOf(p.ids).Reshaped({pairs}));
    c_.Offset(local, -static_cast<double>(experts.first_expert()));
    c_.Clamp(keys, local, 0, n_local - 1);
    const Array ours = c_.Temp(kBool, {pairs});
    c_.Equal(ours, keys, local);
    const Array factor = c_.Temp(kI32, {pairs});
    c_.Cast(factor, ours);
    c_.Offset(keys, -n_local);
    c_.Times(keys, factor);
    c_.Offset(keys, n_local);
  }
  const Array order = OrderOf(c_, keys);
  const Array back = OrderOf(c_, order);
  const Array ends =
      EndsOf(c_, keys, constants_.expert_ids.Part(0, 0, experts.n_stored()));
  const Array token = c_.Temp(kI32, {pairs});
  {
    const Compute::Scope inner(c_);
    const Array wide = c_.Temp(kF32, {pairs});
    c_.Cast(wide, order);
    c_.Offset(wide, 0.5);  // clear of the rounding of 1 / k
    c_.Scale(wide, 1.0 / static_cast<double>(k));
    c_.Cast(token, wide);
  }
  const Array weights = c_.Temp(kF32, {pairs, 1});
  c_.GatherFlat(weights, ArrayOf(p.weights), order);

  const aclDataType stored = experts.w1().dtype;
  const Array in = Operand(ArrayOf(p.x), experts.quantise(), stored);
  const Array x = c_.Temp(stored, {rows, dim});
  c_.GatherRows(x.Part(0, 0, pairs), in, token);
  const Array g = c_.Temp(act(), {rows, inter});
  const Array u = c_.Temp(act(), {rows, inter});
  // Rows of other ranks are in no group.
  c_.Fill(g, 0);
  c_.Fill(u, 0);
  c_.GroupedMatmul(g, x, experts.w1().Swapped(1, 2), ends);
  c_.GroupedMatmul(u, x, experts.w3().Swapped(1, 2), ends);
  const Array a = c_.Temp(stored, {rows, inter});
  const Array gated = Gated(g.Part(0, 0, pairs), u.Part(0, 0, pairs), weights,
                            static_cast<double>(p.swiglu_limit));
  c_.Cast(a.Part(0, 0, pairs), Operand(gated, experts.quantise(), stored));
  const Array y = c_.Temp(act(), {rows, dim});
  c_.Fill(y, 0);
  c_.GroupedMatmul(y, a, experts.w2().Swapped(1, 2), ends);
  const Array sorted = c_.Temp(act(), {pairs, dim});
  c_.GatherRows(sorted, y.Part(0, 0, pairs), back);
  c_.Sum(ArrayOf(p.acc), sorted.Reshaped({n, k, dim}), 1);
}

void CannBackend::SharedExpert(const ops::SharedExpertParams& p) {
  if (!Enter("SharedExpert")) return;
  const Compute::Scope scope(c_);
  const CannExperts& expert = AsCann(p.expert);
  const int64_t n = p.x.dim(0);
  const int64_t dim = expert.dim();
  const int64_t inter = expert.inter();
  const aclDataType stored = expert.w1().dtype;
  const auto weight = [](const Array& w) {  // [k, n] of the only expert
    return w.Part(0, 0, 1).Reshaped({w.dim(1), w.dim(2)}).Swapped(0, 1);
  };
  const Array x = Operand(ArrayOf(p.x), expert.quantise(), stored);
  const Array g = c_.Temp(act(), {n, inter});
  const Array u = c_.Temp(act(), {n, inter});
  c_.Matmul(g, x, weight(expert.w1()));
  c_.Matmul(u, x, weight(expert.w3()));
  const Array a = Operand(Gated(g, u, {}, static_cast<double>(p.swiglu_limit)),
                          expert.quantise(), stored);
  const Array y = c_.Temp(act(), {n, dim});
  c_.Matmul(y, a, weight(expert.w2()));
  c_.Add(ArrayOf(p.y), y, ArrayOf(p.acc));
}

}  // namespace belay::cann
