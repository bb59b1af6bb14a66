// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/belay/shell/cli.h"

namespace belay::apps {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result Belay(std::vector<std::string> args, const std::string& input = "") {
  std::ostringstream out, err;
  std::istringstream in(input);
  const int code =
      RunBelay(std::move(args), {.out = out, .err = err, .in = &in});
  return {code, out.str(), err.str()};
}

json GoldenCases() {
  std::ifstream file("tests/data/chat/encoding_cases.json");
  return json::parse(file);
}

std::string InputOf(const json& cases) {
  std::string input;
  for (const json& one : cases) input += one.dump() + "\n";
  return input;
}

TEST(RenderCommandTest, BatchEqualsTheOfficialEncoder) {
  // dump() sorts keys; the raw file keeps them, and tool schemas are printed
  // in the order of their keys.
  std::ifstream file("tests/data/chat/encoding_cases.json");
  const auto cases = nlohmann::ordered_json::parse(file)["encode"];
  std::string input;
  for (const auto& one : cases) input += one.dump() + "\n";
  const Result result = Belay({"render", "--jsonl"}, input);
  EXPECT_EQ(result.code, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  for (const auto& one : cases) {
    ASSERT_TRUE(std::getline(lines, line));
    EXPECT_EQ(json::parse(line)["prompt"], one["prompt"].get<std::string>());
  }
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(RenderCommandTest, PrintsThePromptAndNothingElse) {
  const std::string messages = R"([{"role":"user","content":"hi"}])";
  EXPECT_EQ(Belay({"render", "--messages", "-"}, messages).out,
            "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜></think>");
  EXPECT_EQ(
      Belay({"render", "--messages", "-", "--thinking", "on"}, messages).out,
      "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜><think>");
  const Result high = Belay({"render", "--messages", "-", "--thinking", "on",
                             "--effort", "high", "--encoding", "0731"},
                            messages);
  EXPECT_THAT(high.out, HasSubstr("Absolute maximum"));
  const json as_json =
      json::parse(Belay({"render", "--messages", "-", "--json"}, messages).out);
  EXPECT_THAT(as_json["prompt"].get<std::string>(), HasSubstr("hi"));
}

TEST(RenderCommandTest, TakesToolsFromAFile) {
  const std::string path = testing::TempDir() + "belay_tools.json";
  std::ofstream(path) << R"([{"type":"function","function":{"name":"f"}}])";
  const Result result = Belay({"render", "--messages", "-", "--tools", path},
                              R"([{"role":"user","content":"hi"}])");
  EXPECT_THAT(result.out, HasSubstr("\n{\"name\": \"f\"}\n"));
}

TEST(RenderCommandTest, ABadLineGivesAnErrorAndTheBatchGoesOn) {
  const Result result =
      Belay({"render", "--jsonl"},
            "{\n\n{\"messages\":[{\"role\":\"x\"}]}\n{\"messages\":[]}\n");
  EXPECT_EQ(result.code, 1);
  std::istringstream lines(result.out);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line)["error"]["id"], "CHAT-001");
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line)["error"]["id"], "CHAT-003");
  EXPECT_THAT(json::parse(line)["error"]["where"].get<std::string>(),
              HasSubstr("line 3"));
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line)["prompt"], "<｜begin▁of▁sentence｜>");
}

TEST(RenderCommandTest, SaysWhatIsWrong) {
  EXPECT_EQ(Belay({"render"}).code, 2);
  EXPECT_EQ(Belay({"render", "--messages", "-", "--jsonl"}).code, 2);
  EXPECT_THAT(Belay({"render", "--messages", "no/such"}).err,
              HasSubstr("SYS-001"));
  EXPECT_THAT(Belay({"render", "--messages", "-"}, "nope").err,
              HasSubstr("CHAT-001"));
}

TEST(ParseCommandTest, BatchEqualsTheOfficialParser) {
  const json cases = GoldenCases()["parse"];
  const Result result = Belay({"parse", "--jsonl"}, InputOf(cases));
  EXPECT_EQ(result.code, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  for (const json& one : cases) {
    ASSERT_TRUE(std::getline(lines, line));
    const json got = json::parse(line);
    if (one.contains("message")) {
      EXPECT_EQ(got["message"], one["message"]);
      EXPECT_FALSE(got.contains("diagnostics"));
    } else {
      EXPECT_TRUE(got.contains("diagnostics"));
    }
  }
}

TEST(ParseCommandTest, TextFileAndInput) {
  const std::string text = "why</think>so";
  const Result direct = Belay({"parse", "--thinking", "on", text});
  EXPECT_EQ(json::parse(direct.out)["message"]["reasoning_content"], "why");
  EXPECT_EQ(Belay({"parse", "--thinking", "on", "-"}, text).out, direct.out);
  const std::string path = testing::TempDir() + "belay_completion.txt";
  std::ofstream(path) << text;
  EXPECT_EQ(Belay({"parse", "--thinking", "on", "--file", path}).out,
            direct.out);
  EXPECT_EQ(Belay({"parse"}).code, 2);
}

}  // namespace
}  // namespace belay::apps
