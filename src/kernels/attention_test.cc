// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/float_formats.h"
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

}  // namespace
}  // namespace belay::kernels
