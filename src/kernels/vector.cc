// SPDX-License-Identifier: Apache-2.0
#include "kernels/vector.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/vector.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/map-inl.h"
// After the loops: the math library sees the same target.
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace belay::kernels::HWY_NAMESPACE {

float SumSquaresImpl(const float* x, size_t n) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  VF sum = hn::Zero(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF v = hn::LoadU(df, x + i);
    sum = hn::MulAdd(v, v, sum);
  }
  if (i < n) {
    const VF v = LoadPart(x + i, n - i);
    sum = hn::MulAdd(v, v, sum);
  }
  return hn::GetLane(hn::SumOfLanes(df, sum));
}

float SumRoundedSquaresImpl(const float* x, size_t n) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  VF sum = hn::Zero(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF v = hn::LoadU(df, x + i);
    sum = hn::Add(sum, RoundLanesToBf16(hn::Mul(v, v)));
  }
  if (i < n) {
    const VF v = LoadPart(x + i, n - i);
    sum = hn::Add(sum, RoundLanesToBf16(hn::Mul(v, v)));
  }
  return hn::GetLane(hn::SumOfLanes(df, sum));
}

void ScaleRowImpl(const float* x, const float* w, float r, size_t n, float* y) {
  const VF factor = hn::Set(DF(), r);
  Map(y, n, [&](const auto& load) HWY_ATTR {
    return hn::Mul(load(w), hn::Mul(load(x), factor));
  });
}

void AddRowImpl(const float* x, size_t n, float* y) {
  Map(y, n,
      [&](const auto& load) HWY_ATTR { return hn::Add(load(y), load(x)); });
}

void MulRowImpl(const float* x, float a, size_t n, float* y) {
  const VF factor = hn::Set(DF(), a);
  Map(y, n,
      [&](const auto& load) HWY_ATTR { return hn::Mul(load(x), factor); });
}

void AddScaledRowImpl(const float* x, float a, size_t n, float* y) {
  const VF factor = hn::Set(DF(), a);
  Map(y, n, [&](const auto& load) HWY_ATTR {
    return hn::Add(load(y), hn::Mul(load(x), factor));
  });
}

void SwiGluImpl(const SwiGluParams& p) {
  const DF df;
  const VF limit = hn::Set(df, p.limit);
  const VF minus_limit = hn::Set(df, -p.limit);
  const VF weight = hn::Set(df, p.weight);
  const VF one = hn::Set(df, 1.0f);
  // Beyond exp's range the quotient is 0 for a negative gate in any case.
  const VF largest = hn::Set(df, 88.0f);
  Map(p.out, p.n, [&](const auto& load) HWY_ATTR {
    const VF g = hn::Min(load(p.g), limit);
    const VF u = hn::Max(hn::Min(load(p.u), limit), minus_limit);
    const VF e = hn::Exp(df, hn::Min(hn::Neg(g), largest));
    const VF silu = hn::Div(g, hn::Add(one, e));
    return hn::Mul(hn::Mul(silu, u), weight);
  });
}

void SoftmaxPoolImpl(const PoolParams& p) {
  const DF df;
  float* out = p.out;
  Map(out, p.n_channels, [&](const auto& load) HWY_ATTR {
    VF max = hn::Add(load(p.score[0]), load(p.ape[0]));
    for (size_t s = 1; s < p.n_slots; ++s) {
      max = hn::Max(max, hn::Add(load(p.score[s]), load(p.ape[s])));
    }
    VF total = hn::Zero(df);
    for (size_t s = 0; s < p.n_slots; ++s) {
      const VF score = hn::Add(load(p.score[s]), load(p.ape[s]));
      total = hn::Add(total, hn::Exp(df, hn::Sub(score, max)));
    }
    VF sum = hn::Zero(df);
    for (size_t s = 0; s < p.n_slots; ++s) {
      const VF score = hn::Add(load(p.score[s]), load(p.ape[s]));
      const VF e = hn::Exp(df, hn::Sub(score, max));
      sum = hn::Add(sum, hn::Mul(load(p.kv[s]), hn::Div(e, total)));
    }
    return sum;
  });
}

}  // namespace belay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace belay::kernels {
namespace {

HWY_EXPORT(SumSquaresImpl);
HWY_EXPORT(SumRoundedSquaresImpl);
HWY_EXPORT(ScaleRowImpl);
HWY_EXPORT(AddRowImpl);
HWY_EXPORT(MulRowImpl);
HWY_EXPORT(AddScaledRowImpl);
HWY_EXPORT(SwiGluImpl);
HWY_EXPORT(SoftmaxPoolImpl);

}  // namespace

float SumSquares(const float* x, size_t n) {
  return HWY_DYNAMIC_DISPATCH(SumSquaresImpl)(x, n);
}

float SumRoundedSquares(const float* x, size_t n) {
  return HWY_DYNAMIC_DISPATCH(SumRoundedSquaresImpl)(x, n);
}

void ScaleRow(const float* x, const float* w, float r, size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(ScaleRowImpl)(x, w, r, n, y);
}

void AddRow(const float* x, size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(AddRowImpl)(x, n, y);
}

void MulRow(const float* x, float a, size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(MulRowImpl)(x, a, n, y);
}

void AddScaledRow(const float* x, float a, size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(AddScaledRowImpl)(x, a, n, y);
}

void SwiGlu(const SwiGluParams& p) { HWY_DYNAMIC_DISPATCH(SwiGluImpl)(p); }

void SoftmaxPool(const PoolParams& p) {
  HWY_DYNAMIC_DISPATCH(SoftmaxPoolImpl)(p);
}

// 32 pairs a head: plain code is enough here.
void RotatePairs(const float* cos, const float* sin, size_t n_pairs, float* x) {
  for (size_t i = 0; i < n_pairs; ++i) {
    const float a = x[2 * i];
    const float b = x[2 * i + 1];
    x[2 * i] = a * cos[i] - b * sin[i];
    x[2 * i + 1] = a * sin[i] + b * cos[i];
  }
}

void Hadamard(float* x, size_t n, float scale) {
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * half) {
      for (size_t i = begin; i < begin + half; ++i) {
        const float a = x[i];
        const float b = x[i + half];
        x[i] = a + b;
        x[i + half] = a - b;
      }
    }
  }
  for (size_t i = 0; i < n; ++i) x[i] *= scale;
}

}  // namespace belay::kernels
#endif  // HWY_ONCE
