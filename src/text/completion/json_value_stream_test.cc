// SPDX-License-Identifier: Apache-2.0
#include "text/completion/json_value_stream.h"

#include <random>

#include "gtest/gtest.h"
#include "text/chat/json.h"

namespace belay::text {
namespace {

// The output for all of `text`, in pieces of `n` bytes; "broken" when it is.
std::string Through(const std::string& text, size_t n = std::string::npos) {
  JsonValueStream stream;
  std::string out;
  for (size_t at = 0; at < text.size(); at += n) {
    stream.Feed(std::string_view(text).substr(at, n), &out);
    if (n > text.size()) break;
  }
  return stream.Finish(&out) ? out : "broken";
}

TEST(JsonValueStreamTest, ValidJsonIsUnchanged) {
  for (const char* text :
       {"5", " -1.5e+3 ", "true", "null ", "\"\"", "\"a\\\"b\\u00e9\" ", "[]",
        "{}", " [1 ,2, [ ] ]\n", R"({"a" : "b", "c":{"d":[true,null]}})",
        R"(["a, b", "c: {"])", R"({"k": "\\"})"}) {
    EXPECT_EQ(Through(text), text);
  }
}

TEST(JsonValueStreamTest, RepairsWhatModelsGetWrong) {
  const std::pair<const char*, const char*> kCases[] = {
      {"", "\"\""},
      {"Paris", "\"Paris\""},
      {"2024-01-01", "\"2024-01-01\""},
      {"5 apples", "\"5 apples\""},
      {"truely", "\"truely\""},
      {"01", "\"01\""},
      {"-", "\"-\""},
      {"True", "true"},
      {"[None, False]", "[null, false]"},
      {"\"he said \"hi\" ok\"", R"("he said \"hi\" ok")"},
      {"\"a\nb\"", R"("a\nb")"},
      {"\"a", "\"a\""},
      {R"("\d+")", R"("\\d+")"},
      {R"("\u12")", R"("\\u12")"},
      {R"({"k": "say "hi" x", "l": 1})", R"({"k": "say \"hi\" x", "l": 1})"},
      {"NaN", "\"NaN\""},
  };
  for (const auto& [text, json] : kCases) {
    EXPECT_EQ(Through(text), json) << text;
  }
}

TEST(JsonValueStreamTest, BrokenWhenNothingHelps) {
  for (const char* text : {"[1,]", "{1: 2}", "[", "{\"a\"", "[1] x", "{} {}",
                           "[oops]", "{\"a\": \"b", "\"a\\", "[1 2]", "{,}"}) {
    EXPECT_EQ(Through(text), "broken") << text;
  }
  EXPECT_EQ(Through(std::string(100000, '[')), "broken");
}

// Whatever comes in: the pieces do not matter, and what is not broken is JSON.
TEST(JsonValueStreamTest, AnyInputGivesJsonOrIsBroken) {
  const std::string alphabet = "{}[]\",:\\ \n1-.eEtrufalsnNoTF0u";
  std::mt19937 random(3);
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) {
      text += alphabet[random() % alphabet.size()];
    }
    const std::string json = Through(text);
    ASSERT_EQ(Through(text, 1), json) << text;
    if (json == "broken") continue;
    const auto value = ParseJson(json);
    ASSERT_TRUE(value.ok()) << text << " -> " << json;
    // Valid input must come through as it is (NaN and its like are not JSON).
    if (ParseJson(text).ok() && text.find('N') == std::string::npos) {
      ASSERT_EQ(json, text);
    }
  }
}

}  // namespace
}  // namespace belay::text
