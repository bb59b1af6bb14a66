// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/attention_bf16.h"
#include "kernels/map-inl.h"
#include "kernels/quantize.h"
// After the loops: the math library sees the same target.
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace belay::kernels::HWY_NAMESPACE {

// kRows rows at a time, so that several sums are in flight; each has its own
// accumulator and the same order.
template <int kRows>
HWY_INLINE void DotSome(const float* q, const RowsView& rows, size_t first,
                        float* out) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  VF sum[kRows];
  for (VF& s : sum) s = hn::Zero(df);
  size_t c = 0;
  for (; c + lanes <= rows.n_cols; c += lanes) {
    const VF v = hn::LoadU(df, q + c);
    for (int r = 0; r < kRows; ++r) {
      sum[r] = hn::MulAdd(
          v, hn::LoadU(df, rows.row(first + static_cast<size_t>(r)) + c),
          sum[r]);
    }
  }
  if (c < rows.n_cols) {
    const size_t n = rows.n_cols - c;
    const VF v = LoadPart(q + c, n);
    for (int r = 0; r < kRows; ++r) {
      sum[r] = hn::MulAdd(
          v, LoadPart(rows.row(first + static_cast<size_t>(r)) + c, n), sum[r]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    out[r] = hn::GetLane(hn::SumOfLanes(df, sum[r]));
  }
}

void DotRowsImpl(const float* q, const RowsView& rows, float* out) {
  size_t j = 0;
  for (; j + 8 <= rows.n_rows; j += 8) DotSome<8>(q, rows, j, out + j);
  for (; j < rows.n_rows; ++j) DotSome<1>(q, rows, j, out + j);
}

// acc = acc * r + sum_j p[j] * rows[j] over kVectors vectors of columns.
template <int kVectors>
HWY_INLINE void AccumulateColumns(const RowsView& rows, const float* p, float r,
                                  size_t col, float* acc) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  const VF rescale = hn::Set(df, r);
  VF sum[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    const size_t at = col + static_cast<size_t>(i) * lanes;
    sum[i] = hn::Mul(hn::LoadU(df, acc + at), rescale);
  }
  for (size_t j = 0; j < rows.n_rows; ++j) {
    const VF weight = hn::Set(df, p[j]);
    const float* row = rows.row(j) + col;
    for (int i = 0; i < kVectors; ++i) {
      sum[i] = hn::MulAdd(
          weight, hn::LoadU(df, row + static_cast<size_t>(i) * lanes), sum[i]);
    }
  }
  for (int i = 0; i < kVectors; ++i) {
    hn::StoreU(sum[i], df, acc + col + static_cast<size_t>(i) * lanes);
  }
}

void Accumulate(const RowsView& rows, const float* p, float r, float* acc) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  size_t c = 0;
  for (; c + 8 * lanes <= rows.n_cols; c += 8 * lanes) {
    AccumulateColumns<8>(rows, p, r, c, acc);
  }
  for (; c + lanes <= rows.n_cols; c += lanes) {
    AccumulateColumns<1>(rows, p, r, c, acc);
  }
  if (c == rows.n_cols) return;
  const size_t n = rows.n_cols - c;
  VF sum = hn::Mul(LoadPart(acc + c, n), hn::Set(df, r));
  for (size_t j = 0; j < rows.n_rows; ++j) {
    sum = hn::MulAdd(hn::Set(df, p[j]), LoadPart(rows.row(j) + c, n), sum);
  }
  StorePart(sum, acc + c, n);
}

// The tile's weights p in place of s; returns r. Maximum and sum run over the
// lanes, then over what is left.
float WeightsInPlace(float* s, size_t n, bool round_p, OnlineSoftmax* state) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  VF lane_max = hn::Set(df, state->max);
  size_t j = 0;
  for (; j + lanes <= n; j += lanes) {
    lane_max = hn::Max(lane_max, hn::LoadU(df, s + j));
  }
  float max = hn::GetLane(hn::MaxOfLanes(df, lane_max));
  for (; j < n; ++j) max = std::max(max, s[j]);
  // The first tile has nothing to rescale: -inf - -inf would be NaN.
  const float r = state->sum == 0.0f ? 0.0f : std::exp(state->max - max);
  const VF vmax = hn::Set(df, max);
  VF lane_sum = hn::Zero(df);
  float sum = 0.0f;
  for (j = 0; j < n; j += lanes) {
    const size_t left = n - j;
    const VF v = left < lanes ? LoadPart(s + j, left) : hn::LoadU(df, s + j);
    const VF p = hn::Exp(df, hn::Sub(v, vmax));
    const VF stored = round_p ? RoundLanesToBf16(p) : p;
    if (left < lanes) {
      alignas(64) float part[16];
      hn::Store(p, df, part);
      for (size_t i = 0; i < left; ++i) sum += part[i];
      StorePart(stored, s + j, left);
    } else {
      lane_sum = hn::Add(lane_sum, p);
      hn::StoreU(stored, df, s + j);
    }
  }
  sum += hn::GetLane(hn::SumOfLanes(df, lane_sum));
  state->sum = state->sum * r + sum;
  state->max = max;
  return r;
}

void SoftmaxTileImpl(const SoftmaxTileParams& t) {
  const float r = WeightsInPlace(t.s, t.rows.n_rows, t.round_p, t.state);
  Accumulate(t.rows, t.s, r, t.acc);
}

float SoftmaxWeightsImpl(float* s, size_t n, OnlineSoftmax* state) {
  return WeightsInPlace(s, n, /*round_p=*/true, state);
}

void AddIndexScoresImpl(const float* d, size_t n, float weight, bool official,
                        float* acc) {
  const DF df;
  const VF w = hn::Set(df, weight);
  const VF zero = hn::Zero(df);
  if (official) {
    Map(acc, n, [&](const auto& load) HWY_ATTR {
      const VF relu = hn::Max(RoundLanesToBf16(load(d)), zero);
      return hn::Add(load(acc), RoundLanesToBf16(hn::Mul(relu, w)));
    });
  } else {
    Map(acc, n, [&](const auto& load) HWY_ATTR {
      return hn::Add(load(acc), hn::Mul(hn::Max(load(d), zero), w));
    });
  }
}

}  // namespace belay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace belay::kernels {
namespace {

HWY_EXPORT(DotRowsImpl);
HWY_EXPORT(SoftmaxTileImpl);
HWY_EXPORT(SoftmaxWeightsImpl);
HWY_EXPORT(AddIndexScoresImpl);

}  // namespace

void DotRows(const float* q, const RowsView& rows, float* out) {
  HWY_DYNAMIC_DISPATCH(DotRowsImpl)(q, rows, out);
}

void SoftmaxTile(const SoftmaxTileParams& p) {
  HWY_DYNAMIC_DISPATCH(SoftmaxTileImpl)(p);
}

float SoftmaxWeights(float* s, size_t n_rows, OnlineSoftmax* state,
                     uint16_t* p) {
  const float r = HWY_DYNAMIC_DISPATCH(SoftmaxWeightsImpl)(s, n_rows, state);
  std::fill(s + n_rows, s + kTileRows, 0.0f);
  F32ToBf16(s, kTileRows, p);
  return r;
}

void AddIndexScores(const float* d, size_t n, float weight, bool official,
                    float* acc) {
  HWY_DYNAMIC_DISPATCH(AddIndexScoresImpl)(d, n, weight, official, acc);
}

}  // namespace belay::kernels
#endif  // HWY_ONCE
