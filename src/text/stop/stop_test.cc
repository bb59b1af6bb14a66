// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <random>

#include "gtest/gtest.h"
#include "text/stop/stop_matcher.h"
#include "text/stop/stop_policy.h"

namespace belay::text {
namespace {

struct Result {
  std::string text;
  std::string stop;
};

// By definition: the stop string that ends first; of those the longest.
Result Expected(const std::string& text,
                const std::vector<std::string>& stops) {
  for (size_t end = 1; end <= text.size(); ++end) {
    std::string best;
    for (const std::string& stop : stops) {
      const bool is_here =
          !stop.empty() && end >= stop.size() &&
          text.compare(end - stop.size(), stop.size(), stop) == 0;
      if (is_here && stop.size() > best.size()) best = stop;
    }
    if (!best.empty()) return {text.substr(0, end - best.size()), best};
  }
  return {text, ""};
}

TEST(StopMatcherTest, AcrossTheBordersOfPieces) {
  StopMatcher matcher({"\n\nUser:", "END"});
  EXPECT_EQ(matcher.Feed("hello\n"), "hello");
  EXPECT_EQ(matcher.Feed("\nUs"), "");
  EXPECT_EQ(matcher.Feed("ing E"), "\n\nUsing ");
  EXPECT_EQ(matcher.Feed("N"), "");
  EXPECT_EQ(matcher.Feed("D and more"), "");
  ASSERT_NE(matcher.found(), nullptr);
  EXPECT_EQ(*matcher.found(), "END");
  EXPECT_EQ(matcher.Feed("x"), "");
  EXPECT_EQ(matcher.Finish(), "");
}

TEST(StopMatcherTest, HeldTextComesBackAtTheEnd) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.Feed("xaa"), "x");
  EXPECT_EQ(matcher.Feed("a"), "a");
  EXPECT_EQ(matcher.Finish(), "aa");
  EXPECT_EQ(matcher.found(), nullptr);
}

TEST(StopMatcherTest, NoStringsHoldNothing) {
  StopMatcher matcher({"", ""});
  EXPECT_EQ(matcher.Feed("abc"), "abc");
  EXPECT_EQ(matcher.found(), nullptr);
}

TEST(StopMatcherTest, RandomTextAndCuts) {
  std::mt19937 random(11);
  const auto word = [&](size_t max) {
    std::string text;
    for (size_t n = random() % (max + 1); n > 0; --n) {
      text += "ab"[random() % 2];
    }
    return text;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stops;
    for (size_t n = random() % 4; n > 0; --n) stops.push_back(word(5));
    const std::string text = word(30);
    const Result expected = Expected(text, stops);
    StopMatcher matcher(stops);
    std::string out;
    size_t at = 0;
    while (at < text.size()) {
      const size_t n = 1 + random() % 4;
      out += matcher.Feed(std::string_view(text).substr(at, n));
      at += n;
      if (matcher.found() != nullptr) continue;
      // Held back is exactly the longest suffix that may become a stop.
      const std::string fed = text.substr(0, at);
      size_t n_held = 0;
      for (const std::string& stop : stops) {
        for (size_t k = std::min(stop.size(), fed.size()); k > n_held; --k) {
          if (fed.compare(fed.size() - k, k, stop, 0, k) == 0) n_held = k;
        }
      }
      ASSERT_EQ(out.size(), fed.size() - n_held);
    }
    if (matcher.found() == nullptr) out += matcher.Finish();
    ASSERT_EQ(out, expected.text) << text;
    ASSERT_EQ(matcher.found() == nullptr ? "" : *matcher.found(),
              expected.stop);
  }
}

TEST(StopPolicyTest, AnyOfSeveralEosIdsEnds) {
  StopPolicy policy({.eos_ids = {1, 7}, .stop = {}});
  EXPECT_EQ(policy.Token(5, "a"), "a");
  EXPECT_EQ(policy.reason(), StopReason::kNone);
  EXPECT_EQ(policy.Token(7, "<end>"), "");
  EXPECT_EQ(policy.reason(), StopReason::kEos);
  EXPECT_EQ(policy.n_tokens(), 2u);
  EXPECT_STREQ(FinishReasonName(policy.reason()), "stop");
}

TEST(StopPolicyTest, IgnoreEosGoesOnToTheLimit) {
  StopPolicy policy(
      {.eos_ids = {1}, .ignore_eos = true, .max_tokens = 3, .stop = {}});
  EXPECT_EQ(policy.Token(1, "<end>"), "<end>");
  EXPECT_EQ(policy.Token(1, ""), "");
  EXPECT_EQ(policy.reason(), StopReason::kNone);
  EXPECT_EQ(policy.Token(2, "b"), "b");
  EXPECT_EQ(policy.reason(), StopReason::kLength);
  EXPECT_STREQ(FinishReasonName(policy.reason()), "length");
}

TEST(StopPolicyTest, HeldTextComesWithTheEnd) {
  StopPolicy by_length({.eos_ids = {}, .max_tokens = 1, .stop = {"ab"}});
  EXPECT_EQ(by_length.Token(3, "xa"), "x");
  EXPECT_EQ(by_length.reason(), StopReason::kLength);
  EXPECT_EQ(by_length.Finish(), "a");

  StopPolicy by_eos({.eos_ids = {1}, .stop = {"ab"}});
  EXPECT_EQ(by_eos.Token(3, "a"), "");
  EXPECT_EQ(by_eos.Token(1, ""), "");
  EXPECT_EQ(by_eos.Finish("c"), "ac");
  EXPECT_EQ(by_eos.reason(), StopReason::kEos);
}

TEST(StopPolicyTest, StopStringWinsOverTheLimit) {
  StopPolicy policy({.eos_ids = {}, .max_tokens = 2, .stop = {"ab"}});
  EXPECT_EQ(policy.Token(3, "xa"), "x");
  EXPECT_EQ(policy.Token(4, "b!"), "");
  EXPECT_EQ(policy.reason(), StopReason::kStopString);
  EXPECT_EQ(*policy.stop_string(), "ab");
  EXPECT_EQ(policy.Finish("rest"), "");
}

}  // namespace
}  // namespace belay::text
