// SPDX-License-Identifier: Apache-2.0
// What --activations int8 changes, on a checkpoint that was trained: the
// dialogues of data/demo, every next token of which is known. The figures that
// it prints are those of docs/activations.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <vector>

#include "golden/mean_kl.h"
#include "nlohmann/json.hpp"
#include "support/stepper.h"
#include "support/test_model.h"

namespace belay::test {
namespace {

constexpr char kDemo[] = "data/demo";
constexpr size_t kSamples = 12;

std::vector<std::vector<int32_t>> Dialogues() {
  std::ifstream file(std::string(kDemo) + "/samples.json");
  const auto json = nlohmann::json::parse(file);
  std::vector<std::vector<int32_t>> all;
  for (const auto& sample : json.at("samples")) {
    std::vector<int32_t> ids = sample.at("prompt_ids");
    const std::vector<int32_t> answer = sample.at("token_ids");
    ids.insert(ids.end(), answer.begin(), answer.end());
    if (ids.size() <= 512) all.push_back(ids);
    if (all.size() == kSamples) break;
  }
  return all;
}

Logits LogitsOf(const ModelOptions& options) {
  TestModel model(kDemo, options);
  Stepper stepper(model, {});
  Logits all;
  for (const auto& ids : Dialogues()) {
    const Logits rows = stepper.Run({{0, 0, ids}});
    all.insert(all.end(), rows.begin(), rows.end());
  }
  return all;
}

double SameBest(const Logits& a, const Logits& b) {
  size_t same = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    same += std::max_element(a[i].begin(), a[i].end()) - a[i].begin() ==
            std::max_element(b[i].begin(), b[i].end()) - b[i].begin();
  }
  return static_cast<double>(same) / static_cast<double>(a.size());
}

TEST(Int8ActivationsTest, AreCloserToExactThanTheOfficialOnes) {
  if (!HasInt8Activations()) GTEST_SKIP() << "this CPU has no AVX-512 VNNI";
  ModelOptions options;
  options.backend = "cpu";
  const Logits official = LogitsOf(options);
  options.int8_activations = true;
  const Logits int8 = LogitsOf(options);
  options.int8_activations = false;
  options.exact = true;
  const Logits exact = LogitsOf(options);
  ASSERT_EQ(official.size(), int8.size());
  const double to_official = MeanKl(official, int8);
  const double to_exact = MeanKl(exact, int8);
  const double of_official = MeanKl(exact, official);
  const double same = SameBest(official, int8);
  std::printf(
      "%zu positions, mean KL: official to int8 %.6f, exact to int8 %.6f, "
      "exact to official %.6f; the same first token %.4f\n",
      official.size(), to_official, to_exact, of_official, same);
  EXPECT_GT(to_official, 0.0);  // something else ran
  EXPECT_LT(to_exact, of_official);
  EXPECT_LT(to_official, 0.001);
  EXPECT_LT(to_exact, 0.001);
  EXPECT_GT(same, 0.99);
}

}  // namespace
}  // namespace belay::test
