// SPDX-License-Identifier: Apache-2.0
#include "tensor/block_format.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/float_formats.h"

namespace belay {
namespace {

uint8_t Byte(const std::byte* p) { return std::to_integer<uint8_t>(*p); }

double Half(const std::byte* p) {
  uint16_t bits;
  std::memcpy(&bits, p, sizeof(bits));
  return F32FromF16(bits);
}

int Bit(uint8_t byte, size_t at) { return (byte >> at) & 1; }

void DecodeQ8_0(const std::byte* block, double* out) {
  const double d = Half(block);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<int8_t>(Byte(block + 2 + i));
  }
}

void DecodeMxfp4(const std::byte* block, double* out) {
  const double d = F32FromE8m0(Byte(block));
  for (int i = 0; i < 16; ++i) {
    const uint8_t q = Byte(block + 1 + i);
    out[i] = d * F32FromE2m1(q & 15u);
    out[i + 16] = d * F32FromE2m1(q >> 4);
  }
}

// Q2_K and Q3_K: byte l of a half of 32 bytes holds values l, 32 + l, 64 + l
// and 96 + l of its 128, two bits each, lowest first; 16 values share a scale.
void DecodeQ2K(const std::byte* block, double* out) {
  const std::byte* const q = block + 16;
  const double d = Half(block + 80);
  const double dmin = Half(block + 82);
  for (size_t i = 0; i < 256; ++i) {
    const uint8_t scale_min = Byte(block + i / 16);
    const int code =
        (Byte(q + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2)) & 3;
    out[i] = d * ((scale_min & 15) * code) - dmin * (scale_min >> 4);
  }
}

// The 6-bit scales of Q3_K less 32: four low bits of i in byte i % 8, two high
// bits in byte 8 + i % 4.
int ScaleOfQ3K(const std::byte* scales, size_t i) {
  const int low = (Byte(scales + i % 8) >> (i / 8 * 4)) & 15;
  const int high = (Byte(scales + 8 + i % 4) >> (i / 4 * 2)) & 3;
  return (low | high << 4) - 32;
}

void DecodeQ3K(const std::byte* block, double* out) {
  const std::byte* const q = block + 32;
  const double d = Half(block + 108);
  for (size_t i = 0; i < 256; ++i) {
    const int low = (Byte(q + i / 128 * 32 + i % 32) >> (i % 128 / 32 * 2)) & 3;
    const int high = Bit(Byte(block + i % 32), i / 32);
    const int code = low + 4 * high - 4;
    out[i] = d * (ScaleOfQ3K(block + 96, i / 16) * code);
  }
}

struct ScaleMin {
  int scale;
  int min;
};

// Eight pairs of 6 bits in 12 bytes: the first four in the low bits of bytes
// 0-3 and 4-7, the others' low four bits in bytes 8-11 and their high two in
// the spare bits of bytes 0-7.
ScaleMin ScaleMinOfQ4K(const std::byte* p, size_t i) {
  if (i < 4) return {Byte(p + i) & 63, Byte(p + i + 4) & 63};
  return {(Byte(p + i + 4) & 15) | (Byte(p + i - 4) >> 6) << 4,
          (Byte(p + i + 4) >> 4) | (Byte(p + i) >> 6) << 4};
}

// Q4_K and Q5_K: byte l of a quarter of 32 bytes holds values l and 32 + l of
// its 64; 32 values share a scale. `high`: bit i / 32 of byte i % 32, or null.
void DecodeQ45K(const std::byte* block, const std::byte* q,
                const std::byte* high, double* out) {
  const double d = Half(block);
  const double dmin = Half(block + 2);
  for (size_t i = 0; i < 256; ++i) {
    const ScaleMin s = ScaleMinOfQ4K(block + 4, i / 32);
    int code = (Byte(q + i / 64 * 32 + i % 32) >> (i % 64 / 32 * 4)) & 15;
    if (high != nullptr) code += 16 * Bit(Byte(high + i % 32), i / 32);
    out[i] = d * (s.scale * code) - dmin * s.min;
  }
}

// Per half of 128: value 32 j + l has its low four bits in byte 32 (j % 2) + l
// of 64 (low nibble for j < 2), its high two in bits 2 j of byte l of 32.
void DecodeQ6K(const std::byte* block, double* out) {
  const double d = Half(block + 208);
  for (size_t i = 0; i < 256; ++i) {
    const size_t half = i / 128;
    const size_t j = i % 128 / 32;
    const size_t l = i % 32;
    const int low =
        (Byte(block + 64 * half + 32 * (j % 2) + l) >> (j / 2 * 4)) & 15;
    const int high = (Byte(block + 128 + 32 * half + l) >> (2 * j)) & 3;
    const int scale_byte = Byte(block + 192 + i / 16);
    const int scale = scale_byte < 128 ? scale_byte : scale_byte - 256;
    out[i] = d * (scale * ((low | high << 4) - 32));
  }
}

void DecodeBlock(BlockFormat format, const std::byte* block, double* out) {
  switch (format) {
    case BlockFormat::kNone:
      break;
    case BlockFormat::kQ8_0:
      return DecodeQ8_0(block, out);
    case BlockFormat::kMxfp4:
      return DecodeMxfp4(block, out);
    case BlockFormat::kQ2K:
      return DecodeQ2K(block, out);
    case BlockFormat::kQ3K:
      return DecodeQ3K(block, out);
    case BlockFormat::kQ4K:
      return DecodeQ45K(block, block + 16, nullptr, out);
    case BlockFormat::kQ5K:
      return DecodeQ45K(block, block + 48, block + 16, out);
    case BlockFormat::kQ6K:
      return DecodeQ6K(block, out);
  }
  BELAY_CHECK(false);
}

}  // namespace

std::string_view BlockFormatName(BlockFormat format) {
  constexpr std::array<std::string_view, kBlockFormats> kNames = {
      "", "Q8_0", "MXFP4", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"};
  return kNames[static_cast<size_t>(format)];
}

void DecodeBlocks(BlockFormat format, const std::byte* row, int64_t n,
                  double* out) {
  const int64_t values = BlockValues(format);
  BELAY_CHECK(n % values == 0);
  for (int64_t i = 0; i < n; i += values, row += BlockBytes(format)) {
    DecodeBlock(format, row, out + i);
  }
}

void EncodeQ8_0(const float* x, int64_t n, std::byte* out) {
  BELAY_CHECK(n % 32 == 0);
  for (int64_t i = 0; i < n; i += 32, out += 34) {
    float amax = 0.0f;
    for (int64_t j = i; j < i + 32; ++j) amax = std::max(amax, std::abs(x[j]));
    const float d = amax / 127.0f;
    const float inverse = d == 0.0f ? 0.0f : 1.0f / d;
    const uint16_t bits = F16FromF32(d);
    std::memcpy(out, &bits, sizeof(bits));
    for (int64_t j = 0; j < 32; ++j) {
      const float q = std::nearbyint(x[i + j] * inverse);
      out[2 + j] = static_cast<std::byte>(
          static_cast<int8_t>(std::clamp(q, -127.0f, 127.0f)));
    }
  }
}

}  // namespace belay
