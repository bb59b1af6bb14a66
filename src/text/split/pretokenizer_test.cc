// SPDX-License-Identifier: Apache-2.0
#include "text/split/pretokenizer.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "text/split/regex_translate.h"
#include "text/split/unicode.h"

namespace belay::text {
namespace {

using Pieces = std::vector<std::string>;

Pieces Split(const PreTokenizer& splitter, std::string_view text) {
  std::vector<size_t> ends;
  const Status status = splitter.Split(text, &ends);
  EXPECT_TRUE(status.ok()) << status;
  Pieces pieces;
  size_t start = 0;
  for (const size_t end : ends) {
    pieces.emplace_back(text.substr(start, end - start));
    start = end;
  }
  EXPECT_EQ(start, text.size());
  return pieces;
}

std::unique_ptr<const PreTokenizer> Regex(
    const std::vector<std::string>& patterns) {
  auto made = MakeRegexPreTokenizer(patterns, "test");
  EXPECT_TRUE(made.ok()) << made.status();
  return made.ok() ? *std::move(made) : nullptr;
}

void AppendUtf8(char32_t c, std::string* text) {
  const auto put = [text](char32_t byte) {
    text->push_back(static_cast<char>(byte));
  };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

// Characters of all the classes that the patterns tell apart.
constexpr std::u32string_view kInteresting =
    U" \n\r\t\u00A0\u3000\u0085\u180E\u200B\u200D az'-.$_<|0123\u00B2\u0661"
    U"\u00E9\u0301\u4E2D\u9FA5\u9FA6\u3042\u30A2\u3099\u309B\u30FB\u30FC\u3040"
    U"\u3001\uFF5C\u2581\U0001F600\U00020000\u0000\u007F\u0378\uE000";

std::string RandomText(uint64_t seed) {
  std::string text;
  const uint64_t n = RandomBits(seed, 0) % 24;
  for (uint64_t i = 1; i <= n; ++i) {
    const uint64_t bits = RandomBits(seed, i);
    char32_t c = kInteresting[(bits >> 8) % kInteresting.size()];
    if ((bits & 0xF) == 0) c = (bits >> 8) % kNumCodePoints;
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    const uint64_t repeat = (bits >> 40) % 8 == 0 ? (bits >> 44) % 6 : 1;
    for (uint64_t k = 0; k < repeat; ++k) AppendUtf8(c, &text);
  }
  return text;
}

TEST(DeepSeekSplitTest, CutsAsThePatternsSay) {
  const auto splitter = MakeDeepSeekPreTokenizer();
  EXPECT_EQ(Split(*splitter, ""), Pieces{});
  EXPECT_EQ(Split(*splitter, "1234567 ab"), (Pieces{"123", "456", "7", " ab"}));
  EXPECT_EQ(Split(*splitter, "a  b\n\n  c  "),
            (Pieces{"a", " ", " b", "\n\n", " ", " c", "  "}));
  EXPECT_EQ(Split(*splitter, "it's !?\n x.y"),
            (Pieces{"it", "'s", " !?\n", " x", ".y"}));
  EXPECT_EQ(Split(*splitter, "\u4E2D\u6587abc\u3002"),
            (Pieces{"\u4E2D\u6587", "abc", "\u3002"}));
  // What no pattern matches stays together.
  EXPECT_EQ(Split(*splitter, std::string("\x01\x02", 2)),
            (Pieces{std::string("\x01\x02", 2)}));
}

TEST(DeepSeekSplitTest, EqualsThePatternsOnRandomText) {
  const auto fast = MakeDeepSeekPreTokenizer();
  const auto regex = Regex(DeepSeekPatterns());
  ASSERT_NE(regex, nullptr);
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const std::string text = RandomText(seed);
    ASSERT_EQ(Split(*fast, text), Split(*regex, text))
        << "seed " << seed << ": " << text;
  }
}

// Each code point between neighbours that bind to it or not.
TEST(DeepSeekSplitTest, EqualsThePatternsOnEveryCodePoint) {
  const auto fast = MakeDeepSeekPreTokenizer();
  const auto regex = Regex(DeepSeekPatterns());
  ASSERT_NE(regex, nullptr);
  // A stride that is prime: all blocks are met, and a run takes a moment. The
  // whole range has no other classes.
  for (char32_t first = 0; first < 0x32000; first += 61) {
    std::string text;
    for (char32_t c = first; c < first + 8; ++c) {
      if (c >= 0xD800 && c <= 0xDFFF) continue;
      text += "a";
      AppendUtf8(c, &text);
      AppendUtf8(c, &text);
      text += " ";
      AppendUtf8(c, &text);
      text += ".1";
    }
    ASSERT_EQ(Split(*fast, text), Split(*regex, text))
        << static_cast<uint32_t>(first);
  }
}

TEST(DeepSeekSplitTest, IsTakenForBothSpellingsOfTheLineEnds) {
  std::vector<std::string> patterns = DeepSeekPatterns();
  EXPECT_TRUE(AreDeepSeekPatterns(patterns));
  std::string& last = patterns.back();
  for (size_t at; (at = last.find("\\r\\n")) != std::string::npos;) {
    last.replace(at, 4, "\r\n");
  }
  EXPECT_TRUE(AreDeepSeekPatterns(patterns));
  patterns.pop_back();
  EXPECT_FALSE(AreDeepSeekPatterns(patterns));
}

TEST(RegexSplitTest, OtherPatternsGoThroughPcre2) {
  const auto regex = Regex({R"(\d)", R"( ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)"});
  ASSERT_NE(regex, nullptr);
  EXPECT_EQ(Split(*regex, "ab12  c!"),
            (Pieces{"ab", "1", "2", " ", " ", "c", "!"}));
  // A character of Unicode 16 is a letter, whatever PCRE2 was built with.
  const auto letters = Regex({R"(\p{Lu}+)"});
  ASSERT_NE(letters, nullptr);
  EXPECT_EQ(Split(*letters, "a\uA7CBb"), (Pieces{"a", "\uA7CB", "b"}));
  const auto spaces = Regex({R"(\s+)"});
  ASSERT_NE(spaces, nullptr);
  EXPECT_EQ(Split(*spaces, "a\u180E\u2003b"),
            (Pieces{"a\u180E", "\u2003", "b"}));
}

TEST(RegexSplitTest, RefusesWhatCouldMeanSomethingElse) {
  for (const char* pattern :
       {"^a",     "a$",       R"(\w+)",    R"(\bx)",    R"(\p{Han})", R"(\h)",
        "(?i:a)", "(?<n>a)",  "[a[b]]",    "[a&&b]",    "[]a]",       "a{,3}",
        "a{2}+",  R"((a)\1)", R"([\s-z])", R"([+-\s])", "(*UCP)a",    "[a",
        "a\\",    "a*",       "(",         "a**b)"}) {
    const auto made = MakeRegexPreTokenizer({pattern}, "test");
    ASSERT_FALSE(made.ok()) << pattern;
    EXPECT_EQ(ErrorIdOf(made.status()), "TOK-005") << pattern;
  }
}

TEST(RegexSplitTest, ReportsTheMatchLimit) {
  const auto regex = Regex({"(?:a+)+[bc]"});
  ASSERT_NE(regex, nullptr);
  std::vector<size_t> ends;
  const Status status = regex->Split(std::string(64, 'a'), &ends);
  EXPECT_EQ(ErrorIdOf(status), "TOK-006");
}

}  // namespace
}  // namespace belay::text
