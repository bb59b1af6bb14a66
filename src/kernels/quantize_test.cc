// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/float_formats.h"
#include "kernels/targets_test.h"

namespace belay::kernels {
namespace {

uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }

// Rows whose blocks have every magnitude, zeros, and values on the grid's
// midpoints.
std::vector<float> QuantInput(size_t n, uint32_t seed) {
  std::vector<float> x = RandomFloats(n, seed, 3.0f);
  for (size_t i = 0; i < n; ++i) {
    const int which = static_cast<int>(i % 11);
    if (which == 3) x[i] = 0.0f;
    if (which == 5) x[i] = std::ldexp(x[i], -static_cast<int>(i % 40));
    if (which == 7) x[i] = belay::RoundToBf16(x[i]);
  }
  return x;
}

TEST(QuantizeTest, Bf16IsThatOfBase) {
  std::vector<float> x;
  for (uint32_t high = 0; high < 0x10000; high += 3) {
    for (const uint32_t low : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      x.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  x.resize(x.size() / 16 * 16 + 5);  // a tail for every vector length
  ForEachTarget([&] {
    std::vector<uint16_t> y(x.size());
    F32ToBf16(x.data(), x.size(), y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(y[i], Bf16FromF32(x[i])) << std::hex << Bits(x[i]);
    }
    std::vector<float> back(y.size());
    Bf16ToF32(y.data(), y.size(), back.data());
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_EQ(Bits(back[i]), Bits(F32FromBf16(y[i])));
    }
  });
}

// The grid of e4m3 with its neighbours, in a block whose scale is 1: the
// largest value stays below 448, for which fl(448 * fl(1/448)) > 1 would
// give 2.
TEST(QuantizeTest, E4m3RoundsAsBase) {
  std::vector<float> x;
  for (int code = 0; code < 0x7e; ++code) {
    const float here = F32FromE4m3(static_cast<uint8_t>(code));
    const float next =
        F32FromE4m3(static_cast<uint8_t>(std::min(code + 1, 0x7e)));
    const float middle = 0.5f * (here + next);
    for (const float v : {here, middle, std::nextafter(middle, 0.0f),
                          std::nextafter(middle, 1e9f)}) {
      for (const float sign : {1.0f, -1.0f}) x.push_back(sign * v);
    }
  }
  ForEachTarget([&] {
    std::vector<float> y(x.size());
    QuantizeE4m3(x.data(), x.size(), 2048, y.data());
    for (size_t i = 0; i < x.size(); ++i) {
      ASSERT_EQ(Bits(y[i]), Bits(F32FromE4m3(E4m3FromF32(x[i])))) << x[i];
    }
  });
}

TEST(QuantizeTest, BlocksMatchTheirCodes) {
  for (const size_t n : {16u, 64u, 128u, 200u, 448u, 513u}) {
    const std::vector<float> x = QuantInput(n, static_cast<uint32_t>(n));
    const size_t block = n >= 128 ? 128 : 16;
    ForEachTarget([&] {
      SCOPED_TRACE(n);
      std::vector<float> y(n);
      QuantizeE4m3(x.data(), n, block, y.data());
      std::vector<uint8_t> codes(n);
      std::vector<uint8_t> scales((n + block - 1) / block);
      EncodeE4m3(x.data(), n, block, codes.data(), scales.data());
      std::vector<float> decoded(n);
      DecodeE4m3(codes.data(), scales.data(), n, block, decoded.data());
      for (size_t i = 0; i < n; ++i) {
        const size_t first = i / block * block;
        float amax = kActQuantFloor;
        for (size_t j = first; j < std::min(n, first + block); ++j) {
          amax = std::max(amax, std::abs(x[j]));
        }
        const uint8_t scale = ScaleCode(amax, kInvE4m3Max);
        ASSERT_EQ(scales[i / block], scale);
        const float s = F32FromE8m0(scale);
        const float expected = F32FromE4m3(E4m3FromF32(x[i] / s)) * s;
        ASSERT_EQ(y[i], expected) << i;
        ASSERT_EQ(decoded[i], expected) << i;
      }
    });
  }
}

TEST(QuantizeTest, Fp4BlocksMatchTheirCodes) {
  for (const size_t n : {32u, 64u, 128u}) {
    const std::vector<float> x = QuantInput(n, static_cast<uint32_t>(n));
    ForEachTarget([&] {
      SCOPED_TRACE(n);
      std::vector<float> y(n);
      QuantizeE2m1(x.data(), n, 32, y.data());
      std::vector<uint8_t> codes(n / 2);
      std::vector<uint8_t> scales(n / 32);
      EncodeE2m1(x.data(), n, 32, codes.data(), scales.data());
      std::vector<float> decoded(n);
      DecodeE2m1(codes.data(), scales.data(), n, 32, decoded.data());
      for (size_t i = 0; i < n; ++i) {
        const float s = F32FromE8m0(scales[i / 32]);
        const float expected = F32FromE2m1(E2m1FromF32(x[i] / s)) * s;
        ASSERT_EQ(y[i], expected) << i;
        ASSERT_EQ(decoded[i], expected) << i;
      }
    });
  }
}

// The midpoints of e2m1 go to the even code.
TEST(QuantizeTest, E2m1Ties) {
  std::vector<float> x = {6.0f, 0.25f, 0.75f,  1.25f, 1.75f, 2.5f,
                          3.5f, 5.0f,  -0.25f, -5.0f, 0.0f,  -2.5f};
  x.resize(32);
  const std::vector<float> expected = {6.0f, 0.0f, 1.0f, 1.0f,  2.0f, 2.0f,
                                       4.0f, 4.0f, 0.0f, -4.0f, 0.0f, -2.0f};
  ForEachTarget([&] {
    std::vector<float> y(x.size());
    QuantizeE2m1(x.data(), x.size(), 32, y.data());
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(y[i], expected[i]);
  });
}

}  // namespace
}  // namespace belay::kernels
