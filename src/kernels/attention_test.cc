// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/float_formats.h"
#include "kernels/attention_bf16.h"
#include "kernels/targets_test.h"

namespace belay::kernels {
namespace {

RowsView View(const std::vector<float>& rows, size_t n_rows, size_t n_cols) {
  return {rows.data(), n_cols, n_rows, n_cols};
}

void CheckDotRows(size_t n_rows, size_t n_cols) {
  const std::vector<float> rows = RandomFloats(n_rows * n_cols, 1);
  const std::vector<float> q = RandomFloats(n_cols, 2);
  std::vector<float> out(n_rows);
  DotRows(q.data(), View(rows, n_rows, n_cols), out.data());
  for (size_t j = 0; j < n_rows; ++j) {
    double sum = 0.0;
    double norm = 0.0;
    for (size_t c = 0; c < n_cols; ++c) {
      const double term = static_cast<double>(q[c]) * rows[j * n_cols + c];
      sum += term;
      norm += std::abs(term);
    }
    ASSERT_NEAR(out[j], sum, 1e-6 * norm);
    float alone = 0.0f;  // the same bits without the other rows
    DotRows(q.data(), {rows.data() + j * n_cols, n_cols, 1, n_cols}, &alone);
    ASSERT_EQ(alone, out[j]);
  }
}

TEST(AttentionTest, DotRows) {
  for (const size_t n_cols : {1u, 31u, 64u, 128u, 513u}) {
    for (const size_t n_rows : {1u, 7u, 8u, 64u}) {
      ForEachTarget([&] { CheckDotRows(n_rows, n_cols); });
    }
  }
}

// Tiles one after another give the softmax of all rows.
TEST(AttentionTest, TilesGiveTheSoftmax) {
  constexpr size_t kRows = 150;
  for (const size_t n_cols : {5u, 128u, 200u}) {
    const std::vector<float> rows = RandomFloats(kRows * n_cols, 1);
    const std::vector<float> scores = RandomFloats(kRows, 2, 5.0f);
    double total = 0.0;
    std::vector<double> expected(n_cols);
    for (size_t j = 0; j < kRows; ++j) {
      const double e = std::exp(static_cast<double>(scores[j]));
      total += e;
      for (size_t c = 0; c < n_cols; ++c) {
        expected[c] += e * rows[j * n_cols + c];
      }
    }
    for (const bool round_p : {false, true}) {
      ForEachTarget([&] {
        OnlineSoftmax state{-std::numeric_limits<float>::infinity(), 0.0f};
        std::vector<float> acc(n_cols);
        for (size_t first = 0; first < kRows; first += 64) {
          const size_t n = std::min<size_t>(64, kRows - first);
          std::vector<float> s(scores.begin() + static_cast<long>(first),
                               scores.begin() + static_cast<long>(first + n));
          SoftmaxTile(
              {.rows = {rows.data() + first * n_cols, n_cols, n, n_cols},
               .s = s.data(),
               .round_p = round_p,
               .state = &state,
               .acc = acc.data()});
        }
        // The running sum never sees the rounding of p.
        EXPECT_NEAR(
            state.sum * std::exp(static_cast<double>(state.max)) / total, 1.0,
            1e-6);
        double worst = 0.0;
        for (size_t c = 0; c < n_cols; ++c) {
          worst = std::max(worst,
                           std::abs(acc[c] / state.sum - expected[c] / total));
        }
        EXPECT_LT(worst, round_p ? 1e-2 : 3e-6);
        if (round_p) {
          EXPECT_GT(worst, 1e-5);  // it did round
        }
      });
    }
  }
}

TEST(AttentionTest, AddIndexScores) {
  const std::vector<float> d = RandomFloats(67, 1);
  for (const bool official : {false, true}) {
    ForEachTarget([&] {
      std::vector<float> acc(d.size(), 0.5f);
      AddIndexScores(d.data(), d.size(), 0.3f, official, acc.data());
      for (size_t i = 0; i < d.size(); ++i) {
        const float relu = std::max(official ? RoundToBf16(d[i]) : d[i], 0.0f);
        const float share = relu * 0.3f;
        ASSERT_EQ(acc[i], 0.5f + (official ? RoundToBf16(share) : share));
      }
    });
  }
}

std::vector<uint16_t> Bf16Of(std::vector<float>& values) {
  std::vector<uint16_t> codes;
  for (float& v : values) {
    codes.push_back(Bf16FromF32(v));
    v = F32FromBf16(codes.back());
  }
  return codes;
}

// Both ways of attending agree within the order of the sums.
void CheckHeads(size_t n_heads, size_t n_rows, size_t n_cols) {
  std::vector<float> q = RandomFloats(n_heads * n_cols, 1);
  const std::vector<uint16_t> q16 = Bf16Of(q);
  std::vector<float> acc(n_heads * n_cols);
  std::vector<OnlineSoftmax> state(n_heads, {-INFINITY, 0.0f});
  std::vector<OnlineSoftmax> expected_state = state;
  std::vector<float> expected(n_heads * n_cols);
  for (const uint32_t seed : {5u, 6u}) {  // two tiles
    std::vector<float> rows = RandomFloats(n_rows * n_cols, seed);
    const std::vector<uint16_t> rows16 = Bf16Of(rows);
    const HeadTile tile = {rows16.data(), n_rows, n_cols, n_heads};
    std::vector<float> s(n_heads * kTileRows);
    std::vector<uint16_t> p(n_heads * kTileRows, 0x7f80);
    std::vector<float> r(n_heads);
    ScoreHeads(tile, q16.data(), 0.125f, s.data());
    for (size_t h = 0; h < n_heads; ++h) {
      std::vector<float> dots(n_rows);
      const float* head = q.data() + h * n_cols;
      DotRows(head, View(rows, n_rows, n_cols), dots.data());
      for (size_t j = 0; j < n_rows; ++j) {
        ASSERT_NEAR(s[h * kTileRows + j], dots[j] * 0.125f, 2e-5f);
        dots[j] = s[h * kTileRows + j];
      }
      SoftmaxTile({.rows = View(rows, n_rows, n_cols),
                   .s = dots.data(),
                   .round_p = true,
                   .state = &expected_state[h],
                   .acc = expected.data() + h * n_cols});
      r[h] = SoftmaxWeights(s.data() + h * kTileRows, n_rows, &state[h],
                            p.data() + h * kTileRows);
      EXPECT_EQ(state[h].sum, expected_state[h].sum);
    }
    AddValues(tile, p.data(), r.data(), acc.data());
  }
  std::vector<float> total(n_heads);
  for (size_t h = 0; h < n_heads; ++h) total[h] = state[h].sum;
  std::vector<uint16_t> out(n_heads * n_cols);
  FinishHeads(acc.data(), total.data(), n_heads, n_cols, out.data());
  for (size_t i = 0; i < out.size(); ++i) {
    const float value = expected[i] / total[i / n_cols];
    ASSERT_NEAR(F32FromBf16(out[i]), value, 0.005f * std::abs(value) + 1e-5f);
  }
}

TEST(AttentionBf16Test, HeadsMatchFloat32) {
  if (!HasBf16Attention(64)) GTEST_SKIP() << "not on this CPU";
  for (const size_t n_heads : {1u, 4u, 7u, 16u}) {
    for (const size_t n_rows : {1u, 6u, 63u, 64u}) {
      SCOPED_TRACE(testing::Message() << n_heads << " heads, " << n_rows);
      CheckHeads(n_heads, n_rows, 128);
    }
  }
}

TEST(AttentionBf16Test, DecodesEveryCode) {
  if (!HasBf16Attention(64)) GTEST_SKIP() << "not on this CPU";
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<uint8_t>((i & 0x7f) == 0x7f ? 0 : i);
  }
  const std::array<uint8_t, 4> scales = {127, 105, 140, 127};
  std::vector<uint16_t> row(codes.size());
  Bf16FromE4m3(codes.data(), scales.data(), row.size(), 64, row.data());
  for (size_t i = 0; i < row.size(); ++i) {
    EXPECT_EQ(F32FromBf16(row[i]),
              F32FromE4m3(codes[i]) * F32FromE8m0(scales[i / 64]))
        << i;
  }
}

TEST(AttentionBf16Test, IndexScoresMatchFloat32) {
  if (!HasBf16Attention(64)) GTEST_SKIP() << "not on this CPU";
  constexpr size_t kCols = 128;
  constexpr size_t kRows = 50;
  for (const size_t n_heads : {1u, 8u, 31u}) {
    // Small integers: every sum is exact, in any order.
    std::vector<float> rows = RandomFloats(kRows * kCols, 1, 2.0f);
    std::vector<float> q = RandomFloats(n_heads * kCols, 2, 2.0f);
    for (float& v : rows) v = std::round(v);
    for (float& v : q) v = std::round(v);
    const std::vector<uint16_t> q16 = Bf16Of(q);
    std::vector<float> weights = RandomFloats(n_heads, 3);
    Bf16Of(weights);
    std::vector<uint16_t> tile(kTileRows * kCols);
    PackIndexTile(rows.data(), kRows, kCols, tile.data());
    std::vector<float> scores(kTileRows);
    IndexScores({tile.data(), kCols, q16.data(), weights.data(), n_heads,
                 scores.data()});
    std::vector<float> expected(kRows);
    for (size_t h = 0; h < n_heads; ++h) {
      std::vector<float> dots(kRows);
      DotRows(q.data() + h * kCols, View(rows, kRows, kCols), dots.data());
      AddIndexScores(dots.data(), kRows, weights[h], true, expected.data());
    }
    for (size_t j = 0; j < kRows; ++j) {
      EXPECT_EQ(scores[j], RoundToBf16(expected[j])) << j;
    }
  }
}

}  // namespace
}  // namespace belay::kernels
