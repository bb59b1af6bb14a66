// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize.h"

#include <algorithm>
#include <cmath>

#include "base/float_formats.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/decode-inl.h"
#include "kernels/map-inl.h"

HWY_BEFORE_NAMESPACE();
namespace belay::kernels::HWY_NAMESPACE {

void FromBf16(const uint16_t* x, size_t n, float* y) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(DecodeBf16(x + i), df, y + i);
  }
  for (; i < n; ++i) y[i] = F32FromBf16(x[i]);
}

void ToBf16(const float* x, size_t n, uint16_t* y) {
  const DF df;
  const hn::RebindToUnsigned<DF> du;
  const hn::Rebind<uint16_t, DF> d16;
  const size_t lanes = hn::Lanes(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const VF v = hn::LoadU(df, x + i);
    const auto bits = hn::BitCast(du, v);
    const auto rounded = hn::BitCast(du, RoundLanesToBf16(v));
    const auto nan = hn::Or(bits, hn::Set(du, 0x00400000u));
    const auto chosen =
        hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(v)), nan, rounded);
    hn::StoreU(hn::TruncateTo(d16, hn::ShiftRight<16>(chosen)), d16, y + i);
  }
  for (; i < n; ++i) y[i] = Bf16FromF32(x[i]);
}

void RoundInPlace(float* x, size_t n) {
  Map(x, n,
      [&](const auto& load) HWY_ATTR { return RoundLanesToBf16(load(x)); });
}

float MaxMagnitude(const float* x, size_t n) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  VF max = hn::Zero(df);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    max = hn::Max(max, hn::Abs(hn::LoadU(df, x + i)));
  }
  if (i < n) max = hn::Max(max, hn::Abs(LoadPart(x + i, n - i)));
  return hn::GetLane(hn::MaxOfLanes(df, max));
}

// Rounds |v| to kBits explicit mantissa bits where v >= 2^kMinExponent, and to
// multiples of 2^(kMinExponent - kBits) below: the grid of a small float with
// subnormals, ties to even.
template <int kBits, int kMinExponent>
HWY_INLINE VF RoundMagnitude(VF v) {
  const DF df;
  const hn::RebindToUnsigned<DF> du;
  constexpr int kDrop = 23 - kBits;
  const auto bits = hn::BitCast(du, v);
  const auto odd = hn::And(hn::ShiftRight<kDrop>(bits), hn::Set(du, 1));
  const auto half = hn::Set(du, (1u << (kDrop - 1)) - 1);
  const auto mask = hn::Set(du, ~((1u << kDrop) - 1));
  const VF normal =
      hn::BitCast(df, hn::And(hn::Add(hn::Add(bits, half), odd), mask));
  // One unit in the last place of `coarse` is the subnormal step.
  const VF coarse = hn::BitCast(
      df, hn::Set(du, static_cast<uint32_t>(127 + 23 + kMinExponent - kBits)
                          << 23));
  const VF subnormal = hn::Sub(hn::Add(v, coarse), coarse);
  const VF limit = hn::BitCast(
      df, hn::Set(du, static_cast<uint32_t>(127 + kMinExponent) << 23));
  return hn::IfThenElse(hn::Lt(v, limit), subnormal, normal);
}

template <int kBits, int kMinExponent>
HWY_INLINE void QuantizeBlock(const float* x, size_t n, uint8_t scale_code,
                              float largest, float* y) {
  const DF df;
  const float s = F32FromE8m0(scale_code);
  const VF scale = hn::Set(df, s);
  const VF inverse = hn::Set(df, 1.0f / s);  // exact: a power of two
  const VF max = hn::Set(df, largest);
  Map(y, n, [&](const auto& load) HWY_ATTR {
    const VF v = load(x);
    const VF magnitude = hn::Min(hn::Mul(hn::Abs(v), inverse), max);
    const VF rounded = RoundMagnitude<kBits, kMinExponent>(magnitude);
    return hn::CopySign(hn::Mul(rounded, scale), v);
  });
}

void QuantE4m3(const float* x, size_t n, size_t block, float* y) {
  for (size_t i = 0; i < n; i += block) {
    const size_t m = std::min(block, n - i);
    const float amax = std::max(MaxMagnitude(x + i, m), kActQuantFloor);
    QuantizeBlock<3, -6>(x + i, m, ScaleCode(amax, kInvE4m3Max), kE4m3Max,
                         y + i);
  }
}

void QuantE2m1(const float* x, size_t n, size_t block, float* y) {
  for (size_t i = 0; i < n; i += block) {
    const size_t m = std::min(block, n - i);
    const float amax = std::max(MaxMagnitude(x + i, m), kFp4ActQuantFloor);
    QuantizeBlock<1, 0>(x + i, m, ScaleCode(amax, kInvE2m1Max), 6.0f, y + i);
  }
}

void FromE4m3(const uint8_t* codes, const uint8_t* scales, size_t n,
              size_t group, float* y) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  for (size_t g = 0; g * group < n; ++g) {
    const float scale = F32FromE8m0(scales[g]);
    const VF v = hn::Set(df, scale * DecodeFactor<WeightKind::kFp8>());
    size_t i = g * group;
    const size_t end = std::min(n, i + group);
    for (; i + lanes <= end; i += lanes) {
      hn::StoreU(hn::Mul(DecodeE4m3(codes + i), v), df, y + i);
    }
    for (; i < end; ++i) y[i] = F32FromE4m3(codes[i]) * scale;
  }
}

void FromE2m1(const uint8_t* codes, const uint8_t* scales, size_t n,
              size_t group, float* y) {
  const DF df;
  const size_t lanes = hn::Lanes(df);
  for (size_t g = 0; g * group < n; ++g) {
    const float scale = F32FromE8m0(scales[g]);
    const VF v = hn::Set(df, scale * DecodeFactor<WeightKind::kFp4>());
    size_t i = g * group;
    const size_t end = std::min(n, i + group);
    for (; i + 2 * lanes <= end; i += 2 * lanes) {
      VF v0;
      VF v1;
      DecodeE2m1(codes + i / 2, v0, v1);
      hn::StoreU(hn::Mul(v0, v), df, y + i);
      hn::StoreU(hn::Mul(v1, v), df, y + i + lanes);
    }
    for (; i < end; ++i) {
      const int code = (i & 1) != 0 ? codes[i / 2] >> 4 : codes[i / 2] & 15;
      y[i] = F32FromE2m1(static_cast<uint8_t>(code)) * scale;
    }
  }
}

}  // namespace belay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace belay::kernels {
namespace {

HWY_EXPORT(FromBf16);
HWY_EXPORT(ToBf16);
HWY_EXPORT(RoundInPlace);
HWY_EXPORT(QuantE4m3);
HWY_EXPORT(QuantE2m1);
HWY_EXPORT(FromE4m3);
HWY_EXPORT(FromE2m1);
HWY_EXPORT(MaxMagnitude);

}  // namespace

void Bf16ToF32(const uint16_t* x, size_t n, float* y) {
  HWY_DYNAMIC_DISPATCH(FromBf16)(x, n, y);
}

void F32ToBf16(const float* x, size_t n, uint16_t* y) {
  HWY_DYNAMIC_DISPATCH(ToBf16)(x, n, y);
}

void RoundToBf16(float* x, size_t n) {
  HWY_DYNAMIC_DISPATCH(RoundInPlace)(x, n);
}

void QuantizeE4m3(const float* x, size_t n, size_t block, float* y) {
  HWY_DYNAMIC_DISPATCH(QuantE4m3)(x, n, block, y);
}

void QuantizeE2m1(const float* x, size_t n, size_t block, float* y) {
  HWY_DYNAMIC_DISPATCH(QuantE2m1)(x, n, block, y);
}

void EncodeE4m3(const float* x, size_t n, size_t group, uint8_t* codes,
                uint8_t* scales) {
  for (size_t g = 0; g * group < n; ++g) {
    const size_t begin = g * group;
    const size_t end = std::min(n, begin + group);
    const float amax =
        HWY_DYNAMIC_DISPATCH(MaxMagnitude)(x + begin, end - begin);
    scales[g] = ScaleCode(std::max(amax, kActQuantFloor), kInvE4m3Max);
    const float inverse = 1.0f / F32FromE8m0(scales[g]);
    for (size_t i = begin; i < end; ++i) {
      codes[i] = E4m3FromF32(x[i] * inverse);
    }
  }
}

void DecodeE4m3(const uint8_t* codes, const uint8_t* scales, size_t n,
                size_t group, float* y) {
  HWY_DYNAMIC_DISPATCH(FromE4m3)(codes, scales, n, group, y);
}

void EncodeE2m1(const float* x, size_t n, size_t group, uint8_t* codes,
                uint8_t* scales) {
  for (size_t g = 0; g * group < n; ++g) {
    const size_t begin = g * group;
    const size_t end = std::min(n, begin + group);
    const float amax =
        HWY_DYNAMIC_DISPATCH(MaxMagnitude)(x + begin, end - begin);
    scales[g] = ScaleCode(std::max(amax, kFp4ActQuantFloor), kInvE2m1Max);
    const float inverse = 1.0f / F32FromE8m0(scales[g]);
    for (size_t i = begin; i < end; i += 2) {
      codes[i / 2] = PackE2m1(E2m1FromF32(x[i] * inverse),
                              E2m1FromF32(x[i + 1] * inverse));
    }
  }
}

void DecodeE2m1(const uint8_t* codes, const uint8_t* scales, size_t n,
                size_t group, float* y) {
  HWY_DYNAMIC_DISPATCH(FromE2m1)(codes, scales, n, group, y);
}

}  // namespace belay::kernels
#endif  // HWY_ONCE
