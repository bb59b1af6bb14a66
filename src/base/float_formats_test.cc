// SPDX-License-Identifier: Apache-2.0
// The conversions are held against a slow search: the table of all values of a
// format, written down from its definition, and the midpoints between them.
// Midpoints and arguments are exact in double, so the search is exact.
#include "base/float_formats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace belay {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// A format whose code orders its non-negative values: value of code c =
// mantissa and exponent as IEEE says, with subnormals.
double ValueOf(uint32_t code, int exponent_bits, int mantissa_bits, int bias) {
  const uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
  const int exponent =
      static_cast<int>(code >> mantissa_bits) & ((1 << exponent_bits) - 1);
  if (exponent == 0) {
    return std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissa_bits);
  }
  return std::ldexp(static_cast<double>(mantissa + (1u << mantissa_bits)),
                    exponent - bias - mantissa_bits);
}

class SlowFormat {
 public:
  // Codes 0..max_code are finite. `next` is the value that code max_code + 1
  // would have (the border of overflow), or infinity to saturate.
  SlowFormat(int exponent_bits, int mantissa_bits, int bias, uint32_t max_code,
             bool saturates) {
    for (uint32_t code = 0; code <= max_code; ++code) {
      values_.push_back(ValueOf(code, exponent_bits, mantissa_bits, bias));
    }
    for (size_t i = 0; i + 1 < values_.size(); ++i) {
      midpoints_.push_back((values_[i] + values_[i + 1]) / 2);
    }
    if (!saturates) {  // one more step of the last size
      const double last = values_.back();
      const double step = last - values_[values_.size() - 2];
      midpoints_.push_back(last + step / 2);
    }
  }

  const std::vector<double>& values() const { return values_; }
  const std::vector<double>& midpoints() const { return midpoints_; }

  // The code nearest to |x|, ties to the even code.
  uint32_t Nearest(double x) const {
    const double mag = std::abs(x);
    const auto above =
        std::lower_bound(midpoints_.begin(), midpoints_.end(), mag);
    uint32_t code = static_cast<uint32_t>(above - midpoints_.begin());
    if (above != midpoints_.end() && *above == mag && code % 2 == 1) ++code;
    return code;
  }

 private:
  std::vector<double> values_;
  std::vector<double> midpoints_;
};

const SlowFormat& SlowBf16() {
  static const SlowFormat format(8, 7, 127, 0x7f7f, false);
  return format;
}
const SlowFormat& SlowF16() {
  static const SlowFormat format(5, 10, 15, 0x7bff, false);
  return format;
}
const SlowFormat& SlowE4m3() {
  static const SlowFormat format(4, 3, 7, 0x7e, true);
  return format;
}
const SlowFormat& SlowE2m1() {
  static const SlowFormat format(2, 1, 1, 7, true);
  return format;
}

// Every finite bf16, both signs; every value and midpoint of `format`, and the
// float32 numbers beside them.
std::vector<float> Arguments(const SlowFormat& format) {
  std::vector<float> xs;
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const float x = std::bit_cast<float>(code << 16);
    if (std::isfinite(x)) xs.push_back(x);
  }
  for (const auto* list : {&format.values(), &format.midpoints()}) {
    for (const double value : *list) {
      const float x = static_cast<float>(value);
      EXPECT_EQ(static_cast<double>(x), value);
      for (const float y :
           {x, std::nextafter(x, -INFINITY), std::nextafter(x, INFINITY)}) {
        xs.push_back(y);
        xs.push_back(-y);
      }
    }
  }
  return xs;
}

TEST(E4m3Test, AllCodesHaveTheValueOfTheFormat) {
  for (uint32_t code = 0; code < 0x7f; ++code) {
    const float value = static_cast<float>(SlowE4m3().values()[code]);
    EXPECT_EQ(F32FromE4m3(static_cast<uint8_t>(code)), value);
    const float negative = F32FromE4m3(static_cast<uint8_t>(code | 0x80));
    EXPECT_EQ(negative, -value);
    EXPECT_TRUE(std::signbit(negative));
  }
  EXPECT_TRUE(std::isnan(F32FromE4m3(0x7f)));
  EXPECT_TRUE(std::isnan(F32FromE4m3(0xff)));
  EXPECT_EQ(F32FromE4m3(0x7e), kE4m3Max);
  EXPECT_EQ(F32FromE4m3(0x01), 0x1p-9f);
}

TEST(E4m3Test, RoundsAsTheSlowSearch) {
  for (const float x : Arguments(SlowE4m3())) {
    const uint32_t sign = std::signbit(x) ? 0x80u : 0u;
    ASSERT_EQ(E4m3FromF32(x), sign | SlowE4m3().Nearest(x)) << x;
  }
  EXPECT_EQ(E4m3FromF32(INFINITY), 0x7e);
  EXPECT_EQ(E4m3FromF32(-INFINITY), 0xfe);
  EXPECT_EQ(E4m3FromF32(kNan), 0x7f);
  EXPECT_EQ(E4m3FromF32(-kNan), 0xff);
}

TEST(E2m1Test, AllCodesHaveTheValueOfTheFormat) {
  for (uint32_t code = 0; code < 8; ++code) {
    const float value = static_cast<float>(SlowE2m1().values()[code]);
    EXPECT_EQ(F32FromE2m1(static_cast<uint8_t>(code)), value);
    EXPECT_EQ(F32FromE2m1(static_cast<uint8_t>(code | 8)), -value);
    EXPECT_TRUE(std::signbit(F32FromE2m1(static_cast<uint8_t>(code | 8))));
  }
  EXPECT_EQ(F32FromE2m1(7), 6.0f);
}

TEST(E2m1Test, RoundsAsTheSlowSearch) {
  for (const float x : Arguments(SlowE2m1())) {
    const uint32_t sign = std::signbit(x) ? 8u : 0u;
    ASSERT_EQ(E2m1FromF32(x), sign | SlowE2m1().Nearest(x)) << x;
  }
  EXPECT_EQ(E2m1FromF32(INFINITY), 7);
  EXPECT_EQ(E2m1FromF32(-INFINITY), 15);
}

// The ties by name, as the official kernel's table has them.
TEST(E2m1Test, TiesGoToTheEvenCode) {
  const struct {
    float x, rounded;
  } ties[] = {{.25f, 0}, {.75f, 1}, {1.25f, 1}, {1.75f, 2},
              {2.5f, 2}, {3.5f, 4}, {5.0f, 4}};
  for (const auto& tie : ties) {
    EXPECT_EQ(F32FromE2m1(E2m1FromF32(tie.x)), tie.rounded);
    EXPECT_EQ(F32FromE2m1(E2m1FromF32(-tie.x)), -tie.rounded);
  }
}

TEST(E2m1Test, TheLowNibbleIsTheEvenIndex) {
  EXPECT_EQ(PackE2m1(0x3, 0xa), 0xa3);
  EXPECT_EQ(PackE2m1(0xf3, 0xfa), 0xa3);  // only the low four bits count
}

TEST(Bf16Test, AllCodesComeBack) {
  for (uint32_t code = 0; code < 0x10000; ++code) {
    const auto bf16 = static_cast<uint16_t>(code);
    const float x = F32FromBf16(bf16);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(F32FromBf16(Bf16FromF32(x))));
      EXPECT_EQ(Bf16FromF32(x) & 0x8000, bf16 & 0x8000);
      continue;
    }
    EXPECT_EQ(Bf16FromF32(x), bf16);
    EXPECT_EQ(Bf16FromF64(x), bf16);
  }
}

TEST(Bf16Test, RoundsAsTheSlowSearch) {
  for (const float x : Arguments(SlowBf16())) {
    const uint32_t code = (std::signbit(x) ? 0x8000u : 0u) |
                          SlowBf16().Nearest(static_cast<double>(x));
    ASSERT_EQ(Bf16FromF32(x), code) << x;
    ASSERT_EQ(Bf16FromF64(x), code) << x;
    ASSERT_EQ(std::bit_cast<uint32_t>(RoundToBf16(x)), code << 16);
  }
}

// Doubles so near to a midpoint that float32 would make them the midpoint, and
// the tie rule would then go the wrong way.
TEST(Bf16Test, DoublesAreRoundedOnce) {
  int n_double_rounding = 0;
  for (const double midpoint : SlowBf16().midpoints()) {
    for (const double x :
         {midpoint, std::nextafter(midpoint, 0.0),
          std::nextafter(midpoint, kInf), midpoint * (1 - 0x1p-26),
          midpoint * (1 + 0x1p-26)}) {
      const auto code = static_cast<uint16_t>(SlowBf16().Nearest(x));
      ASSERT_EQ(Bf16FromF64(x), code) << x;
      ASSERT_EQ(Bf16FromF64(-x), code | 0x8000) << x;
      n_double_rounding += Bf16FromF32(static_cast<float>(x)) != code;
    }
  }
  EXPECT_GT(n_double_rounding, 10000);  // the naive way fails this test
  EXPECT_EQ(Bf16FromF64(1e300), 0x7f80);
  EXPECT_EQ(Bf16FromF64(-kInf), 0xff80);
  EXPECT_EQ(Bf16FromF64(1e-300), 0);
  EXPECT_EQ(Bf16FromF64(-1e-300), 0x8000);
  EXPECT_TRUE(std::isnan(RoundF64ToBf16(static_cast<double>(kNan))));
}

TEST(F16Test, AllCodesHaveTheValueOfTheFormatAndComeBack) {
  for (uint32_t code = 0; code <= 0x7bff; ++code) {
    const float value = static_cast<float>(SlowF16().values()[code]);
    const auto positive = static_cast<uint16_t>(code);
    const auto negative = static_cast<uint16_t>(code | 0x8000);
    ASSERT_EQ(F32FromF16(positive), value);
    ASSERT_EQ(F32FromF16(negative), -value);
    ASSERT_TRUE(std::signbit(F32FromF16(negative)));
    ASSERT_EQ(F16FromF32(value), positive);
    ASSERT_EQ(F16FromF32(-value), negative);
  }
  EXPECT_EQ(F32FromF16(0x7c00), INFINITY);
  EXPECT_EQ(F32FromF16(0xfc00), -INFINITY);
  for (uint32_t code = 0x7c01; code < 0x8000; ++code) {
    EXPECT_TRUE(std::isnan(F32FromF16(static_cast<uint16_t>(code))));
  }
}

TEST(F16Test, RoundsAsTheSlowSearch) {
  for (const float x : Arguments(SlowF16())) {
    const uint32_t sign = std::signbit(x) ? 0x8000u : 0u;
    ASSERT_EQ(F16FromF32(x), sign | SlowF16().Nearest(x)) << x;
  }
}

// All upper halves of a float32 that reach the range of f16, with low bits
// around the rounding position.
TEST(F16Test, RoundsAsTheSlowSearchEverywhere) {
  for (uint32_t upper = 0x32000000; upper < 0x48000000; upper += 0x2000) {
    for (const uint32_t low : {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu}) {
      const float x = std::bit_cast<float>(upper | low);
      ASSERT_EQ(F16FromF32(x), SlowF16().Nearest(x)) << x;
    }
  }
  EXPECT_EQ(F16FromF32(INFINITY), 0x7c00);
  EXPECT_EQ(F16FromF32(-std::numeric_limits<float>::max()), 0xfc00);
  EXPECT_EQ(F16FromF32(kNan) & 0x7e00, 0x7e00);
}

TEST(E8m0Test, AllCodesArePowersOfTwo) {
  for (int code = 0; code < 255; ++code) {
    EXPECT_EQ(static_cast<double>(F32FromE8m0(static_cast<uint8_t>(code))),
              std::ldexp(1.0, code - 127));
  }
  EXPECT_TRUE(std::isnan(F32FromE8m0(kE8m0Nan)));
}

TEST(ScaleTest, ConstantsAreTheRoundedReciprocals) {
  EXPECT_EQ(kInvE4m3Max, 1.0f / 448.0f);
  EXPECT_EQ(kInvE2m1Max, 1.0f / 6.0f);
  EXPECT_EQ(kFp4ActQuantFloor, 6.0f * 0x1p-126f);
}

// ceil(log2(y)) from frexp: y = m * 2^e with m in [0.5, 1).
int CeilLog2(float y) {
  int exponent;
  const float m = std::frexp(y, &exponent);
  return m == 0.5f ? exponent - 1 : exponent;
}

TEST(ScaleTest, EveryAmaxGetsTheSmallestPowerOfTwoThatHoldsIt) {
  const struct {
    float floor, inv_max, max;
  } formats[] = {{kActQuantFloor, kInvE4m3Max, 448.0f},
                 {kFp4ActQuantFloor, kInvE2m1Max, 6.0f}};
  for (const auto& format : formats) {
    for (uint32_t code = 1; code < 0x7f80; ++code) {
      const float x = F32FromBf16(static_cast<uint16_t>(code));
      const float amax = std::max(x, format.floor);
      const uint8_t scale = ScaleCode(amax, format.inv_max);
      ASSERT_EQ(scale, CeilLog2(amax * format.inv_max) + 127) << x;
      const float quotient = amax / F32FromE8m0(scale);
      ASSERT_GT(quotient, format.max / 2) << x;
      ASSERT_LE(quotient, format.max) << x;
    }
  }
  // The smallest scale of an activation (reference: 2^-22).
  EXPECT_EQ(ScaleCode(kActQuantFloor, kInvE4m3Max), 127 - 22);
  EXPECT_EQ(ScaleCode(kFp4ActQuantFloor, kInvE2m1Max), 1);
}

}  // namespace
}  // namespace belay
