// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/map-inl.h"
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

void SoftmaxTileImpl(const SoftmaxTileParams& t) {
  const DF df;
  const size_t n = t.rows.n_rows;
  float max = t.state->max;
  for (size_t j = 0; j < n; ++j) max = std::max(max, t.s[j]);
  // The first tile has nothing to rescale: -inf - -inf would be NaN.
  const float r = t.state->sum == 0.0f ? 0.0f : std::exp(t.state->max - max);
  const VF vmax = hn::Set(df, max);
  Map(t.s, n, [&](const auto& load) HWY_ATTR {
    return hn::Exp(df, hn::Sub(load(t.s), vmax));
  });
  float sum = 0.0f;
  for (size_t j = 0; j < n; ++j) sum += t.s[j];
  if (t.round_p) {
    Map(t.s, n,
        [&](const auto& load) HWY_ATTR { return RoundLanesToBf16(load(t.s)); });
  }
  t.state->sum = t.state->sum * r + sum;
  t.state->max = max;
  Accumulate(t.rows, t.s, r, t.acc);
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
HWY_EXPORT(AddIndexScoresImpl);

}  // namespace

void DotRows(const float* q, const RowsView& rows, float* out) {
  HWY_DYNAMIC_DISPATCH(DotRowsImpl)(q, rows, out);
}

void SoftmaxTile(const SoftmaxTileParams& p) {
  HWY_DYNAMIC_DISPATCH(SoftmaxTileImpl)(p);
}

void AddIndexScores(const float* d, size_t n, float weight, bool official,
                    float* acc) {
  HWY_DYNAMIC_DISPATCH(AddIndexScoresImpl)(d, n, weight, official, acc);
}

}  // namespace belay::kernels
#endif  // HWY_ONCE
