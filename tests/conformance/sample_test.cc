// SPDX-License-Identifier: Apache-2.0
// Sample: what may be drawn, and how often.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "tests/conformance/device.h"

namespace belay::conformance {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class SampleTest : public BackendTest {
 protected:
  static std::vector<int32_t> Run(
      Device& device, const std::vector<std::vector<float>>& logits,
      const std::vector<ops::SampleRow>& rows,
      const std::vector<ops::LogitBias>& biases = {},
      const std::vector<int32_t>& allowed = {}) {
    std::vector<float> flat;
    for (const auto& row : logits) {
      flat.insert(flat.end(), row.begin(), row.end());
    }
    const auto n = static_cast<int64_t>(logits.size());
    const auto vocab = static_cast<int64_t>(logits[0].size());
    ops::SampleParams p;
    p.logits = device.Put(DType::kF32, {n, vocab}, flat);
    p.rows = rows;
    p.biases = biases;
    if (!allowed.empty()) {
      p.allowed = device.PutInts({n, (vocab + 31) / 32}, allowed);
    }
    p.ids = device.Zeros(DType::kI32, {n});
    device.ops().Sample(p);
    return device.GetInts(p.ids);
  }

  // How often each token comes at `n` positions.
  static std::vector<int> Count(Device& device,
                                const std::vector<float>& logits,
                                ops::SampleRow row, int n) {
    std::vector<std::vector<float>> all(static_cast<size_t>(n), logits);
    std::vector<ops::SampleRow> rows;
    for (row.position = 0; row.position < n; ++row.position) {
      rows.push_back(row);
    }
    std::vector<int> count(logits.size());
    for (const int32_t id : Run(device, all, rows)) {
      ++count[static_cast<size_t>(id)];
    }
    return count;
  }
};

TEST_P(SampleTest, Greedy) {
  const auto device = Make(Official());
  EXPECT_EQ(Run(*device,
                {{1, 3, 3, 2},
                 {kNan, -5, -kInfinity, kInfinity},
                 {kNan, kNan, -kInfinity, kInfinity}},
                {{}, {}, {}}),
            (std::vector<int32_t>{1, 1, -1}));
}

TEST_P(SampleTest, BiasesAndAllowedTokens) {
  const auto device = Make(Official());
  const std::vector<ops::LogitBias> biases = {
      {0, 1, -2.5f}, {1, 0, 1.0f}, {1, 0, 1.5f}, {2, 3, -kInfinity}};
  EXPECT_EQ(Run(*device, {{1, 3, 2, 0}, {1, 3, 2, 0}, {0, 0, 0, 9}},
                {{}, {}, {}}, biases),
            (std::vector<int32_t>{2, 0, 0}));
  // Bits 0 and 33 of a vocabulary of 40; then none.
  std::vector<float> logits(40);
  logits[5] = 9.0f;
  logits[33] = 1.0f;
  EXPECT_EQ(Run(*device, {logits, logits}, {{}, {}}, {}, {1, 2, 0, 0}),
            (std::vector<int32_t>{33, -1}));
}

// The walk of ops/sample.h by hand: the token at which the running sum exceeds
// u * total, likeliest first.
TEST_P(SampleTest, Draw) {
  const auto device = Make(Official());
  const std::vector<float> logits = {0.0f, 2.0f, 1.0f, 2.0f};
  const int order[] = {1, 3, 2, 0};  // ties to the lower id
  const float temperature = 0.7f;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    for (int32_t position = 0; position < 40; ++position) {
      const ops::SampleRow row = {
          .temperature = temperature, .seed = seed, .position = position};
      double total = 0.0, sum = 0.0;
      for (const int id : order) {
        total += std::exp(
            (static_cast<double>(logits[static_cast<size_t>(id)]) - 2.0) /
            temperature);
      }
      const double u =
          UniformFrom(seed, static_cast<uint64_t>(position)) * total;
      int want = -1;
      for (const int id : order) {
        sum += std::exp(
            (static_cast<double>(logits[static_cast<size_t>(id)]) - 2.0) /
            temperature);
        if (want < 0 && sum > u) want = id;
      }
      EXPECT_EQ(Run(*device, {logits}, {row}), std::vector<int32_t>{want});
    }
  }
}

// Frequencies over 4000 positions are the softmax at that temperature, within
// five standard deviations.
TEST_P(SampleTest, Frequencies) {
  const auto device = Make(Official());
  const std::vector<float> logits = {1.0f, 0.0f, 2.0f, -1.0f, 1.5f};
  const int n = 4000;
  const auto count =
      Count(*device, logits, {.temperature = 2.0f, .seed = 7}, n);
  double total = 0.0;
  for (const float l : logits) total += std::exp(l / 2.0);
  for (size_t i = 0; i < logits.size(); ++i) {
    const double p = std::exp(logits[i] / 2.0) / total;
    EXPECT_NEAR(count[i], n * p, 5 * std::sqrt(n * p * (1 - p))) << i;
  }
}

// Which tokens can be drawn at all; probabilities 0.5, 0.25, 0.15, 0.1.
TEST_P(SampleTest, Cuts) {
  const auto device = Make(Official());
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f),
                                     std::log(0.1f), std::log(0.25f)};
  const auto drawn = [&](ops::SampleRow row) {
    row.temperature = 1.0f;
    row.seed = 11;
    std::vector<int> ids;
    const auto count = Count(*device, logits, row, 300);
    for (size_t i = 0; i < count.size(); ++i) {
      if (count[i] > 0) ids.push_back(static_cast<int>(i));
    }
    return ids;
  };
  EXPECT_EQ(drawn({}), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(drawn({.top_k = 1}), (std::vector<int>{1}));
  EXPECT_EQ(drawn({.top_k = 3}), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(drawn({.top_p = 0.4f}), (std::vector<int>{1}));
  EXPECT_EQ(drawn({.top_p = 0.7f}), (std::vector<int>{1, 3}));
  EXPECT_EQ(drawn({.top_p = 0.8f}), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(drawn({.min_p = 0.25f}), (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(drawn({.min_p = 0.45f}), (std::vector<int>{1, 3}));
  EXPECT_EQ(drawn({.min_p = 2.0f}), (std::vector<int>{1}));
  // After top_k = 2 the first holds 2/3 of what is left: top_p counts that.
  EXPECT_EQ(drawn({.top_k = 2, .top_p = 0.6f}), (std::vector<int>{1}));
  // The cuts see the probabilities at the temperature: at 1 above, and here.
  ops::SampleRow cold = {.temperature = 0.25f, .top_p = 0.9f, .seed = 11};
  EXPECT_EQ(Count(*device, logits, cold, 300)[1], 300);
}

BELAY_CONFORMANCE_SUITE(SampleTest);

}  // namespace
}  // namespace belay::conformance
