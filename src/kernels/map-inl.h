// SPDX-License-Identifier: Apache-2.0
// Loops over float arrays of any length. Per-target code: include once per
// target after hwy/highway.h.
#if defined(BELAY_KERNELS_MAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BELAY_KERNELS_MAP_INL_H_
#undef BELAY_KERNELS_MAP_INL_H_
#else
#define BELAY_KERNELS_MAP_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "kernels/decode-inl.h"

HWY_BEFORE_NAMESPACE();
namespace belay::kernels::HWY_NAMESPACE {

// The last n < Lanes floats, zeros beyond.
HWY_INLINE VF LoadPart(const float* x, size_t n) {
  alignas(64) float part[16] = {};
  std::memcpy(part, x, n * sizeof(float));
  return hn::Load(DF(), part);
}

HWY_INLINE void StorePart(VF v, float* y, size_t n) {
  alignas(64) float part[16];
  hn::Store(v, DF(), part);
  std::memcpy(y, part, n * sizeof(float));
}

// y[i] = f(i, load): `load(p)` gives the lanes at p + i for any array p.
template <class Fn>
HWY_INLINE void Map(float* y, size_t n, const Fn& f) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(f([&](const float* p) HWY_ATTR { return hn::LoadU(df, p + i); }),
               df, y + i);
  }
  if (i < n) {
    StorePart(
        f([&](const float* p) HWY_ATTR { return LoadPart(p + i, n - i); }),
        y + i, n - i);
  }
}

// Nearest bf16, ties to even, as float32. Finite x and infinities.
HWY_INLINE VF RoundLanesToBf16(VF x) {
  const DF df;
  const hn::RebindToUnsigned<DF> du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto sum = hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd);
  return hn::BitCast(df, hn::And(sum, hn::Set(du, 0xffff0000u)));
}

}  // namespace belay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BELAY_KERNELS_MAP_INL_H_
