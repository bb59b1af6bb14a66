// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks/matmul_int8.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/float_formats.h"
#include "kernels/blocks/blocks_test.h"
#include "kernels/blocks/pack_int8.h"
#include "kernels/pack.h"
#include "kernels/simd_target.h"
#include "kernels/targets_test.h"

namespace belay::kernels {
namespace {

constexpr int64_t kTokenCounts[] = {1, 2, 3, 5, 8, 9, 19};

// A plain weight and what it is once packed.
struct Packed {
  WeightView view;
  std::vector<std::byte> memory;
};

Packed PackAll(const WeightView& plain) {
  const WeightView target = Int8Target(plain);
  Packed packed;
  packed.memory.resize(PackedWeightBytes(target) + 64, std::byte{0xff});
  std::byte* data = packed.memory.data();
  data += (64 - reinterpret_cast<uintptr_t>(data) % 64) % 64;
  // In two parts, the last one first.
  const int64_t half =
      std::min(plain.n_rows, plain.n_rows / 2 / kPackRows * kPackRows);
  PackInt8Rows(plain, half, plain.n_rows, data);
  PackInt8Rows(plain, 0, half, data);
  packed.view = PackedView(target, data);
  return packed;
}

// FP8 or FP4 codes with scales, and the numbers that they are.
struct Scaled {
  WeightView view;
  std::vector<std::byte> codes;
  std::vector<float> scales;
  std::vector<uint8_t> scale_codes;
  std::vector<double> values;  // [n_rows, n_cols]
};

Scaled MakeFp8(int64_t n_rows, int64_t n_cols) {
  std::mt19937 rng(5);
  Scaled w;
  w.view.kind = WeightKind::kFp8;
  w.view.n_rows = n_rows;
  w.view.n_cols = n_cols;
  w.view.row_bytes_stride = static_cast<size_t>(n_cols);
  w.view.block_rows = 128;
  w.view.block_cols = 128;
  w.view.scale_stride = (n_cols + 127) / 128;
  w.scales.resize(
      static_cast<size_t>((n_rows + 127) / 128 * w.view.scale_stride));
  for (float& s : w.scales)
    s = std::ldexp(1.0f, -8 - static_cast<int>(rng() % 4));
  for (int64_t i = 0; i < n_rows * n_cols; ++i) {
    uint8_t code = static_cast<uint8_t>(rng());
    if ((code & 0x7f) == 0x7f) code = 0x80;  // NaN
    if (i % n_cols < 32) code = 0;           // a part without a scale
    if (i % n_cols / 32 == 1) code &= 0x87;  // subnormals alone
    w.codes.push_back(static_cast<std::byte>(code));
    const int64_t at =
        i / n_cols / 128 * w.view.scale_stride + i % n_cols / 128;
    w.values.push_back(static_cast<double>(F32FromE4m3(code)) *
                       w.scales[static_cast<size_t>(at)]);
  }
  w.view.codes = w.codes.data();
  w.view.scale = w.scales.data();
  return w;
}

// Scales from 2^-12 on, `n_scales` powers of two.
Scaled MakeFp4(int64_t n_rows, int64_t n_cols, uint32_t n_scales = 10) {
  std::mt19937 rng(6);
  Scaled w;
  w.view.kind = WeightKind::kFp4;
  w.view.n_rows = n_rows;
  w.view.n_cols = n_cols;
  w.view.row_bytes_stride = static_cast<size_t>(n_cols / 2);
  w.view.block_cols = 32;
  w.view.scale_stride = n_cols / 32;
  for (int64_t i = 0; i < n_rows * n_cols / 32; ++i) {
    w.scale_codes.push_back(static_cast<uint8_t>(115 + rng() % n_scales));
  }
  for (int64_t i = 0; i < n_rows * n_cols; ++i) {
    const auto code = static_cast<uint8_t>(rng() & 15);
    if (i % 2 == 0) {
      w.codes.push_back(static_cast<std::byte>(code));
    } else {
      w.codes.back() |= static_cast<std::byte>(code << 4);
    }
    w.values.push_back(static_cast<double>(F32FromE2m1(code)) *
                       F32FromE8m0(w.scale_codes[static_cast<size_t>(i / 32)]));
  }
  w.view.codes = w.codes.data();
  w.view.scale_code = w.scale_codes.data();
  return w;
}

class MatMulInt8Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Avx512Bf16Allowed()) GTEST_SKIP() << "this CPU has no AVX-512 VNNI";
  }
};

TEST_F(MatMulInt8Test, BlocksMatchDouble) {
  for (const BlockFormat format : {BlockFormat::kQ8_0, BlockFormat::kMxfp4}) {
    SCOPED_TRACE(std::string(BlockFormatName(format)));
    for (const int64_t n_rows : {1, 15, 70, 130}) {
      for (const int64_t n_cols : {32, 160, 256, 768}) {
        const TestBlocks w = MakeBlocks(format, n_rows, n_cols);
        const MatMulKernel* kernel = Int8DotMatMul(w.view);
        ASSERT_NE(kernel, nullptr);
        Packed packed = PackAll(w.view);
        for (const int64_t n_tokens : kTokenCounts) {
          std::vector<float> x =
              RandomFloats(static_cast<size_t>(n_tokens * n_cols), 7);
          std::fill_n(x.begin(), 32, 0.0f);
          TestBlocks check = w;
          check.view = packed.view;
          Check(*kernel, check, QuantiseInt8(x, 32), x, n_tokens);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

// The same numbers in both: FP4 loses nothing, with scales that a decoded panel
// takes (four powers of two) and others.
TEST_F(MatMulInt8Test, Fp4MatchesDouble) {
  for (const uint32_t n_scales : {1, 4, 5, 10}) {
    const Scaled w = MakeFp4(130, 416, n_scales);
    const MatMulKernel* kernel = Int8DotMatMul(w.view);
    ASSERT_NE(kernel, nullptr);
    Packed packed = PackAll(w.view);
    for (const int64_t n_tokens : kTokenCounts) {
      const std::vector<float> x =
          RandomFloats(static_cast<size_t>(n_tokens * 416), 8);
      TestBlocks check;
      check.view = packed.view;
      check.values = w.values;
      Check(*kernel, check, QuantiseInt8(x, 32), x, n_tokens);
      if (HasFatalFailure()) return;
    }
  }
}

// FP8 becomes int8: each weight is within half a step of its part, whose scale
// is within 2^-11 of a / 127.
TEST_F(MatMulInt8Test, Fp8IsWithinHalfAStep) {
  constexpr int64_t kRows = 200;
  constexpr int64_t kCols = 384;
  const Scaled w = MakeFp8(kRows, kCols);
  const MatMulKernel* kernel = Int8DotMatMul(w.view);
  ASSERT_NE(kernel, nullptr);
  Packed packed = PackAll(w.view);
  const std::vector<float> x = RandomFloats(size_t{3} * kCols, 9);
  const std::vector<double> quantised = QuantiseInt8(x, 32);
  const std::vector<float> y = Multiply(*kernel, packed.view, x, 3);
  double largest = 0.0;
  for (size_t t = 0; t < 3; ++t) {
    for (size_t r = 0; r < kRows; ++r) {
      double sum = 0.0;
      double bound = 0.0;
      for (size_t part = 0; part < kCols; part += 128) {
        double a = 0.0;
        double x_sum = 0.0;
        for (size_t i = part; i < part + 128; ++i) {
          const double value = w.values[r * kCols + i];
          sum += quantised[t * kCols + i] * value;
          x_sum += std::abs(quantised[t * kCols + i]);
          a = std::max(a, std::abs(value));
        }
        bound += x_sum * a / 127 * 0.5 * (1 + 0x1p-8);
      }
      const double error = std::abs(y[t * kRows + r] - sum);
      ASSERT_LE(error, bound) << "token " << t << ", row " << r;
      largest = std::max(largest, error / bound);
    }
  }
  // The bound is not so wide that anything passes.
  EXPECT_GT(largest, 0.05);
}

void CheckCompany(const WeightView& plain) {
  constexpr int64_t kTokens = 23;
  const MatMulKernel* kernel = Int8DotMatMul(plain);
  ASSERT_NE(kernel, nullptr);
  const Packed packed = PackAll(plain);
  const auto n_rows = static_cast<size_t>(plain.n_rows);
  const std::vector<float> x =
      RandomFloats(static_cast<size_t>(kTokens * plain.n_cols), 10);
  const auto together = Multiply(*kernel, packed.view, x, kTokens);
  for (int32_t t = 0; t < kTokens; ++t) {
    const auto alone = Multiply(*kernel, packed.view, x, 1, &t);
    for (size_t r = 0; r < n_rows; ++r) {
      ASSERT_EQ(alone[r], together[static_cast<size_t>(t) * n_rows + r]);
    }
  }
}

TEST_F(MatMulInt8Test, ATokenIsTheSameInEveryCompanyAndEveryRange) {
  for (const BlockFormat format : {BlockFormat::kQ8_0, BlockFormat::kMxfp4}) {
    CheckCompany(MakeBlocks(format, 90, 512).view);
  }
  for (const uint32_t n_scales : {1, 4, 5, 10}) {
    CheckCompany(MakeFp4(90, 512, n_scales).view);
  }
  CheckCompany(MakeFp8(90, 512).view);
}

TEST_F(MatMulInt8Test, RefusesWhatItCannotPack) {
  Scaled fp8 = MakeFp8(4, 256);
  EXPECT_NE(Int8DotMatMul(fp8.view), nullptr);
  fp8.view.block_cols = 64;
  EXPECT_EQ(Int8DotMatMul(fp8.view), nullptr);
  Scaled fp4 = MakeFp4(4, 256);
  fp4.view.block_cols = 64;
  EXPECT_EQ(Int8DotMatMul(fp4.view), nullptr);
  EXPECT_EQ(Int8DotMatMul(MakeBlocks(BlockFormat::kQ4K, 4, 256).view), nullptr);
}

// A code that is NaN makes a result that is NaN, as in the official kernel.
TEST_F(MatMulInt8Test, Fp8NanStaysNan) {
  Scaled w = MakeFp8(4, 128);
  w.codes[128] = std::byte{0x7f};  // row 1
  const MatMulKernel* kernel = Int8DotMatMul(w.view);
  ASSERT_NE(kernel, nullptr);
  Packed packed = PackAll(w.view);
  const auto y = Multiply(*kernel, packed.view, RandomFloats(128, 1), 1);
  EXPECT_TRUE(std::isnan(y[1]));
  EXPECT_FALSE(std::isnan(y[0]));
  EXPECT_FALSE(std::isnan(y[2]));
}

}  // namespace
}  // namespace belay::kernels
