// SPDX-License-Identifier: Apache-2.0
#include "kernels/vector.h"

#include <array>
#include <cmath>

#include "base/float_formats.h"
#include "kernels/targets_test.h"

namespace belay::kernels {
namespace {

constexpr std::array<size_t, 7> kLengths = {1, 7, 16, 31, 64, 129, 512};

// Units in the last place between a float and the true value.
double Ulps(float got, double expected) {
  const auto near = static_cast<float>(expected);
  const double ulp = std::nextafter(std::abs(near), 1e30f) -
                     static_cast<double>(std::abs(near));
  return std::abs(static_cast<double>(got) - expected) / ulp;
}

// Elementwise results round after every operation, hence equal plain code.
TEST(VectorTest, ElementwiseIsPlainFloat) {
  for (const size_t n : kLengths) {
    const std::vector<float> x = RandomFloats(n, 1);
    const std::vector<float> w = RandomFloats(n, 2);
    const std::vector<float> z = RandomFloats(n, 3);
    ForEachTarget([&] {
      std::vector<float> y(n);
      ScaleRow(x.data(), w.data(), 0.7f, n, y.data());
      std::vector<float> sum = z;
      AddScaledRow(x.data(), 0.3f, n, sum.data());
      std::vector<float> product(n);
      MulRow(x.data(), 0.3f, n, product.data());
      std::vector<float> added = z;
      AddRow(x.data(), n, added.data());
      for (size_t i = 0; i < n; ++i) {
        const float r = x[i] * 0.7f;
        ASSERT_EQ(y[i], w[i] * r);
        ASSERT_EQ(product[i], x[i] * 0.3f);
        ASSERT_EQ(sum[i], z[i] + product[i]);
        ASSERT_EQ(added[i], z[i] + x[i]);
      }
    });
  }
}

TEST(VectorTest, Sums) {
  for (const size_t n : kLengths) {
    const std::vector<float> x = RandomFloats(n, 1);
    double squares = 0.0;
    double rounded = 0.0;
    for (const float v : x) {
      squares += static_cast<double>(v) * v;
      rounded += RoundToBf16(v * v);
    }
    ForEachTarget([&] {
      EXPECT_NEAR(SumSquares(x.data(), n), squares, 1e-6 * squares);
      EXPECT_NEAR(SumRoundedSquares(x.data(), n), rounded, 1e-6 * rounded);
    });
  }
}

TEST(VectorTest, SwiGluIsWithinAFewUlps) {
  std::vector<float> g;
  for (float v = -200.0f; v < 30.0f; v += 0.37f) g.push_back(v);
  const std::vector<float> u = RandomFloats(g.size(), 5, 8.0f);
  ForEachTarget([&] {
    std::vector<float> y(g.size());
    SwiGlu({.g = g.data(),
            .u = u.data(),
            .limit = 10.0f,
            .weight = 0.6f,
            .n = g.size(),
            .out = y.data()});
    for (size_t i = 0; i < g.size(); ++i) {
      const double gate = std::min(g[i], 10.0f);
      const double up = std::fmin(std::fmax(u[i], -10.0f), 10.0f);
      const double expected =
          gate / (1.0 + std::exp(-gate)) * up * static_cast<double>(0.6f);
      if (std::abs(expected) < 1e-34) {
        ASSERT_NEAR(y[i], expected, 1e-34) << g[i];
      } else {
        ASSERT_LE(Ulps(y[i], expected), 4.0) << g[i];  // one a step
      }
    }
  });
}

void CheckSoftmaxPool(size_t n, size_t n_slots) {
  const std::vector<float> kv = RandomFloats(n * n_slots, 1);
  const std::vector<float> score = RandomFloats(n * n_slots, 2, 4.0f);
  const std::vector<float> ape = RandomFloats(n * n_slots, 3);
  std::array<std::vector<const float*>, 3> rows;
  for (size_t s = 0; s < n_slots; ++s) {
    rows[0].push_back(kv.data() + s * n);
    rows[1].push_back(score.data() + s * n);
    rows[2].push_back(ape.data() + s * n);
  }
  std::vector<float> out(n);
  SoftmaxPool({.kv = rows[0].data(),
               .score = rows[1].data(),
               .ape = rows[2].data(),
               .n_slots = n_slots,
               .n_channels = n,
               .out = out.data()});
  for (size_t c = 0; c < n; ++c) {
    double total = 0.0;
    double sum = 0.0;
    double norm = 0.0;
    for (size_t i = c; i < n * n_slots; i += n) {
      const double e = std::exp(static_cast<double>(score[i] + ape[i]));
      total += e;
      sum += e * kv[i];
      norm += e * std::abs(kv[i]);
    }
    ASSERT_NEAR(out[c], sum / total, 4e-6 * norm / total);
  }
}

TEST(VectorTest, SoftmaxPool) {
  for (const size_t n : kLengths) {
    for (const size_t n_slots : {1u, 4u, 8u, 128u}) {
      ForEachTarget([&] { CheckSoftmaxPool(n, n_slots); });
    }
  }
}

TEST(VectorTest, HadamardTwiceIsTheIdentity) {
  const std::vector<float> x = RandomFloats(128, 1);
  std::vector<float> y = x;
  const auto scale = static_cast<float>(1.0 / std::sqrt(128.0));
  Hadamard(y.data(), y.size(), scale);
  double first = 0.0;
  for (const float v : x) first += v;
  EXPECT_NEAR(y[0], first * scale, 1e-5);
  Hadamard(y.data(), y.size(), scale);
  for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(y[i], x[i], 1e-5);
}

TEST(VectorTest, RotatePairs) {
  std::vector<float> x = {1.0f, 2.0f, 3.0f, 4.0f};
  const std::vector<float> cos = {0.0f, 1.0f};
  const std::vector<float> sin = {1.0f, 0.0f};
  RotatePairs(cos.data(), sin.data(), 2, x.data());
  EXPECT_EQ(x, (std::vector<float>{-2.0f, 1.0f, 3.0f, 4.0f}));
}

}  // namespace
}  // namespace belay::kernels
