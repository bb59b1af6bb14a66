// SPDX-License-Identifier: Apache-2.0
#include "kernels/matmul.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <type_traits>

#include "base/float_formats.h"
#include "kernels/matmul_bf16.h"
#include "kernels/pack.h"
#include "kernels/targets_test.h"

namespace belay::kernels {
namespace {

// A random weight and its values in double.
struct TestWeight {
  WeightView view;
  std::vector<std::byte> codes;
  std::vector<float> scale;
  std::vector<uint8_t> scale_code;
  std::vector<double> values;
};

// Any code but the NaNs of e4m3.
std::byte RandomCode(WeightKind kind, std::mt19937& rng) {
  auto code = static_cast<uint8_t>(rng());
  if (kind == WeightKind::kFp8 && (code & 0x7f) == 0x7f) code ^= 1;
  return static_cast<std::byte>(code);
}

double ValueAt(const TestWeight& w, int64_t row, int64_t col) {
  const std::byte* codes = w.view.row(row);
  const int64_t at =
      row / w.view.block_rows * w.view.scale_stride + col / w.view.block_cols;
  switch (w.view.kind) {
    case WeightKind::kF32: {
      float v;
      std::memcpy(&v, codes + 4 * col, 4);
      return v;
    }
    case WeightKind::kBf16: {
      uint16_t v;
      std::memcpy(&v, codes + 2 * col, 2);
      return F32FromBf16(v);
    }
    case WeightKind::kF16: {
      uint16_t v;
      std::memcpy(&v, codes + 2 * col, 2);
      return F32FromF16(v);
    }
    case WeightKind::kInt8:
    case WeightKind::kInt8Wide:
    case WeightKind::kBlocks:
      break;
    case WeightKind::kFp8:
      return static_cast<double>(
                 F32FromE4m3(static_cast<uint8_t>(codes[col]))) *
             w.scale[static_cast<size_t>(at)];
    case WeightKind::kFp4: {
      const auto byte = static_cast<uint8_t>(codes[col / 2]);
      return static_cast<double>(F32FromE2m1(
                 static_cast<uint8_t>(col % 2 != 0 ? byte >> 4 : byte & 15))) *
             F32FromE8m0(w.scale_code[static_cast<size_t>(at)]);
    }
  }
  return 0.0;
}

void FillCodes(TestWeight& w, std::mt19937& rng) {
  const size_t n = w.codes.size();
  if (w.view.kind == WeightKind::kF32 || w.view.kind == WeightKind::kBf16) {
    const std::vector<float> values = RandomFloats(n, rng());
    for (size_t i = 0; i < n / 4 && w.view.kind == WeightKind::kF32; ++i) {
      std::memcpy(&w.codes[4 * i], &values[i], 4);
    }
    for (size_t i = 0; i < n / 2 && w.view.kind == WeightKind::kBf16; ++i) {
      const uint16_t v = Bf16FromF32(values[i]);
      std::memcpy(&w.codes[2 * i], &v, 2);
    }
    return;
  }
  for (std::byte& code : w.codes) code = RandomCode(w.view.kind, rng);
}

TestWeight MakeWeight(WeightKind kind, int64_t n_rows, int64_t n_cols) {
  std::mt19937 rng(static_cast<uint32_t>(n_rows * 1000 + n_cols));
  TestWeight w;
  w.view.kind = kind;
  w.view.n_rows = n_rows;
  w.view.n_cols = n_cols;
  w.view.row_bytes_stride = WeightRowBytes(kind, n_cols) + 4;  // strided rows
  w.codes.resize(static_cast<size_t>(n_rows) * w.view.row_bytes_stride);
  FillCodes(w, rng);
  w.view.codes = w.codes.data();
  w.view.block_rows = kind == WeightKind::kFp8 ? 128 : 1;
  w.view.block_cols = kind == WeightKind::kFp4 ? 32 : 128;
  const int64_t n_blocks = (n_cols + w.view.block_cols - 1) / w.view.block_cols;
  const int64_t n_scales =
      (n_rows + w.view.block_rows - 1) / w.view.block_rows * n_blocks;
  for (int64_t i = 0; i < n_scales; ++i) {
    w.scale_code.push_back(static_cast<uint8_t>(120 + rng() % 10));
    w.scale.push_back(F32FromE8m0(w.scale_code.back()) * 1.25f);
  }
  w.view.scale = w.scale.data();
  w.view.scale_code = w.scale_code.data();
  w.view.scale_stride = n_blocks;
  for (int64_t r = 0; r < n_rows; ++r) {
    for (int64_t c = 0; c < n_cols; ++c) w.values.push_back(ValueAt(w, r, c));
  }
  return w;
}

// How many tokens; rows [row, row_end), -1 = all; which rows of x.
struct What {
  int64_t n_tokens;
  int64_t row = 0;
  int64_t row_end = -1;
  const int32_t* index = nullptr;
};

// Packs x [n_tokens, n_cols] and multiplies; y [n_tokens, rows].
template <typename T>
std::vector<T> MultiplyTo(const MatMulKernel& kernel, const WeightView& view,
                          const std::vector<float>& x, const What& what) {
  const auto n_cols = static_cast<size_t>(view.n_cols);
  const size_t row_bytes = kernel.packed_bytes(view.n_cols);
  const size_t n_packed = x.size() / n_cols;
  std::vector<std::byte> packed(n_packed * row_bytes + 64);
  for (size_t t = 0; t < n_packed; ++t) {
    kernel.pack(x.data() + t * n_cols, 0, view.n_cols, view.n_cols,
                packed.data() + t * row_bytes);
  }
  std::vector<std::byte> panel(PanelBytes(view.n_cols) + 64);
  const int64_t row_end = what.row_end < 0 ? view.n_rows : what.row_end;
  const int64_t n_rows = row_end - what.row;
  // One element more, to see that nothing is written there.
  const auto n_out = static_cast<size_t>(what.n_tokens * n_rows);
  std::vector<T> y(n_out + 1, T{7});
  MatMulArgs args;
  args.weight = &view;
  args.row_begin = what.row;
  args.row_end = row_end;
  args.x = packed.data();
  args.x_row_bytes = row_bytes;
  args.x_index = what.index;
  args.n_tokens = what.n_tokens;
  args.y = y.data();
  args.y_stride = n_rows;
  args.y_bf16 = std::is_same_v<T, uint16_t>;
  args.panel =
      panel.data() + (64 - reinterpret_cast<uintptr_t>(panel.data()) % 64) % 64;
  kernel.run(args);
  EXPECT_EQ(y.back(), T{7});
  y.resize(n_out);
  return y;
}

std::vector<float> Multiply(const MatMulKernel& kernel, const WeightView& view,
                            const std::vector<float>& x, const What& what) {
  return MultiplyTo<float>(kernel, view, x, what);
}

// A weight as `kernel` reads it: packed, in parts and not in order, or plain.
struct Packed {
  Packed(const MatMulKernel& kernel, const WeightView& plain) : view(plain) {
    if (&kernel == &F32MatMul()) return;
    memory.resize(PackedWeightBytes(plain) + 64, std::byte{0xff});
    std::byte* data =
        memory.data() +
        (64 - reinterpret_cast<uintptr_t>(memory.data()) % 64) % 64;
    const int64_t half = plain.n_rows / 2 / kPackRows * kPackRows;
    PackWeightRows(plain, half, plain.n_rows, data);
    PackWeightRows(plain, 0, half, data);
    view = PackedView(plain, data);
  }
  WeightView view;
  std::vector<std::byte> memory;
};

struct Case {
  WeightKind kind;
  int64_t n_rows;
  int64_t n_cols;
};

constexpr std::array<Case, 13> kCases = {{
    {WeightKind::kF32, 24, 1024},
    {WeightKind::kF32, 5, 37},
    {WeightKind::kF32, 1, 1},
    {WeightKind::kBf16, 64, 256},
    {WeightKind::kBf16, 7, 130},
    {WeightKind::kBf16, 4, 31},
    {WeightKind::kFp8, 192, 256},
    {WeightKind::kFp8, 130, 384},
    {WeightKind::kFp8, 3, 200},
    {WeightKind::kFp8, 9, 1024},
    {WeightKind::kFp4, 64, 512},
    {WeightKind::kFp4, 6, 96},
    {WeightKind::kFp4, 3, 72},
}};

// |error| <= n_cols * eps * sum |x w|: the bound of any order of summation.
void CheckAgainstDouble(const MatMulKernel& kernel, const TestWeight& w,
                        const std::vector<float>& x, int64_t n_tokens) {
  const int64_t n_rows = w.view.n_rows;
  const int64_t n_cols = w.view.n_cols;
  const Packed packed(kernel, w.view);
  const std::vector<float> y = Multiply(kernel, packed.view, x, {n_tokens});
  for (int64_t i = 0; i < n_tokens * n_rows; ++i) {
    const float* row = x.data() + i / n_rows * n_cols;
    const double* weights = w.values.data() + i % n_rows * n_cols;
    double sum = 0.0;
    double norm = 0.0;
    for (int64_t k = 0; k < n_cols; ++k) {
      const double term = static_cast<double>(row[k]) * weights[k];
      sum += term;
      norm += std::abs(term);
    }
    const double bound = static_cast<double>(n_cols) * 0x1p-24 * norm + 1e-30;
    ASSERT_NEAR(y[static_cast<size_t>(i)], sum, bound)
        << "token " << i / n_rows << ", row " << i % n_rows;
  }
}

TEST(MatMulTest, MatchesDouble) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(c.kind) << " "
                                    << c.n_rows << "x" << c.n_cols);
    const TestWeight w = MakeWeight(c.kind, c.n_rows, c.n_cols);
    for (const int64_t n_tokens : {1, 2, 3, 4, 5, 15}) {
      std::vector<float> x =
          RandomFloats(static_cast<size_t>(n_tokens * c.n_cols), 7);
      for (float& v : x) v = belay::RoundToBf16(v);
      ForEachTarget([&] { CheckAgainstDouble(F32MatMul(), w, x, n_tokens); });
      if (const MatMulKernel* bf16 = Bf16MatMul(w.view)) {
        CheckAgainstDouble(*bf16, w, x, n_tokens);
      }
    }
  }
}

TEST(PackTest, SaysWhatItTakes) {
  EXPECT_TRUE(CanPackWeight(MakeWeight(WeightKind::kFp8, 4, 200).view));
  EXPECT_FALSE(CanPackWeight(MakeWeight(WeightKind::kF32, 4, 256).view));
  WeightView fp4 = MakeWeight(WeightKind::kFp4, 4, 256).view;
  EXPECT_TRUE(CanPackWeight(fp4));
  fp4.block_cols = 128;
  EXPECT_FALSE(CanPackWeight(fp4));
  WeightView fp8 = MakeWeight(WeightKind::kFp8, 4, 256).view;
  fp8.block_rows = 8;
  EXPECT_FALSE(CanPackWeight(fp8));
  fp8.block_rows = 128;
  fp8.block_cols = 64;
  EXPECT_FALSE(CanPackWeight(fp8));
}

// Row t of y.
std::vector<float> RowOf(const std::vector<float>& y, int64_t t, int64_t n) {
  return {y.begin() + t * n, y.begin() + (t + 1) * n};
}

// A token's bits do not depend on its company, nor on its place.
void CheckIndependence(const MatMulKernel& kernel, const TestWeight& weight) {
  constexpr int64_t kTokens = 35;
  const Packed w(kernel, weight.view);
  const int64_t n_cols = w.view.n_cols;
  const int64_t n_rows = w.view.n_rows;
  const std::vector<float> x =
      RandomFloats(static_cast<size_t>(kTokens * n_cols), 7);
  const std::vector<float> all = Multiply(kernel, w.view, x, {kTokens});
  for (int64_t t = 0; t < kTokens; ++t) {
    const std::vector<float> alone =
        Multiply(kernel, w.view, RowOf(x, t, n_cols), {1});
    ASSERT_EQ(RowOf(all, t, n_rows), alone);
  }
  const std::array<int32_t, 3> index = {9, 0, 4};
  const std::vector<float> chosen =
      Multiply(kernel, w.view, x, {3, 0, -1, index.data()});
  for (size_t i = 0; i < index.size(); ++i) {
    ASSERT_EQ(RowOf(chosen, static_cast<int64_t>(i), n_rows),
              RowOf(all, index[i], n_rows));
  }
}

TEST(MatMulTest, TokensAreIndependent) {
  for (const Case& c : kCases) {
    const TestWeight w = MakeWeight(c.kind, c.n_rows, c.n_cols);
    ForEachTarget([&] { CheckIndependence(F32MatMul(), w); });
    if (const MatMulKernel* bf16 = Bf16MatMul(w.view)) {
      CheckIndependence(*bf16, w);
    }
  }
}

// Rows in any pieces, tokens in any number: the bits of one row and one token.
void CheckPieces(const MatMulKernel& kernel, const TestWeight& weight) {
  const Packed w(kernel, weight.view);
  const int64_t n_rows = w.view.n_rows;
  constexpr int64_t kTokens = 270;  // more than a chunk
  const std::vector<float> x =
      RandomFloats(static_cast<size_t>(kTokens * w.view.n_cols), 3);
  const std::vector<float> all = Multiply(kernel, w.view, x, {kTokens});
  const std::vector<float> one =
      Multiply(kernel, w.view, RowOf(x, kTokens - 1, w.view.n_cols), {1});
  EXPECT_EQ(RowOf(all, kTokens - 1, n_rows), one);
  std::vector<float> pieces;
  for (int64_t row = 0; row < n_rows;) {
    const int64_t end = std::min(n_rows, row + 1 + row % 23);
    const std::vector<float> piece =
        Multiply(kernel, w.view, RowOf(x, 7, w.view.n_cols), {1, row, end});
    pieces.insert(pieces.end(), piece.begin(), piece.end());
    row = end;
  }
  EXPECT_EQ(pieces, RowOf(all, 7, n_rows));
}

TEST(MatMulTest, PiecesAreEqual) {
  for (const Case& c :
       {Case{WeightKind::kBf16, 150, 256}, Case{WeightKind::kFp8, 130, 384},
        Case{WeightKind::kFp4, 100, 160}}) {
    SCOPED_TRACE(testing::Message() << static_cast<int>(c.kind));
    const TestWeight w = MakeWeight(c.kind, c.n_rows, c.n_cols);
    CheckPieces(F32MatMul(), w);
    if (const MatMulKernel* bf16 = Bf16MatMul(w.view)) CheckPieces(*bf16, w);
  }
}

// Many tokens give the bits of one.
void CheckCompany(const MatMulKernel& kernel, const WeightView& weight) {
  constexpr int64_t kTokens = 24;
  const std::vector<float> x =
      RandomFloats(static_cast<size_t>(kTokens * weight.n_cols), 3);
  const Packed packed(kernel, weight);
  const std::vector<float> all = Multiply(kernel, packed.view, x, {kTokens});
  for (int64_t t = 0; t < kTokens; ++t) {
    ASSERT_EQ(RowOf(all, t, weight.n_rows),
              Multiply(kernel, packed.view, RowOf(x, t, weight.n_cols), {1}));
  }
}

// Scales that a decoded panel takes, and scales that it cannot.
TEST(MatMulTest, ScalesOfFp4MayLieFarApart) {
  TestWeight w = MakeWeight(WeightKind::kFp4, 80, 512);
  for (const auto& [first, span] : {std::pair{97, 61}, std::pair{60, 130}}) {
    std::mt19937 rng(11);
    for (uint8_t& code : w.scale_code) {
      code = static_cast<uint8_t>(first + rng() % static_cast<uint32_t>(span));
    }
    ForEachTarget([&] { CheckCompany(F32MatMul(), w.view); });
    if (const MatMulKernel* bf16 = Bf16MatMul(w.view)) {
      CheckCompany(*bf16, w.view);
    }
  }
}

// bf16 results are the float32 ones, rounded to even; NaN and subnormals too.
TEST(MatMulTest, StoresBf16) {
  TestWeight w = MakeWeight(WeightKind::kBf16, 24, 128);
  const std::array<float, 4> special = {NAN, INFINITY, -INFINITY, 0x1p-126f};
  for (size_t i = 0; i < special.size(); ++i) {
    const uint16_t code = Bf16FromF32(special[i]);
    std::memcpy(w.codes.data() + i * w.view.row_bytes_stride, &code, 2);
  }
  std::vector<float> x = RandomFloats(128, 5);
  for (float& v : x) v = belay::RoundToBf16(v);
  const auto check = [&](const MatMulKernel& kernel) {
    const Packed packed(kernel, w.view);
    const std::vector<float> y = Multiply(kernel, packed.view, x, {1});
    const std::vector<uint16_t> rounded =
        MultiplyTo<uint16_t>(kernel, packed.view, x, {1});
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(rounded[i], Bf16FromF32(y[i])) << i << ": " << y[i];
    }
  };
  ForEachTarget([&] { check(F32MatMul()); });
  if (const MatMulKernel* bf16 = Bf16MatMul(w.view)) check(*bf16);
}

// Every e4m3 and e2m1 code alone against x = 1, so that no code hides in a sum.
TEST(MatMulTest, EveryCode) {
  for (const WeightKind kind : {WeightKind::kFp8, WeightKind::kFp4}) {
    TestWeight w = MakeWeight(kind, 256, 128);
    std::fill(w.codes.begin(), w.codes.end(), std::byte{0});
    for (int64_t r = 0; r < 256; ++r) {
      const auto code = static_cast<uint8_t>(
          kind == WeightKind::kFp8 && (r & 0x7f) == 0x7f ? 0 : r);
      w.codes[static_cast<size_t>(r) * w.view.row_bytes_stride + 33] =
          static_cast<std::byte>(code);
    }
    // Columns 66 and 67 of FP4 share byte 33: only the first counts.
    std::vector<float> x(128, 1.0f);
    if (kind == WeightKind::kFp4) x[67] = 0.0f;
    const int64_t col = kind == WeightKind::kFp4 ? 66 : 33;
    const auto check = [&](const MatMulKernel& kernel) {
      const Packed packed(kernel, w.view);
      const std::vector<float> y = Multiply(kernel, packed.view, x, {1});
      for (int64_t r = 0; r < 256; ++r) {
        ASSERT_EQ(y[static_cast<size_t>(r)],
                  static_cast<float>(ValueAt(w, r, col)))
            << r;
      }
    };
    ForEachTarget([&] { check(F32MatMul()); });
    if (const MatMulKernel* bf16 = Bf16MatMul(w.view)) check(*bf16);
  }
}

}  // namespace
}  // namespace belay::kernels
