// SPDX-License-Identifier: Apache-2.0
// Sample: what may be drawn, and how often.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/conformance/device.h"

namespace belay::conformance {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class SampleTest : public BackendTest {
 protected:
  static std::vector<int32_t> Run(Device& device,
                                  const std::vector<std::vector<float>>& logits,
                                  const std::vector<ops::SampleRow>& rows) {
    std::vector<float> flat;
    for (const auto& row : logits) {
      flat.insert(flat.end(), row.begin(), row.end());
    }
    const auto n = static_cast<int64_t>(logits.size());
    const auto vocab = static_cast<int64_t>(logits[0].size());
    ops::SampleParams p;
    p.logits = device.Put(DType::kF32, {n, vocab}, flat);
    p.rows = rows;
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

using Biases = std::vector<std::pair<int32_t, float>>;

TEST_P(SampleTest, BiasesAndAllowedTokens) {
  const auto device = Make(Official());
  const Biases down = {{1, -2.5f}};
  const Biases twice = {{0, 1.0f}, {0, 1.5f}};
  const Biases never = {{3, -kInfinity}};
  EXPECT_EQ(
      Run(*device, {{1, 3, 2, 0}, {1, 3, 2, 0}, {0, 0, 0, 9}, {1, 3, 2, 0}},
          {{.biases = down}, {.biases = twice}, {.biases = never}, {}}),
      (std::vector<int32_t>{2, 0, 0, 1}));
  // Bits 0 and 69 of a vocabulary of 70; bits beyond it only; all.
  std::vector<float> logits(70);
  logits[5] = 9.0f;
  logits[69] = 1.0f;
  const std::vector<uint64_t> two = {1, 1u << 5};
  const std::vector<uint64_t> none = {0, ~uint64_t{63}};
  EXPECT_EQ(Run(*device, {logits, logits, logits},
                {{.allowed = two}, {.allowed = none}, {}}),
            (std::vector<int32_t>{69, -1, 5}));
}

// What is left of each token's logit, found by biasing it up to the others: a
// token wins exactly when its corrected logit is the largest.
TEST_P(SampleTest, Penalties) {
  const auto device = Make(Official());
  const std::vector<float> logits = {4.0f, 3.0f, -1.0f, 2.0f};
  const std::vector<ops::SeenToken> seen = {{0, 2}, {1, 0}, {2, 1}};
  const auto wins = [&](ops::SampleRow row, int32_t token, float corrected) {
    row.seen = seen;
    // Against token 3, which is not seen and is moved to just below and above.
    const Biases below = {{3, std::nextafter(corrected, -100.0f) - 2.0f},
                          {0, token == 0 ? 0 : -50},
                          {1, token == 1 ? 0 : -50},
                          {2, token == 2 ? 0 : -50}};
    Biases above = below;
    above[0].second = corrected + 0.001f - 2.0f;
    row.biases = below;
    const int32_t first = Run(*device, {logits}, {row})[0];
    row.biases = above;
    const int32_t second = Run(*device, {logits}, {row})[0];
    return first == token && second == 3;
  };
  const ops::SampleRow presence = {.presence_penalty = 1.5f};
  EXPECT_TRUE(wins(presence, 0, 2.5f));
  EXPECT_TRUE(wins(presence, 1, 3.0f)) << "the prompt is free";
  EXPECT_TRUE(wins(presence, 2, -2.5f));
  const ops::SampleRow frequency = {.frequency_penalty = 0.75f};
  EXPECT_TRUE(wins(frequency, 0, 2.5f));
  EXPECT_TRUE(wins(frequency, 1, 3.0f));
  EXPECT_TRUE(wins(frequency, 2, -1.75f));
  const ops::SampleRow repetition = {.repetition_penalty = 2.0f};
  EXPECT_TRUE(wins(repetition, 0, 2.0f));
  EXPECT_TRUE(wins(repetition, 1, 1.5f)) << "the prompt counts";
  EXPECT_TRUE(wins(repetition, 2, -2.0f));
  const ops::SampleRow all = {.presence_penalty = -0.5f,
                              .frequency_penalty = 0.25f,
                              .repetition_penalty = 2.0f};
  EXPECT_TRUE(wins(all, 0, 2.0f + 0.5f - 0.5f));
  EXPECT_TRUE(wins(all, 1, 1.5f));
  EXPECT_TRUE(wins(all, 2, -2.0f + 0.5f - 0.25f));
  // A draft counts once more, whether it was seen or not.
  ops::SampleRow drafted = frequency;
  drafted.draft = 0;
  EXPECT_TRUE(wins(drafted, 0, 1.75f));
  drafted.draft = 1;
  EXPECT_TRUE(wins(drafted, 1, 2.25f));
  EXPECT_TRUE(wins(drafted, 0, 2.5f));
  drafted.draft = 3;
  EXPECT_EQ(Run(*device, {{0, 0, 0, 0.5f}}, {drafted})[0], 0);
}

// By hand: softmax of the raw logits, whatever else the row asks for.
TEST_P(SampleTest, LogProbabilities) {
  const auto device = Make(Official());
  const std::vector<float> logits = {1, 3, kNan, 3, -kInfinity, 0};
  const Biases bias = {{5, 50.0f}};
  const std::vector<ops::SampleRow> rows = {
      {.n_top = 3},
      {.temperature = 0.5f, .biases = bias, .n_top = 5},
      {},
      {.n_top = 0}};
  std::vector<float> flat;
  for (size_t i = 0; i < rows.size(); ++i) {
    flat.insert(flat.end(), logits.begin(), logits.end());
  }
  ops::SampleParams p;
  p.logits = device->Put(DType::kF32, {4, 6}, flat);
  p.rows = rows;
  p.ids = device->Zeros(DType::kI32, {4});
  p.logprobs = device->Zeros(DType::kF32, {4});
  p.top_ids = device->Zeros(DType::kI32, {4, 5});
  p.top_logprobs = device->Zeros(DType::kF32, {4, 5});
  device->ops().Sample(p);
  EXPECT_EQ(device->GetInts(p.ids), (std::vector<int32_t>{1, 5, 1, 1}));
  EXPECT_EQ(device->GetInts(p.top_ids),
            (std::vector<int32_t>{1, 3, 0, 0, 0,   //
                                  1, 3, 0, 5, -1,  //
                                  0, 0, 0, 0, 0,   //
                                  0, 0, 0, 0, 0}));
  const double total = 2 + std::exp(-2.0) + std::exp(-3.0);
  const std::vector<float> got = device->Get(p.logprobs);
  const std::vector<float> top = device->Get(p.top_logprobs);
  EXPECT_FLOAT_EQ(got[0], static_cast<float>(-std::log(total)));
  EXPECT_FLOAT_EQ(got[1], static_cast<float>(-3 - std::log(total)));
  EXPECT_EQ(got[2], 0.0f);
  EXPECT_FLOAT_EQ(got[3], static_cast<float>(-std::log(total)));
  EXPECT_FLOAT_EQ(top[1], static_cast<float>(-std::log(total)));
  EXPECT_FLOAT_EQ(top[2], static_cast<float>(-2 - std::log(total)));
  EXPECT_FLOAT_EQ(top[5 + 3], static_cast<float>(-3 - std::log(total)));
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
