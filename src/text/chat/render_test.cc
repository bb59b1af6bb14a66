// SPDX-License-Identifier: Apache-2.0
#include "text/chat/render.h"

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "gtest/gtest.h"
#include "text/chat/json.h"
#include "text/chat/templates.h"

namespace belay::text {
namespace {

StatusOr<std::string> Render(
    std::string_view json,
    EncodingRevision revision = EncodingRevision::kInitial) {
  BELAY_ASSIGN_OR_RETURN(const JsonValue value, ParseJson(json));
  BELAY_ASSIGN_OR_RETURN(const ChatRequest request, ChatRequestFromJson(value));
  return RenderChat(request, revision);
}

std::string RenderOrDie(std::string_view json, EncodingRevision revision =
                                                   EncodingRevision::kInitial) {
  const StatusOr<std::string> prompt = Render(json, revision);
  return prompt.ok() ? *prompt : "error: " + prompt.status().ToString();
}

std::string ErrorId(std::string_view json) {
  return ErrorIdOf(Render(json).status());
}

TEST(RenderChatTest, EqualsTheOfficialEncoder) {
  const auto text = ReadFile("tests/data/chat/encoding_cases.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto file = ParseJson(*text);
  ASSERT_TRUE(file.ok()) << file.status();
  const JsonValue& cases = *file->Find("encode");
  EXPECT_EQ(cases.items.size(), 37u);
  for (const JsonValue& one : cases.items) {
    const auto request = ChatRequestFromJson(one);
    ASSERT_TRUE(request.ok()) << request.status();
    const auto prompt = RenderChat(*request, EncodingRevision::kInitial);
    ASSERT_TRUE(prompt.ok()) << prompt.status();
    EXPECT_EQ(*prompt, one.Find("prompt")->text) << one.Find("name")->text;
  }
}

TEST(RenderChatTest, EffortTextByRevision) {
  const auto with = [](const std::string& effort, EncodingRevision revision) {
    return RenderOrDie(R"({"messages":[{"role":"user","content":"a"}],)"
                       R"("thinking_mode":"thinking","reasoning_effort":")" +
                           effort + "\"}",
                       revision);
  };
  const std::string begin = "<｜begin▁of▁sentence｜>";
  const std::string end = "<｜User｜>a<｜Assistant｜><think>";
  const std::string absolute(kEffortAbsolute);
  const std::string beyond(kEffortBeyond);
  constexpr auto kInitial = EncodingRevision::kInitial;
  constexpr auto k0731 = EncodingRevision::k0731;
  EXPECT_EQ(with("", kInitial), begin + end);
  EXPECT_EQ(with("high", kInitial), begin + end);
  EXPECT_EQ(with("max", kInitial), begin + absolute + end);
  EXPECT_EQ(with("", k0731), begin + end);
  EXPECT_EQ(with("low", k0731), begin + end);
  EXPECT_EQ(with("high", k0731), begin + absolute + end);
  EXPECT_EQ(with("max", k0731), begin + beyond + end);
  EXPECT_NE(with("low", kInitial).find("CHAT-007"), std::string::npos);
  // The golden cases pin the first text, the length of the public copies the
  // second.
  EXPECT_EQ(beyond.size(), 528u);
  EXPECT_EQ(beyond.substr(beyond.size() - 15), "undiscovered.\n\n");
}

TEST(RenderChatTest, EffortNeedsThinkingAndTheBegin) {
  const std::string chat = RenderOrDie(
      R"({"messages":[{"role":"user","content":"a"}],
          "thinking_mode":"chat","kwargs":{"reasoning_effort":"max"}})");
  EXPECT_EQ(chat.find("Reasoning Effort"), std::string::npos);
  const std::string later = RenderOrDie(
      R"({"messages":[{"role":"user","content":"b"}],"thinking_mode":"thinking",
          "kwargs":{"reasoning_effort":"max",
                    "context":[{"role":"system","content":"s"}]}})");
  EXPECT_EQ(later, "<｜User｜>b<｜Assistant｜><think>");
}

TEST(RenderChatTest, EarlierReasoningIsDroppedUnlessToolsAreThere) {
  const std::string turns =
      R"({"role":"user","content":"a"},
         {"role":"assistant","content":"b","reasoning_content":"r1"},
         {"role":"user","content":"c"},
         {"role":"assistant","content":"d","reasoning_content":"r2"}],
         "thinking_mode":"thinking"})";
  EXPECT_EQ(RenderOrDie("{\"messages\":[" + turns),
            "<｜begin▁of▁sentence｜><｜User｜>a<｜Assistant｜></think>b"
            "<｜end▁of▁sentence｜><｜User｜>c<｜Assistant｜><think>r2</think>d"
            "<｜end▁of▁sentence｜>");
  const std::string with_tools = RenderOrDie(
      R"({"messages":[{"role":"system","tools":[{"function":{"name":"f"}}]},)" +
      turns);
  EXPECT_NE(with_tools.find("<think>r1</think>b"), std::string::npos);
}

TEST(RenderChatTest, DeveloperBeforeTheLastUserGoesWithTheReasoning) {
  const std::string messages =
      R"({"messages":[{"role":"developer","content":"d"},
                      {"role":"user","content":"u"}],"thinking_mode":)";
  EXPECT_EQ(RenderOrDie(messages + "\"thinking\"}"),
            "<｜begin▁of▁sentence｜><｜User｜>u<｜Assistant｜><think>");
  EXPECT_EQ(
      RenderOrDie(messages + "\"chat\"}"),
      "<｜begin▁of▁sentence｜><｜User｜>d<｜User｜>u<｜Assistant｜></think>");
}

TEST(RenderChatTest, UsersMergeAndTheTaskOfTheLaterIsLost) {
  EXPECT_EQ(RenderOrDie(R"([{"role":"user","content":"a"},
                            {"role":"user","content":"b","task":"query"}])"),
            "<｜begin▁of▁sentence｜><｜User｜>a\n\nb<｜Assistant｜></think>");
  EXPECT_EQ(
      RenderOrDie(R"([{"role":"user","content":"a","task":"query"},
                            {"role":"user","content":"b"}])"),
      "<｜begin▁of▁sentence｜><｜User｜>a<｜User｜>b<｜Assistant｜></think>");
  EXPECT_EQ(RenderOrDie(R"([{"role":"user","content":"a","task":"query"},
                            {"role":"tool","content":"b"}])"),
            "<｜begin▁of▁sentence｜><｜User｜>a\n\n<tool_result>b</tool_result>"
            "<｜query｜>");
}

TEST(RenderChatTest, ResultsOfUnknownCallsSortWithTheFirst) {
  const std::string prompt = RenderOrDie(
      R"([{"role":"assistant","tool_calls":[
            {"id":"a","function":{"name":"f","arguments":"{}"}},
            {"id":"b","function":{"name":"g","arguments":"{}"}}]},
          {"role":"tool","tool_call_id":"b","content":"B"},
          {"role":"user","content":"text"},
          {"role":"tool","content":"?"},
          {"role":"tool","tool_call_id":"a","content":"A"}])");
  EXPECT_NE(prompt.find("<｜User｜><tool_result>?</tool_result>\n\ntext\n\n"
                        "<tool_result>A</tool_result>\n\n"
                        "<tool_result>B</tool_result><｜Assistant｜>"),
            std::string::npos)
      << prompt;
}

TEST(RenderChatTest, ArgumentsThatAreNoObjectAreOneParameter) {
  const auto with = [](const std::string& arguments) {
    return RenderOrDie(
        R"([{"role":"assistant","tool_calls":[{"function":{"name":"f",)"
        R"("arguments":)" +
        arguments + "}}]}]");
  };
  const std::string text =
      "<｜DSML｜parameter name=\"arguments\" string=\"true\">";
  EXPECT_NE(with(R"("[1, 2]")").find(text + "[1, 2]</"), std::string::npos);
  EXPECT_NE(with(R"("")").find(text + "</"), std::string::npos);
  // Given as an object they are what the string would hold.
  EXPECT_NE(with(R"({"k": 1})").find("name=\"k\" string=\"false\">1</"),
            std::string::npos);
  EXPECT_NE(with("null").find("name=\"f\">\n\n</"), std::string::npos);
}

TEST(RenderChatTest, ContentForms) {
  EXPECT_EQ(RenderOrDie(R"([{"role":"system"},{"role":"user"}])"),
            "<｜begin▁of▁sentence｜><｜User｜><｜Assistant｜></think>");
  EXPECT_EQ(RenderOrDie(R"([{"role":"user","content":
                [{"type":"text","text":"a"},{"type":"text","text":"b"}]}])"),
            "<｜begin▁of▁sentence｜><｜User｜>a\n\nb<｜Assistant｜></think>");
  EXPECT_EQ(RenderOrDie(R"([{"role":"tool","content":
                [{"type":"image_url"},{"type":"text","text":"b"},{}]}])"),
            "<｜begin▁of▁sentence｜><｜User｜><tool_result>"
            "[Unsupported image_url]\n\nb\n\n[Unsupported None]</tool_result>"
            "<｜Assistant｜></think>");
  EXPECT_EQ(RenderOrDie(R"([{"role":"tool","content":null}])"),
            "<｜begin▁of▁sentence｜><｜User｜><tool_result>None</tool_result>"
            "<｜Assistant｜></think>");
}

TEST(RenderChatTest, ResponseFormatFollowsTheTools) {
  const std::string prompt = RenderOrDie(
      R"({"messages":[{"role":"user","content":"u"}],
          "response_format":{"type":"json_object"},
          "tools":[{"type":"function","function":{"name":"f"}}]})");
  EXPECT_NE(prompt.find("{\"name\": \"f\"}\n\nYou MUST"), std::string::npos);
  EXPECT_NE(prompt.find("to invoke tool calls.\n\n\n## Response Format:\n\n"
                        "You MUST strictly adhere to the following schema to "
                        "reply:\n{\"type\": \"json_object\"}<｜User｜>u"),
            std::string::npos);
}

TEST(RenderChatTest, RefusesWhatTheEncodingCannotSay) {
  EXPECT_EQ(ErrorId("{"), "CHAT-001");
  EXPECT_EQ(ErrorId("5"), "CHAT-002");
  EXPECT_EQ(ErrorId(R"({"messages":5})"), "CHAT-002");
  EXPECT_EQ(ErrorId("[5]"), "CHAT-002");
  EXPECT_EQ(ErrorId(R"([{"content":"x"}])"), "CHAT-002");
  EXPECT_EQ(ErrorId(R"([{"role":"user","content":null}])"), "CHAT-002");
  EXPECT_EQ(ErrorId(R"([{"role":"tool","content":{"a":1}}])"), "CHAT-002");
  EXPECT_EQ(ErrorId(R"([{"role":"function","content":""}])"), "CHAT-003");
  EXPECT_EQ(ErrorId(R"([{"role":"developer","content":""}])"), "CHAT-004");
  EXPECT_EQ(ErrorId(R"([{"role":"user","content":[{"type":"image_url"}]}])"),
            "CHAT-004");
  EXPECT_EQ(ErrorId(R"([{"role":"user","content":"","prefix":true}])"),
            "CHAT-004");
  EXPECT_EQ(ErrorId(R"([{"role":"user","content":"","task":"sing"}])"),
            "CHAT-005");
  EXPECT_EQ(ErrorId(R"([{"role":"system","tools":[{"name":"f"}]}])"),
            "CHAT-006");
  EXPECT_EQ(ErrorId(R"([{"role":"assistant","tool_calls":[{"id":"1"}]}])"),
            "CHAT-006");
  EXPECT_EQ(ErrorId(R"({"messages":[],"thinking_mode":"loud"})"), "CHAT-007");
  EXPECT_EQ(ErrorId(R"({"messages":[],"kwargs":{"effort":"max"}})"),
            "CHAT-007");
}

TEST(RenderChatTest, ErrorsNameThePlace) {
  const auto prompt =
      Render(R"([{"role":"user","content":"a"},{"role":"user","content":7}])");
  EXPECT_EQ(ErrorFactsOf(prompt.status()).where, "messages[1].content");
}

TEST(PromptIsFinishedTest, OnlyAfterACompleteAssistantTurn) {
  const auto finished = [](std::string_view json) {
    return PromptIsFinished(*ChatRequestFromJson(*ParseJson(json)));
  };
  EXPECT_TRUE(finished(R"([{"role":"assistant","content":"x"}])"));
  EXPECT_FALSE(
      finished(R"([{"role":"assistant","content":"x","prefix":true}])"));
  EXPECT_FALSE(finished(R"([{"role":"user","content":"x"}])"));
  EXPECT_FALSE(finished("[]"));
}

TEST(RevisionOfEncoderTest, TellsByTheEffortTexts) {
  EXPECT_EQ(RevisionOfEncoder(R"(X = "Reasoning Effort: Absolute maximum")"),
            EncodingRevision::kInitial);
  EXPECT_EQ(RevisionOfEncoder("Reasoning Effort: Absolute maximum with\n"
                              "Reasoning Effort: Beyond maximum"),
            EncodingRevision::k0731);
  EXPECT_EQ(RevisionOfEncoder("print()"), std::nullopt);
}

TEST(RevisionOfCheckpointTest, TellsByTheFilesOfTheFolder) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "belay_revision";
  fs::remove_all(folder);
  fs::create_directories(folder / "encoding");
  EXPECT_EQ(RevisionOfCheckpoint(folder), std::nullopt);
  std::ofstream(folder / "config.json") << R"({"dspark_block_size": 5})";
  EXPECT_EQ(RevisionOfCheckpoint(folder), EncodingRevision::k0731);
  std::ofstream(folder / "encoding" / "encoding_dsv4.py")
      << "Reasoning Effort: Absolute maximum";
  EXPECT_EQ(RevisionOfCheckpoint(folder), EncodingRevision::kInitial);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace belay::text
