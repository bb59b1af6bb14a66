// SPDX-License-Identifier: Apache-2.0
// Two ranks (tensor and expert parallel 2) as threads of one process: both give
// the logits of a single rank, in prefill, decode and the MTP block.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include "support/golden_set.h"
#include "support/in_process_ranks.h"
#include "support/stepper.h"

namespace belay::test {
namespace {

// Logits of a prompt, four decode steps and the MTP block over all of them.
Logits Walk(TestModel& model, ops::Communicator* communicator,
            const std::vector<int32_t>& tokens) {
  StepperOptions options;
  options.max_tokens = static_cast<int64_t>(tokens.size());
  options.communicator = communicator;
  Stepper stepper(model, options);
  Logits all;
  const auto append = [&all](Logits rows) {
    for (auto& row : rows) all.push_back(std::move(row));
  };
  const size_t n_prompt = tokens.size() - 5;
  const auto run = [&](size_t start, size_t n) {
    const auto at = tokens.begin() + static_cast<int64_t>(start);
    const auto len = static_cast<int64_t>(n);
    const auto pos = static_cast<int32_t>(start);
    append(stepper.Run({{0, pos, {at, at + len}}}));
    append(stepper.RunMtp({{0, pos, {at + 1, at + 1 + len}}}));
  };
  run(0, n_prompt);
  for (size_t i = n_prompt; i + 1 < tokens.size(); ++i) run(i, 1);
  return all;
}

double MaxDiff(const Logits& a, const Logits& b) {
  EXPECT_EQ(a.size(), b.size());
  double diff = 0;
  for (size_t r = 0; r < a.size(); ++r) {
    for (size_t i = 0; i < a[r].size(); ++i) {
      diff = std::max(diff, std::abs(static_cast<double>(a[r][i]) - b[r][i]));
    }
  }
  return diff;
}

class RanksTest : public ::testing::TestWithParam<std::string> {};

TEST_P(RanksTest, TwoRanksGiveTheLogitsOfOne) {
  const std::string folder = GoldenFolder() + "/" + GetParam();
  constexpr int kRanks = 2;
  ModelOptions options;
  options.exact = true;
  options.n_threads = 1;
  TestModel whole(folder, options);
  // Beyond one HCA row, and not a multiple of anything.
  const auto tokens = RandomTokens(139, whole.config().vocab_size, 7);
  const Logits expected = Walk(whole, nullptr, tokens);

  Meeting meeting(kRanks);
  std::vector<Logits> got(kRanks);
  std::vector<std::thread> threads;
  for (int r = 0; r < kRanks; ++r) {
    threads.emplace_back([&, r] {
      ModelOptions rank_options = options;
      rank_options.rank = {
          .tp = kRanks, .tp_rank = r, .ep = kRanks, .ep_rank = r};
      TestModel part(folder, rank_options);
      InProcessRank communicator(r, meeting);
      got[static_cast<size_t>(r)] = Walk(part, &communicator, tokens);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(MaxDiff(expected, got[0]), 1e-4);
  EXPECT_EQ(MaxDiff(got[0], got[1]), 0) << "ranks must agree bit for bit";
}

INSTANTIATE_TEST_SUITE_P(All, RanksTest,
                         ::testing::Values("tiny_fp4", "tiny_base_fp8"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace belay::test
