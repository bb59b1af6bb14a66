// SPDX-License-Identifier: Apache-2.0
// A token's logits depend on the tokens before it and on nothing else: not on
// how the sequence is cut into steps, what else is in the batch, what was in
// the slot before, or which drafts were tried and taken back. Bit for bit, on
// every back end.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "support/golden_set.h"
#include "support/stepper.h"

namespace belay::test {
namespace {

using Tokens = std::vector<int32_t>;

// The tokens of positions [begin, begin + n).
Tokens Slice(const Tokens& tokens, int64_t begin, int64_t n) {
  return {tokens.begin() + begin, tokens.begin() + begin + n};
}

int32_t Pos(int64_t position) { return static_cast<int32_t>(position); }

// {back end, "exact" or "official"}
class ConsistencyTest
    : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  // Beyond two pages of 128 and two HCA rows; the last token is only the
  // shifted id of the MTP block.
  static constexpr int64_t kLength = 261;

  ConsistencyTest() : model_(GoldenFolder() + "/tiny_fp4", Options()) {}

  static ModelOptions Options() {
    ModelOptions options;
    options.backend = std::get<0>(GetParam());
    options.exact = std::get<1>(GetParam()) == "exact";
    return options;
  }

  Tokens Sequence(uint64_t seed, int64_t length = kLength) const {
    return RandomTokens(length + 1, model_.config().vocab_size, seed);
  }

  // The logits of all positions but the extra one, alone and in one step.
  Logits Whole(const Tokens& tokens) {
    const auto n = static_cast<int64_t>(tokens.size()) - 1;
    Stepper stepper(model_, {});
    return stepper.Run({{0, 0, Slice(tokens, 0, n)}});
  }

  struct Both {
    Logits main;
    Logits mtp;
  };
  Both WholeWithMtp(const Tokens& tokens) {
    const auto n = static_cast<int64_t>(tokens.size()) - 1;
    Stepper stepper(model_, {});
    Both both;
    both.main = stepper.Run({{0, 0, Slice(tokens, 0, n)}});
    both.mtp = stepper.RunMtp({{0, 0, Slice(tokens, 1, n)}});
    return both;
  }

  TestModel model_;
};

TEST_P(ConsistencyTest, DecodeEqualsPrefill) {
  const Tokens tokens = Sequence(1);
  const Both whole = WholeWithMtp(tokens);
  // Decode crosses window ends, the first HCA row, a page border and the second
  // HCA row; from 1 token it starts without a single compressed row.
  for (const auto& [n_prompt, n_end] :
       {std::pair<int64_t, int64_t>{1, 24}, {120, 137}, {250, 261}}) {
    Stepper stepper(model_, {});
    stepper.Run({{0, 0, Slice(tokens, 0, n_prompt)}});
    stepper.RunMtp({{0, 0, Slice(tokens, 1, n_prompt)}});
    for (int64_t p = n_prompt; p < n_end; ++p) {
      const auto i = static_cast<size_t>(p);
      ASSERT_EQ(stepper.Run({{0, Pos(p), {tokens[i]}}})[0], whole.main[i])
          << "position " << p << " after a prompt of " << n_prompt;
      ASSERT_EQ(stepper.RunMtp({{0, Pos(p), {tokens[i + 1]}}})[0], whole.mtp[i])
          << "MTP, position " << p << " after a prompt of " << n_prompt;
    }
  }
}

TEST_P(ConsistencyTest, ChunksEqualWholePrefill) {
  const Tokens tokens = Sequence(2);
  const Both whole = WholeWithMtp(tokens);
  for (const int64_t chunk : {1, 3, 7, 64}) {
    Stepper stepper(model_, {});
    for (int64_t p = 0; p < kLength; p += chunk) {
      const int64_t n = std::min(chunk, kLength - p);
      const Logits main = stepper.Run({{0, Pos(p), Slice(tokens, p, n)}});
      const Logits mtp = stepper.RunMtp({{0, Pos(p), Slice(tokens, p + 1, n)}});
      for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(p + i);
        ASSERT_EQ(main[static_cast<size_t>(i)], whole.main[at])
            << "chunk " << chunk << ", position " << at;
        ASSERT_EQ(mtp[static_cast<size_t>(i)], whole.mtp[at])
            << "MTP, chunk " << chunk << ", position " << at;
      }
    }
  }
}

// Three sequences that start at different steps and advance by different
// strides: decode, prefill and chunks in one batch, slots in changing order.
TEST_P(ConsistencyTest, MixedBatchEqualsAlone) {
  const int64_t n_tokens[] = {140, 40, 131};
  const int64_t stride[] = {1, 5, 17};
  const int64_t first_chunk[] = {118, 5, 17};
  const int64_t first_step[] = {0, 3, 5};
  Tokens tokens[3];
  Logits whole[3];
  for (size_t s = 0; s < 3; ++s) {
    tokens[s] = Sequence(10 + s, n_tokens[s]);
    whole[s] = Whole(tokens[s]);
  }
  StepperOptions options;
  options.n_slots = 3;
  Stepper stepper(model_, options);
  int64_t done[] = {0, 0, 0};
  int n_mixed = 0;
  for (int64_t step = 0; step < 24; ++step) {
    std::vector<Part> parts;
    std::vector<size_t> who;
    for (size_t turn = 0; turn < 3; ++turn) {
      const size_t s = (turn + static_cast<size_t>(step)) % 3;
      if (step < first_step[s] || done[s] == n_tokens[s]) continue;
      const int64_t n = std::min(done[s] == 0 ? first_chunk[s] : stride[s],
                                 n_tokens[s] - done[s]);
      parts.push_back({Pos(static_cast<int64_t>(s)), Pos(done[s]),
                       Slice(tokens[s], done[s], n)});
      who.push_back(s);
    }
    if (parts.empty()) continue;
    n_mixed += parts.size() == 3;
    const Logits got = stepper.Run(parts);
    size_t row = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      for (size_t t = 0; t < parts[i].tokens.size(); ++t, ++row) {
        const size_t s = who[i];
        ASSERT_EQ(got[row], whole[s][static_cast<size_t>(done[s]) + t])
            << "sequence " << s << ", step " << step;
      }
      done[who[i]] += static_cast<int64_t>(parts[i].tokens.size());
    }
  }
  EXPECT_GE(n_mixed, 5);
  for (size_t s = 0; s < 3; ++s) EXPECT_EQ(done[s], n_tokens[s]);
}

// The official code leaves the compressors' state behind, so that a prompt of
// fewer than 4 tokens in a used slot sees the sequence before it.
TEST_P(ConsistencyTest, ReusedSlotSeesNothing) {
  const Tokens before = Sequence(20);
  for (const int64_t n_prompt : {1, 2, 3}) {
    const Tokens tokens = Sequence(30 + static_cast<uint64_t>(n_prompt), 20);
    const Both whole = WholeWithMtp(tokens);
    Stepper stepper(model_, {});
    stepper.Run({{0, 0, Slice(before, 0, kLength)}});
    stepper.RunMtp({{0, 0, Slice(before, 1, kLength)}});
    const auto check = [&](int64_t begin, int64_t n) {
      const Logits main =
          stepper.Run({{0, Pos(begin), Slice(tokens, begin, n)}});
      const Logits mtp =
          stepper.RunMtp({{0, Pos(begin), Slice(tokens, begin + 1, n)}});
      for (int64_t i = 0; i < n; ++i) {
        const auto at = static_cast<size_t>(begin + i);
        ASSERT_EQ(main[static_cast<size_t>(i)], whole.main[at]) << at;
        ASSERT_EQ(mtp[static_cast<size_t>(i)], whole.mtp[at]) << "MTP " << at;
      }
    };
    check(0, n_prompt);
    for (int64_t p = n_prompt; p < 20; ++p) check(p, 1);
  }
}

// Decoding with a wrong draft beside every token leaves no trace: in the
// window ring, the compressors' rings, finished rows (a draft may end a block
// of 4 or 128), index keys or the MTP block.
TEST_P(ConsistencyTest, RejectedDraftsLeaveNoTrace) {
  const Tokens tokens = Sequence(40);
  const Both whole = WholeWithMtp(tokens);
  StepperOptions options;
  options.draft_len = 1;
  for (const auto& [n_prompt, n_end] :
       {std::pair<int64_t, int64_t>{2, 22}, {122, 133}, {252, 261}}) {
    Stepper stepper(model_, options);
    stepper.Run({{0, 0, Slice(tokens, 0, n_prompt)}});
    stepper.RunMtp({{0, 0, Slice(tokens, 1, n_prompt)}});
    for (int64_t p = n_prompt; p < n_end; ++p) {
      const auto i = static_cast<size_t>(p);
      const auto wrong = static_cast<int32_t>((tokens[i + 1] + 1 + p) %
                                              model_.config().vocab_size);
      ASSERT_NE(wrong, tokens[i + 1]);
      const Logits main = stepper.Run({{0, Pos(p), {tokens[i], wrong}}});
      ASSERT_EQ(main[0], whole.main[i]) << "position " << p;
      ASSERT_NE(main[1], whole.main[std::min(i + 1, whole.main.size() - 1)]);
      // As the engine does: the rejected position gets any id.
      const Logits mtp =
          stepper.RunMtp({{0, Pos(p), {tokens[i + 1], tokens[i + 1]}}});
      ASSERT_EQ(mtp[0], whole.mtp[i]) << "MTP, position " << p;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConsistencyTest,
                         ::testing::Combine(::testing::ValuesIn(BackendNames()),
                                            ::testing::Values("official",
                                                              "exact")),
                         [](const auto& test) {
                           return std::get<0>(test.param) + "_" +
                                  std::get<1>(test.param);
                         });

}  // namespace
}  // namespace belay::test
