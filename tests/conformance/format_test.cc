// SPDX-License-Identifier: Apache-2.0
// Number formats and quantisation rules of base/float_formats.h, exhaustively
// and bit-exact. The other tests use these functions as their measure.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "base/float_formats.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/goldens.h"
#include "tests/conformance/quant_rules.h"

namespace belay::conformance {
namespace {

TEST(Formats, TablesDecode) {
  const auto e4m3 = Golden("fmt.e4m3_value").as<float>();
  const auto e8m0 = Golden("fmt.e8m0_value").as<float>();
  const auto e2m1 = Golden("fmt.e2m1_value").as<float>();
  std::vector<float> codes[3];
  for (int code = 0; code < 256; ++code) {
    const auto c = static_cast<uint8_t>(code);
    codes[0].push_back(F32FromE4m3(c));
    codes[1].push_back(F32FromE8m0(c));
    if (code < 16) codes[2].push_back(F32FromE2m1(c));
  }
  // The tables hold 0 where a code means NaN.
  for (const size_t nan : {0x7f, 0xff}) {
    EXPECT_TRUE(std::isnan(codes[0][nan]));
    codes[0][nan] = 0.0f;
  }
  EXPECT_TRUE(std::isnan(codes[1][0xff]));
  codes[1][0xff] = 0.0f;
  EXPECT_TRUE(SameBits(codes[0], {e4m3.begin(), e4m3.end()}));
  EXPECT_TRUE(SameBits(codes[1], {e8m0.begin(), e8m0.end()}));
  EXPECT_TRUE(SameBits(codes[2], {e2m1.begin(), e2m1.end()}));
}

// Every finite bf16 number.
TEST(Formats, EveryBf16Encodes) {
  const auto e4m3 = Golden("fmt.bf16_to_e4m3_code").as<uint8_t>();
  const auto e2m1 = Golden("fmt.bf16_to_e2m1_code").as<uint8_t>();
  int wrong = 0;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float x = F32FromBf16(static_cast<uint16_t>(bits));
    if (std::isnan(x)) continue;
    wrong += E4m3FromF32(x) != e4m3[bits];
    wrong += E2m1FromF32(x) != e2m1[bits];
  }
  EXPECT_EQ(wrong, 0);
}

// Every positive bf16 number as the largest magnitude of a group.
TEST(Formats, EveryScale) {
  const auto amax = Golden("fmt.amax_bf16_bits").as<uint8_t>();
  const auto fp8 = Golden("fmt.amax_fp8_scale_code").as<uint8_t>();
  const auto fp4 = Golden("fmt.amax_fp4_scale_code").as<uint8_t>();
  ASSERT_EQ(amax.size(), 2 * fp8.size());
  int wrong = 0;
  for (size_t i = 0; i < fp8.size(); ++i) {
    const float x = F32FromBf16(
        static_cast<uint16_t>(amax[2 * i] | (amax[2 * i + 1] << 8)));
    wrong += Fp8ScaleRule({&x, 1}) != fp8[i];
    wrong += Fp4ScaleRule({&x, 1}) != fp4[i];
  }
  EXPECT_EQ(wrong, 0);
}

// Codes and scales of every group of `group` columns of `name`.x.
void ExpectFp8Codes(const std::string& x_name, const std::string& codes_name,
                    const std::string& scale_name, size_t group) {
  const std::vector<float> x = GoldenFloats(x_name);
  const auto codes = Golden(codes_name).as<uint8_t>();
  const auto scales = Golden(scale_name).as<uint8_t>();
  ASSERT_EQ(scales.size(), x.size() / group);
  for (size_t g = 0; g < scales.size(); ++g) {
    const std::span<const float> values(&x[g * group], group);
    ASSERT_EQ(Fp8ScaleRule(values), scales[g]) << x_name << " group " << g;
    for (size_t i = 0; i < group; ++i) {
      ASSERT_EQ(E4m3FromF32(values[i] / F32FromE8m0(scales[g])),
                codes[g * group + i])
          << x_name << " group " << g << " value " << i;
    }
  }
}

TEST(Formats, ActQuantCodes) {
  ExpectFp8Codes("act_quant128.x", "act_quant128.codes",
                 "act_quant128.scale_code", 128);
  for (const std::string gemm : {"fp8_gemm", "fp8_gemm_tail", "fp4_gemm"}) {
    ExpectFp8Codes(gemm + ".x", gemm + ".x_codes", gemm + ".x_scale_code", 128);
  }
}

TEST(Formats, ActQuantInPlace) {
  const std::vector<float> x = GoldenFloats("act_quant64_inplace.x");
  std::vector<float> y = x;
  Fp8InPlaceRule(y, 64);
  EXPECT_TRUE(SameBits(y, GoldenFloats("act_quant64_inplace.y")));
  // The first published revision cast through bf16, which changed nothing.
  const auto initial = GoldenFloats("act_quant64_inplace.y_initial_release");
  EXPECT_TRUE(SameBits(x, initial));
  EXPECT_FALSE(SameBits(y, initial));
}

TEST(Formats, Fp4ActQuant) {
  const std::vector<float> x = GoldenFloats("fp4_act_quant.x");
  std::vector<float> y = x;
  Fp4InPlaceRule(y, 32);
  EXPECT_TRUE(SameBits(y, GoldenFloats("fp4_act_quant.y_inplace")));
  const auto packed = Golden("fp4_act_quant.packed").as<uint8_t>();
  const auto scales = Golden("fp4_act_quant.scale_code").as<uint8_t>();
  for (size_t g = 0; g < scales.size(); ++g) {
    ASSERT_EQ(Fp4ScaleRule({&x[g * 32], 32}), scales[g]) << "group " << g;
    const float s = F32FromE8m0(scales[g]);
    for (size_t i = 0; i < 32; i += 2) {
      const float* v = &x[g * 32 + i];
      ASSERT_EQ(PackE2m1(E2m1FromF32(v[0] / s), E2m1FromF32(v[1] / s)),
                packed[g * 16 + i / 2])
          << "group " << g << " value " << i;
    }
  }
}

}  // namespace
}  // namespace belay::conformance
