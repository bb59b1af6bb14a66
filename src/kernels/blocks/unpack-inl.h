// SPDX-License-Identifier: Apache-2.0
// Blocks of weights to int16 codes and float32 scales. Per-target code: include
// once per target after hwy/highway.h. The loops over the K types are plain:
// fixed counts and no branches, which compilers turn into vectors of the
// target. Formulas: tensor/block_format.h.
#if defined(BELAY_KERNELS_BLOCKS_UNPACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef BELAY_KERNELS_BLOCKS_UNPACK_INL_H_
#undef BELAY_KERNELS_BLOCKS_UNPACK_INL_H_
#else
#define BELAY_KERNELS_BLOCKS_UNPACK_INL_H_
#endif

#include <cstdint>
#include <cstring>

#include "base/float_formats.h"
#include "hwy/highway.h"
#include "kernels/blocks/panel.h"

HWY_BEFORE_NAMESPACE();
namespace belay::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

HWY_INLINE float HalfAt(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return F32FromF16(bits);
}

// A byte as two's complement.
HWY_INLINE int SignedByte(uint8_t byte) {
  return byte < 128 ? byte : byte - 256;
}

// 16 columns at a time on the widest targets, 8 on the others.
using D16x16 = hn::CappedTag<int16_t, 16>;

HWY_INLINE void UnpackQ8_0(const uint8_t* block, int16_t* codes, float* d) {
  const D16x16 d16;
  const hn::Rebind<int8_t, D16x16> d8;
  *d = HalfAt(block);
  const auto* q = reinterpret_cast<const int8_t*>(block + 2);
  for (size_t i = 0; i < 32; i += hn::Lanes(d16)) {
    hn::StoreU(hn::PromoteTo(d16, hn::LoadU(d8, q + i)), d16, codes + i);
  }
}

// Codes are twice the values.
HWY_INLINE void UnpackMxfp4(const uint8_t* block, int16_t* codes, float* d) {
  const D16x16 d16;
  const hn::Rebind<int8_t, D16x16> d8;
  const hn::Rebind<uint8_t, D16x16> du8;
  alignas(16) static constexpr int8_t kTwice[16] = {
      0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const auto table = hn::LoadDup128(hn::Full128<int8_t>(), kTwice);
  *d = 0.5f * F32FromE8m0(block[0]);
  for (size_t i = 0; i < 16; i += hn::Lanes(d16)) {
    const auto bytes = hn::LoadU(du8, block + 1 + i);
    const auto low = hn::BitCast(d8, hn::And(bytes, hn::Set(du8, 15)));
    const auto high = hn::BitCast(d8, hn::ShiftRight<4>(bytes));
    hn::StoreU(hn::PromoteTo(d16, hn::TableLookupBytes(table, low)), d16,
               codes + i);
    hn::StoreU(hn::PromoteTo(d16, hn::TableLookupBytes(table, high)), d16,
               codes + 16 + i);
  }
}

// out[i] = ((q[i] >> shift) & 3) * scale, i < 16.
HWY_INLINE void TwoBits(const uint8_t* q, int shift, int scale, int16_t* out) {
  for (int i = 0; i < 16; ++i) {
    out[i] = static_cast<int16_t>(((q[i] >> shift) & 3) * scale);
  }
}

HWY_INLINE void UnpackQ2K(const uint8_t* block, const BlockPanel& p) {
  p.d[0] = p.d[1] = HalfAt(block + 80);
  p.dmin[0] = p.dmin[1] = HalfAt(block + 82);
  for (size_t g = 0; g < 16; ++g) {  // 16 columns each
    TwoBits(block + 16 + g / 8 * 32 + g % 2 * 16,
            static_cast<int>(g % 8 / 2 * 2), block[g] & 15, p.codes + 16 * g);
    p.mins[g] = static_cast<int16_t>(block[g] >> 4);
  }
}

HWY_INLINE void UnpackQ3K(const uint8_t* block, const BlockPanel& p) {
  const uint8_t* const scales = block + 96;
  p.d[0] = p.d[1] = HalfAt(block + 108);
  for (size_t g = 0; g < 16; ++g) {
    const int low = (scales[g % 8] >> (g / 8 * 4)) & 15;
    const int high = (scales[8 + g % 4] >> (g / 4 * 2)) & 3;
    const int scale = (low | high << 4) - 32;
    const uint8_t* const q = block + 32 + g / 8 * 32 + g % 2 * 16;
    const uint8_t* const h = block + g % 2 * 16;
    const size_t shift = g % 8 / 2 * 2;
    const size_t bit = g / 2;
    for (int i = 0; i < 16; ++i) {
      const int code = ((q[i] >> shift) & 3) + ((h[i] >> bit) & 1) * 4 - 4;
      p.codes[16 * g + i] = static_cast<int16_t>(code * scale);
    }
  }
}

// Q4_K and Q5_K; `high` is null without a fifth bit.
HWY_INLINE void UnpackQ45K(const uint8_t* block, const uint8_t* q,
                           const uint8_t* high, const BlockPanel& p) {
  const uint8_t* const s = block + 4;
  p.d[0] = p.d[1] = HalfAt(block);
  p.dmin[0] = p.dmin[1] = HalfAt(block + 2);
  for (size_t g = 0; g < 8; ++g) {  // 32 columns each
    const int scale =
        g < 4 ? s[g] & 63 : (s[g + 4] & 15) | (s[g - 4] >> 6) << 4;
    const int min = g < 4 ? s[g + 4] & 63 : s[g + 4] >> 4 | (s[g] >> 6) << 4;
    p.mins[2 * g] = p.mins[2 * g + 1] = static_cast<int16_t>(min);
    const uint8_t* const from = q + g / 2 * 32;
    const size_t shift = g % 2 * 4;
    int16_t* const to = p.codes + 32 * g;
    if (high == nullptr) {
      for (int i = 0; i < 32; ++i) {
        to[i] = static_cast<int16_t>(((from[i] >> shift) & 15) * scale);
      }
      continue;
    }
    for (int i = 0; i < 32; ++i) {
      const int code = ((from[i] >> shift) & 15) + ((high[i] >> g) & 1) * 16;
      to[i] = static_cast<int16_t>(code * scale);
    }
  }
}

HWY_INLINE void UnpackQ6K(const uint8_t* block, const BlockPanel& p) {
  p.d[0] = p.d[1] = HalfAt(block + 208);
  for (size_t g = 0; g < 16; ++g) {
    const size_t j = g % 8 / 2;
    const size_t at = g % 2 * 16;
    const uint8_t* const low = block + g / 8 * 64 + j % 2 * 32 + at;
    const uint8_t* const high = block + 128 + g / 8 * 32 + at;
    const int scale = SignedByte(block[192 + g]);
    for (int i = 0; i < 16; ++i) {
      const int code =
          ((low[i] >> (j / 2 * 4)) & 15) | ((high[i] >> (2 * j)) & 3) << 4;
      p.codes[16 * g + i] = static_cast<int16_t>((code - 32) * scale);
    }
  }
}

// One row of `n` columns into `panel`.
HWY_INLINE void UnpackRow(BlockFormat format, const std::byte* row, int64_t n,
                          BlockPanel p) {
  const auto* block = reinterpret_cast<const uint8_t*>(row);
  const int64_t values = BlockValues(format);
  const size_t bytes = BlockBytes(format);
  for (int64_t col = 0; col < n; col += values, block += bytes) {
    switch (format) {
      case BlockFormat::kNone:
        return;
      case BlockFormat::kQ8_0:
        UnpackQ8_0(block, p.codes, p.d);
        break;
      case BlockFormat::kMxfp4:
        UnpackMxfp4(block, p.codes, p.d);
        break;
      case BlockFormat::kQ2K:
        UnpackQ2K(block, p);
        break;
      case BlockFormat::kQ3K:
        UnpackQ3K(block, p);
        break;
      case BlockFormat::kQ4K:
        UnpackQ45K(block, block + 16, nullptr, p);
        break;
      case BlockFormat::kQ5K:
        UnpackQ45K(block, block + 48, block + 16, p);
        break;
      case BlockFormat::kQ6K:
        UnpackQ6K(block, p);
        break;
    }
    p.codes += values;
    p.d += values == 32 ? 1 : 2;
    p.dmin += 2;
    p.mins += 16;
  }
}

}  // namespace belay::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // BELAY_KERNELS_BLOCKS_UNPACK_INL_H_
