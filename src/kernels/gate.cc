// SPDX-License-Identifier: Apache-2.0
#include "kernels/gate.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gate.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/map-inl.h"
// After the loops: the math library sees the same target.
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace belay::kernels::HWY_NAMESPACE {

void GateScoresImpl(const float* logit, size_t n, float* score) {
  const DF df;
  const VF limit = hn::Set(df, 20.0f);
  Map(score, n, [&](const auto& load) HWY_ATTR {
    const VF v = load(logit);
    const VF soft = hn::Log1p(df, hn::Exp(df, v));
    return hn::Sqrt(hn::IfThenElse(hn::Gt(v, limit), v, soft));
  });
}

// Index of the first lane in value[0, n) that equals `best`; n is a multiple of
// the lanes, and there is one.
HWY_INLINE size_t Find(const float* value, size_t n, float best) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  const VF wanted = hn::Set(df, best);
  for (size_t i = 0; i < n; i += lanes) {
    const auto found =
        hn::FindFirstTrue(df, hn::Eq(hn::LoadU(df, value + i), wanted));
    if (found >= 0) return i + static_cast<size_t>(found);
  }
  return n;
}

// One pass for the maximum and one for its place, k times: a pass over 384
// values is 24 loads of AVX-512, and no branch depends on the values, whereas a
// heap or an insertion mispredicts at every value that enters.
void TopKImpl(float* value, size_t n, size_t k, int32_t* out) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  const size_t room = (n + lanes - 1) / lanes * lanes;
  constexpr float kTaken = -std::numeric_limits<float>::infinity();
  // What is taken, too low to take, or no value at all.
  const VF lowest = hn::Set(df, kTaken);
  std::fill(value + n, value + room, kTaken);
  for (size_t i = 0; i < room; i += lanes) {
    const VF v = hn::LoadU(df, value + i);
    hn::StoreU(hn::IfThenElse(hn::IsNaN(v), lowest, v), df, value + i);
  }
  for (size_t j = 0; j < k; ++j) {
    VF even = lowest;
    VF odd = lowest;
    size_t i = 0;
    for (; i + 2 * lanes <= room; i += 2 * lanes) {
      even = hn::Max(even, hn::LoadU(df, value + i));
      odd = hn::Max(odd, hn::LoadU(df, value + i + lanes));
    }
    if (i < room) even = hn::Max(even, hn::LoadU(df, value + i));
    const float best = hn::GetLane(hn::MaxOfLanes(df, hn::Max(even, odd)));
    if (best == kTaken) {  // only those are left: the lowest indices are next
      int32_t next = 0;
      for (; j < k; ++j, ++next) {
        while (std::find(out, out + j, next) != out + j) ++next;
        out[j] = next;
      }
      return;
    }
    const size_t at = Find(value, room, best);
    out[j] = static_cast<int32_t>(at);
    value[at] = kTaken;
  }
}

}  // namespace belay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace belay::kernels {
namespace {

HWY_EXPORT(GateScoresImpl);
HWY_EXPORT(TopKImpl);

}  // namespace

void GateScores(const float* logit, size_t n, float* score) {
  HWY_DYNAMIC_DISPATCH(GateScoresImpl)(logit, n, score);
}

void TopK(float* value, size_t n, size_t k, int32_t* out) {
  HWY_DYNAMIC_DISPATCH(TopKImpl)(value, n, k, out);
}

}  // namespace belay::kernels
#endif  // HWY_ONCE
