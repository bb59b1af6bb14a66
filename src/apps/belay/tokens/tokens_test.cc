// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/belay/shell/cli.h"

namespace belay::apps {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr char kDemo[] = "tests/data/tokenizer/demo.json";

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result Belay(const std::string& command, std::vector<std::string> args,
             const std::string& input = "") {
  std::ostringstream out, err;
  std::istringstream in(input);
  args.insert(args.begin(), {command, "--tokenizer", kDemo});
  const int code =
      RunBelay(std::move(args), {.out = out, .err = err, .in = &in});
  return {code, out.str(), err.str()};
}

TEST(TokenizeTest, TextAndBack) {
  const std::string text = "Hello, \u4E16\u754C 12345!\n";
  const Result ids = Belay("tokenize", {text});
  EXPECT_EQ(ids.code, 0) << ids.err;
  EXPECT_EQ(ids.err, "");
  EXPECT_EQ(Belay("tokenize", {"--ids", "-"}, text).out, ids.out);
  EXPECT_EQ(Belay("detokenize", {"-"}, ids.out).out, text);
  EXPECT_EQ(Belay("detokenize", {"10, 11", "12,13"}).out,
            Belay("detokenize", {"10", "11", "12", "13"}).out);
  const json list = json::parse(Belay("tokenize", {text, "--json"}).out)["ids"];
  EXPECT_EQ(std::to_string(list.size()) + "\n",
            Belay("tokenize", {"--count", text}).out);
}

TEST(TokenizeTest, Pieces) {
  const Result pieces = Belay("tokenize", {"--pieces", "a<think> \n"});
  EXPECT_THAT(pieces.out, HasSubstr("\ta\n"));
  EXPECT_THAT(pieces.out, HasSubstr("\t<think>\n"));
  EXPECT_THAT(pieces.out, HasSubstr("\u010A\n"));
  const json result =
      json::parse(Belay("tokenize", {"--pieces", "--json", "a<think>"}).out);
  EXPECT_EQ(result["pieces"], json({"a", "<think>"}));
  EXPECT_EQ(result["ids"].size(), 2u);
  EXPECT_EQ(Belay("tokenize", {"--count", "<think>"}).out, "1\n");
  EXPECT_NE(
      Belay("tokenize", {"--count", "--plain", "<\uFF5C\u2581pad\u2581\uFF5C>"})
          .out,
      "1\n");
}

TEST(TokenizeTest, LinesInLinesOut) {
  const Result ids = Belay("tokenize", {"--jsonl"},
                           "{\"text\": \"a b\"}\n\n{\"text\": \"\"}\n");
  EXPECT_EQ(ids.code, 0);
  EXPECT_EQ(ids.err, "");
  const Result texts = Belay("detokenize", {"--jsonl"}, ids.out);
  EXPECT_EQ(texts.code, 0);
  EXPECT_EQ(texts.out, "{\"text\":\"a b\"}\n{\"text\":\"\"}\n");
}

TEST(TokenizeTest, ABadLineGivesAnErrorInItsPlace) {
  const Result ids = Belay("tokenize", {"--jsonl"},
                           "{\"text\": 5}\n[]\n{\n{}\n{\"text\": \"a\"}\n");
  EXPECT_EQ(ids.code, 1);
  std::istringstream lines(ids.out);
  std::string line;
  for (int i = 1; i <= 4; ++i) {
    ASSERT_TRUE(std::getline(lines, line));
    const json error = json::parse(line)["error"];
    EXPECT_EQ(error["id"], "ARG-001");
    EXPECT_THAT(error["where"].get<std::string>(),
                HasSubstr("line " + std::to_string(i)));
  }
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_TRUE(json::parse(line).contains("ids"));
  const Result texts =
      Belay("detokenize", {"--jsonl"},
            "{\"ids\": [1e3]}\n{\"ids\": [-1]}\n{\"ids\": [99999999999]}\n"
            "{\"ids\": [18446744073709551615]}\n{}\n");
  EXPECT_EQ(texts.code, 1);
  std::vector<std::string> errors;
  std::istringstream out(texts.out);
  while (std::getline(out, line)) {
    errors.push_back(json::parse(line)["error"]["id"].get<std::string>());
  }
  EXPECT_EQ(errors, (std::vector<std::string>{"ARG-005", "TOK-008", "TOK-008",
                                              "TOK-008", "ARG-005"}));
}

TEST(TokenizeTest, DeepNestingIsNoCrash) {
  const std::string deep =
      std::string(1'000'000, '[') + std::string(1'000'000, ']');
  const Result texts =
      Belay("detokenize", {"--jsonl"}, "{\"ids\": [" + deep + "]}\n");
  EXPECT_EQ(texts.code, 1);
  EXPECT_THAT(texts.out, HasSubstr("ARG-005"));
  EXPECT_LT(texts.out.size(), 1000u);
}

TEST(TokenizeTest, SaysWhatIsWrong) {
  EXPECT_EQ(Belay("tokenize", {}).code, 2);
  EXPECT_EQ(Belay("tokenize", {"x", "--jsonl"}).code, 2);
  EXPECT_EQ(Belay("tokenize", {"x", "--ids", "--count"}).code, 2);
  EXPECT_EQ(Belay("detokenize", {}).code, 2);
  EXPECT_THAT(Belay("detokenize", {"5", "x7"}).err, HasSubstr("ARG-005"));
  EXPECT_THAT(Belay("detokenize", {"2560"}).err, HasSubstr("TOK-008"));
  std::ostringstream out, err;
  EXPECT_EQ(RunBelay({"tokenize", "--tokenizer", "no/such", "x"},
                     {.out = out, .err = err}),
            3);
  EXPECT_THAT(err.str(), HasSubstr("SYS-001"));
}

}  // namespace
}  // namespace belay::apps
