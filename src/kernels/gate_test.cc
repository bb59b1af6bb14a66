// SPDX-License-Identifier: Apache-2.0
#include "kernels/gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/targets_test.h"

namespace belay::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(GateTest, ScoresAreTheFormula) {
  std::vector<float> logits = RandomFloats(517, 1, 8.0f);
  for (const float v : {-200.0f, -100.0f, -88.0f, -20.0f, -1e-8f, 0.0f, 1e-8f,
                        19.9999f, 20.0f, 20.0001f, 88.0f, 89.0f, 1e30f}) {
    logits.push_back(v);
  }
  ForEachTarget([&] {
    std::vector<float> scores(logits.size());
    GateScores(logits.data(), logits.size(), scores.data());
    for (size_t i = 0; i < logits.size(); ++i) {
      const double v = logits[i];
      const double soft = v > 20 ? v : std::log1p(std::exp(v));
      // exp underflows below about -88: then the score is that small or 0.
      const double expected = std::sqrt(soft);
      EXPECT_NEAR(scores[i], expected, 4 * 6e-8 * expected + 4e-19) << v;
    }
  });
}

std::vector<int32_t> Sorted(const std::vector<float>& values, size_t k) {
  std::vector<int32_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const float x = std::isnan(values[a]) ? -kInf : values[a];
    const float y = std::isnan(values[b]) ? -kInf : values[b];
    return x > y;
  });
  order.resize(k);
  return order;
}

void Hold(const std::vector<float>& values, size_t k) {
  std::vector<float> room(TopKRoom(values.size()), 1e30f);
  std::copy(values.begin(), values.end(), room.begin());
  std::vector<int32_t> out(k, -1);
  TopK(room.data(), values.size(), k, out.data());
  EXPECT_EQ(out, Sorted(values, k)) << values.size() << " choose " << k;
}

TEST(GateTest, TopKIsAStableSort) {
  ForEachTarget([] {
    for (const size_t n : {1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 100, 256, 384}) {
      for (const size_t k : {1, 2, 6, 8}) {
        if (k <= n) Hold(RandomFloats(n, static_cast<uint32_t>(n + k)), k);
      }
      Hold(RandomFloats(n, 9), n);
    }
  });
}

TEST(GateTest, TiesGoToTheLowerIndex) {
  ForEachTarget([] {
    Hold(std::vector<float>(384, 0.25f), 6);
    std::vector<float> few(50, -1.0f);
    few[49] = few[3] = few[17] = 2.0f;
    Hold(few, 5);
    Hold({0.0f, -0.0f, 0.0f}, 2);
  });
}

TEST(GateTest, WhatIsNoNumberComesLast) {
  ForEachTarget([] {
    Hold({kNan, 1.0f, kNan, -kInf, 2.0f, kInf}, 6);
    Hold(std::vector<float>(33, kNan), 6);
    Hold(std::vector<float>(33, -kInf), 33);
  });
}

}  // namespace
}  // namespace belay::kernels
