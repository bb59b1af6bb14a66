// SPDX-License-Identifier: Apache-2.0
#include "server/core/grammar_constraint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/random.h"
#include "text/chat/json.h"
#include "text/grammar/schema/schema.h"

namespace belay::server {
namespace {

constexpr int32_t kEos = 1;

class GrammarConstraintTest : public testing::Test {
 protected:
  void SetUp() override {
    auto tokenizer = text::Tokenizer::Open("data/demo/tokenizer.json");
    ASSERT_TRUE(tokenizer.ok());
    tokenizer_ = *tokenizer;
    const auto think_end = tokenizer_->IdOf("</think>");
    ASSERT_TRUE(think_end);
    think_end_ = *think_end;
    bits_.resize((static_cast<size_t>(tokenizer_->vocab_size()) + 63) / 64);
  }

  std::shared_ptr<text::TokenMasks> Masks() {
    auto masks = shelf_.Find(*tokenizer_, "object",
                             [] { return text::JsonObjectGrammar(); });
    EXPECT_TRUE(masks.ok());
    return *masks;
  }
  bool IsAllowed(GrammarConstraint& constraint, int32_t token) {
    constraint.Allowed(bits_);
    const auto t = static_cast<size_t>(token);
    return (bits_[t / 64] >> (t % 64) & 1) != 0;
  }
  int32_t Id(const char* piece) { return tokenizer_->IdOf(piece).value(); }

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  GrammarShelf shelf_;
  std::vector<uint64_t> bits_;
  int32_t think_end_ = 0;
};

TEST_F(GrammarConstraintTest, TheTurnEndsWhenTheTextIsComplete) {
  GrammarConstraint constraint(Masks(), {{kEos}, std::nullopt});
  EXPECT_TRUE(IsAllowed(constraint, Id("{")));
  EXPECT_FALSE(IsAllowed(constraint, Id("[")));
  EXPECT_FALSE(IsAllowed(constraint, kEos));
  EXPECT_FALSE(IsAllowed(constraint, think_end_));
  constraint.Accept(Id("{"));
  EXPECT_FALSE(constraint.Done());
  EXPECT_FALSE(IsAllowed(constraint, kEos));
  constraint.Accept(Id("}"));
  EXPECT_TRUE(constraint.Done());
}

TEST_F(GrammarConstraintTest, ReasoningIsFreeButCannotEndTheTurn) {
  GrammarConstraint constraint(Masks(), {{kEos}, think_end_});
  EXPECT_TRUE(IsAllowed(constraint, Id("[")));
  EXPECT_TRUE(IsAllowed(constraint, think_end_));
  EXPECT_FALSE(IsAllowed(constraint, kEos));
  constraint.Accept(Id("["));
  constraint.Accept(think_end_);
  EXPECT_FALSE(IsAllowed(constraint, Id("[")));
  EXPECT_TRUE(IsAllowed(constraint, Id("{")));
}

// What any sampler could draw ends as an object, or is cut by the limit.
TEST_F(GrammarConstraintTest, RandomDrawsAreObjects) {
  int n_done = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    GrammarConstraint constraint(Masks(), {{kEos}, std::nullopt});
    std::string said;
    for (uint64_t i = 0; i < 400 && !constraint.Done(); ++i) {
      constraint.Allowed(bits_);
      std::vector<int32_t> allowed;
      for (size_t t = 0; t < bits_.size() * 64; ++t) {
        if ((bits_[t / 64] >> (t % 64) & 1) != 0) {
          allowed.push_back(static_cast<int32_t>(t));
        }
      }
      ASSERT_FALSE(allowed.empty()) << said;
      const int32_t token = allowed[RandomBits(seed, i) % allowed.size()];
      constraint.Accept(token);
      said += tokenizer_->BytesOf(token);
    }
    if (!constraint.Done()) continue;
    ++n_done;
    const auto json = text::ParseJson(said);
    ASSERT_TRUE(json.ok()) << said;
    EXPECT_TRUE(json->is_object());
  }
  EXPECT_GT(n_done, 3);
}

TEST_F(GrammarConstraintTest, TheShelfKeepsWhatItHasAndNotTooMuch) {
  int n_compiled = 0;
  const auto compile = [&] {
    ++n_compiled;
    return text::JsonObjectGrammar();
  };
  const auto first = shelf_.Find(*tokenizer_, "a", compile);
  const auto again = shelf_.Find(*tokenizer_, "a", compile);
  ASSERT_TRUE(first.ok() && again.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_EQ(n_compiled, 1);
  for (int i = 0; i < 40; ++i) {
    ASSERT_TRUE(shelf_.Find(*tokenizer_, std::to_string(i), compile).ok());
  }
  ASSERT_TRUE(shelf_.Find(*tokenizer_, "a", compile).ok());
  EXPECT_EQ(n_compiled, 42);  // "a" was forgotten
}

}  // namespace
}  // namespace belay::server
