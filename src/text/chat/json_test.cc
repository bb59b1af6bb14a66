// SPDX-License-Identifier: Apache-2.0
#include "text/chat/json.h"

#include "gtest/gtest.h"

namespace belay::text {
namespace {

// json.dumps(json.loads(text), ensure_ascii=False)
std::string Through(std::string_view text) {
  const auto value = ParseJson(text);
  return value.ok() ? DumpJson(*value) : "error";
}

TEST(JsonTest, PrintsAsPythonDoes) {
  EXPECT_EQ(Through(R"( {"a":[1,2,{"b":null}],"c":true} )"),
            R"({"a": [1, 2, {"b": null}], "c": true})");
  EXPECT_EQ(Through("[]"), "[]");
  EXPECT_EQ(Through("{}"), "{}");
  EXPECT_EQ(Through(R"({"z":1,"a":2,"z":3})"), R"({"z": 3, "a": 2})");
}

TEST(JsonTest, Strings) {
  EXPECT_EQ(Through(R"("\u4f60\ud83d\ude00\/\"\\\b\f\n\r\t")"),
            "\"你😀/\\\"\\\\\\b\\f\\n\\r\\t\"");
  EXPECT_EQ(Through("\"\\u0000\\u001f\\u007f\""), "\"\\u0000\\u001f\x7f\"");
  EXPECT_EQ(Through(R"("\ud83d")"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(Through(R"("\ud83dx\ude00")"), "\"\xEF\xBF\xBDx\xEF\xBF\xBD\"");
  EXPECT_EQ(Through(R"("\ud83d\u0041")"),
            "\"\xEF\xBF\xBD"
            "A\"");
  for (const char* bad : {"\"a\nb\"", R"("\x")", R"("\u12g4")", R"("\u-123")",
                          "\"", "\"\\", "\"\\u12", "\"\xff\""}) {
    EXPECT_EQ(Through(bad), "error") << bad;
  }
}

// The right sides were printed by CPython 3.11.
TEST(JsonTest, Numbers) {
  const std::pair<const char*, const char*> kCases[] = {
      {"0", "0"},
      {"-0", "0"},
      {"-0.0", "-0.0"},
      {"2.50", "2.5"},
      {"1e2", "100.0"},
      {"1E+16", "1e+16"},
      {"123456789012345680.0", "1.2345678901234568e+17"},
      {"9999999999999998.0", "9999999999999998.0"},
      {"0.0001", "0.0001"},
      {"0.00001", "1e-05"},
      {"1e-7", "1e-07"},
      {"1.5e300", "1.5e+300"},
      {"5e-324", "5e-324"},
      {"1e400", "Infinity"},
      {"-1e400", "-Infinity"},
      {"1e-400", "0.0"},
      {"0.1", "0.1"},
      {"0.30000000000000004", "0.30000000000000004"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"NaN", "NaN"},
      {"-Infinity", "-Infinity"},
  };
  for (const auto& [text, printed] : kCases) {
    EXPECT_EQ(Through(text), printed) << text;
  }
  for (const char* bad : {"01", "+1", ".5", "1.", "-", "1e", "0x1", "--1"}) {
    EXPECT_EQ(Through(bad), "error") << bad;
  }
}

TEST(JsonTest, RefusesWhatIsNoJson) {
  for (const char* bad :
       {"", " ", "[1,]", "{\"a\":1,}", "{a:1}", "[1 2]", "{\"a\" 1}", "nul",
        "1 2", "[", "{", "\xEF\xBB\xBF{}"}) {
    EXPECT_EQ(Through(bad), "error") << bad;
  }
  const auto error = ParseJson("[1, x]").status();
  EXPECT_EQ(ErrorIdOf(error), "CHAT-001");
  EXPECT_EQ(ErrorFactsOf(error).where, "byte 4");
}

TEST(JsonTest, DepthIsBounded) {
  const auto nested = [](int depth) {
    return std::string(static_cast<size_t>(depth), '[') +
           std::string(static_cast<size_t>(depth), ']');
  };
  EXPECT_EQ(Through(nested(kMaxJsonDepth)), nested(kMaxJsonDepth));
  EXPECT_EQ(Through(nested(kMaxJsonDepth + 2)), "error");
}

TEST(JsonTest, Truthiness) {
  for (const char* text : {"null", "false", "0", "0.0", "\"\"", "[]", "{}"}) {
    EXPECT_FALSE(ParseJson(text)->Truthy()) << text;
  }
  for (const char* text : {"true", "1", "NaN", "\"0\"", "[0]", "{\"a\":0}"}) {
    EXPECT_TRUE(ParseJson(text)->Truthy()) << text;
  }
}

TEST(JsonTest, NamesTheByteThatIsNoUtf8) {
  EXPECT_EQ(ErrorFactsOf(ParseJson("\"a\xC0\x80\"").status()).where, "byte 2");
  EXPECT_EQ(ErrorFactsOf(ParseJson("\"\xED\xA0\x80\"").status()).where,
            "byte 1");
  EXPECT_EQ(Through("\"aé你😀\""), "\"aé你😀\"");
}

}  // namespace
}  // namespace belay::text
