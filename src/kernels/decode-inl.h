// SPDX-License-Identifier: Apache-2.0
// Weight codes to float32 lanes, in registers. Per-target code: include once
// per target after hwy/highway.h.
#if defined(BELAY_KERNELS_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BELAY_KERNELS_DECODE_INL_H_
#undef BELAY_KERNELS_DECODE_INL_H_
#else
#define BELAY_KERNELS_DECODE_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"
#include "kernels/weight.h"

HWY_BEFORE_NAMESPACE();
namespace belay::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes: a step of two vectors then never exceeds kBlockMultiple.
using DF = hn::CappedTag<float, 16>;
using VF = hn::Vec<DF>;

// What Load2 leaves out, to be multiplied into the block's scale: e4m3 comes as
// float16 with the exponent 8 too small, e2m1 as twice the value.
template <WeightKind kKind>
constexpr float DecodeFactor() {
  if (kKind == WeightKind::kFp8) return 256.0f;
  if (kKind == WeightKind::kFp4) return 0.5f;
  return 1.0f;
}

// e4m3 has the layout of float16 but for a shorter exponent and mantissa:
// moving the bits is exact for subnormals too, and the conversion to float32
// handles float16 subnormals in hardware.
HWY_INLINE VF DecodeE4m3(const uint8_t* codes) {
  const DF df;
  const hn::Rebind<int8_t, DF> d8;
  const hn::Rebind<int16_t, DF> d16;
  const hn::Rebind<hwy::float16_t, DF> dh;
  const auto wide =
      hn::PromoteTo(d16, hn::LoadU(d8, reinterpret_cast<const int8_t*>(codes)));
  const auto half = hn::And(hn::ShiftLeft<7>(wide),
                            hn::Set(d16, static_cast<int16_t>(0xbfff)));
  return hn::PromoteTo(df, hn::BitCast(dh, half));
}

HWY_INLINE VF DecodeBf16(const uint16_t* codes) {
  const DF df;
  const hn::Rebind<uint16_t, DF> d16;
  const hn::Rebind<uint32_t, DF> d32;
  return hn::BitCast(
      df, hn::ShiftLeft<16>(hn::PromoteTo(d32, hn::LoadU(d16, codes))));
}

// Twice the values of 2 * Lanes packed e2m1 codes.
HWY_INLINE void DecodeE2m1(const uint8_t* codes, VF& v0, VF& v1) {
  const DF df;
  const hn::Rebind<uint8_t, DF> d8;  // Lanes bytes = 2 * Lanes codes
  const hn::Rebind<int8_t, DF> d8i;
  const hn::Rebind<int32_t, DF> d32;
  alignas(16) static constexpr int8_t kTwice[16] = {
      0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const auto table = hn::LoadDup128(hn::Full128<int8_t>(), kTwice);
  const auto bytes = hn::LoadU(d8, codes);
  const auto even = hn::BitCast(d8i, hn::And(bytes, hn::Set(d8, 15)));
  const auto odd = hn::BitCast(d8i, hn::ShiftRight<4>(bytes));
  const auto even_values = hn::TableLookupBytes(table, even);
  const auto odd_values = hn::TableLookupBytes(table, odd);
  // Up to 16 bytes, hence one 128-bit block: interleaving restores the order.
  const auto low = hn::InterleaveLower(d8i, even_values, odd_values);
  const auto high = hn::InterleaveUpper(d8i, even_values, odd_values);
  v0 = hn::ConvertTo(df, hn::PromoteTo(d32, low));
  v1 = hn::ConvertTo(df, hn::PromoteTo(d32, high));
}

// Columns [col, col + 2 * Lanes) of a row; col is a multiple of 2 * Lanes.
template <WeightKind kKind>
HWY_INLINE void Load2(const std::byte* row, size_t col, VF& v0, VF& v1) {
  const DF df;
  const size_t n = hn::Lanes(df);
  if constexpr (kKind == WeightKind::kF32) {
    const float* p = reinterpret_cast<const float*>(row) + col;
    v0 = hn::LoadU(df, p);
    v1 = hn::LoadU(df, p + n);
  } else if constexpr (kKind == WeightKind::kBf16) {
    const uint16_t* p = reinterpret_cast<const uint16_t*>(row) + col;
    v0 = DecodeBf16(p);
    v1 = DecodeBf16(p + n);
  } else if constexpr (kKind == WeightKind::kF16) {
    const hn::Rebind<hwy::float16_t, DF> dh;
    const auto* p = reinterpret_cast<const hwy::float16_t*>(row) + col;
    v0 = hn::PromoteTo(df, hn::LoadU(dh, p));
    v1 = hn::PromoteTo(df, hn::LoadU(dh, p + n));
  } else if constexpr (kKind == WeightKind::kFp8) {
    const uint8_t* p = reinterpret_cast<const uint8_t*>(row) + col;
    v0 = DecodeE4m3(p);
    v1 = DecodeE4m3(p + n);
  } else {
    DecodeE2m1(reinterpret_cast<const uint8_t*>(row) + col / 2, v0, v1);
  }
}

}  // namespace belay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BELAY_KERNELS_DECODE_INL_H_
