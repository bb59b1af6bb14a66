// SPDX-License-Identifier: Apache-2.0
// Linear, RmsNorm, Logits, AttentionOut: products and a norm.
#include "backends/cann/backend.h"
#include "backends/cann/quant.h"

namespace belay::cann {

// Lives in the scope of the caller.
Array CannBackend::Operand(const Array& x, bool quantise, aclDataType weight) {
  Array in = x;
  if (quantise) {
    if (in.dtype != kBf16) {
      in = c_.Temp(kBf16, {x.dim(0), x.dim(1)});
      c_.Cast(in, x);
    }
    const Array quantised = c_.Temp(kBf16, {x.dim(0), x.dim(1)});
    QuantDequant(c_, quantised, in, numerics_.act_block, Code::kE4m3);
    in = quantised;
  }
  if (weight != kF32 || in.dtype == kF32) return in;
  const Array wide = c_.Temp(kF32, {x.dim(0), x.dim(1)});
  c_.Cast(wide, in);
  return wide;
}

void CannBackend::Project(const Array& y, const CannLinear& weight,
                          const Array& x) {
  const Compute::Scope scope(c_);
  const Array in = Operand(x, weight.quantise(), weight.weight().dtype);
  c_.Matmul(y, in, weight.weight().Swapped(0, 1));
}

void CannBackend::Linear(const ops::LinearParams& p) {
  if (!Enter("Linear")) return;
  Project(ArrayOf(p.y), AsCann(p.weight), ArrayOf(p.x));
}

void CannBackend::RmsNorm(const ops::RmsNormParams& p) {
  if (!Enter("RmsNorm")) return;
  c_.RmsNorm(ArrayOf(p.y), ArrayOf(p.x), ArrayOf(p.weight),
             static_cast<double>(p.eps));
}

void CannBackend::Logits(const ops::LogitsParams& p) {
  if (!Enter("Logits")) return;
  Project(ArrayOf(p.logits), AsCann(p.weight), ArrayOf(p.x));
}

// a_g = round(wo_a_g o_g) for all groups g at once, then y = wo_b concat(a).
void CannBackend::AttentionOut(const ops::AttentionOutParams& p) {
  if (!Enter("AttentionOut")) return;
  const Compute::Scope scope(c_);
  const CannLinear& wo_a = AsCann(p.wo_a);
  const int64_t n = p.o.dim(0);
  const int64_t groups = p.n_groups;
  const int64_t n_in = wo_a.n_in();
  const int64_t o_lora = wo_a.n_out() / groups;
  const Array o = Operand(ArrayOf(p.o), false, wo_a.weight().dtype);
  const Array mid = ArrayOf(p.mid);
  // [groups, n, n_in] x [groups, n_in, o_lora] -> [groups, n, o_lora]
  c_.Matmul(mid.Reshaped({n, groups, o_lora}).Swapped(0, 1),
            o.Reshaped({n, groups, n_in}).Swapped(0, 1),
            wo_a.weight().Reshaped({groups, o_lora, n_in}).Swapped(1, 2));
  Project(ArrayOf(p.y), AsCann(p.wo_b), mid);
}

}  // namespace belay::cann
