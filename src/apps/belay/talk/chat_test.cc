// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "apps/belay/shell/cli.h"

namespace belay::apps {
namespace {

struct Talk {
  int code = 0;
  std::string out;
  std::string err;
};

Talk Belay(std::vector<std::string> args, const std::string& input,
           bool err_is_tty = false) {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream err;
  const Environment environment = {.out = out,
                                   .err = err,
                                   .out_is_tty = false,
                                   .err_is_tty = err_is_tty,
                                   .in = &in};
  Talk talk;
  talk.code = RunBelay(std::move(args), environment);
  talk.out = out.str();
  talk.err = err.str();
  return talk;
}

TEST(ChatTest, KeepsTheConversation) {
  const Talk talk =
      Belay({"chat", "--model", "data/demo"},
            "The code word is tiger. Remember it.\nWhat is the code word?\n");
  EXPECT_EQ(talk.code, 0) << talk.err;
  const size_t last = talk.out.rfind('\n', talk.out.size() - 2);
  EXPECT_NE(talk.out.find("tiger", last), std::string::npos) << talk.out;
}

TEST(ChatTest, ResetForgetsAndThinkShowsReasoning) {
  const Talk talk = Belay({"chat", "--model", "data/demo"},
                          "Hello!\n/reset\n/think\nWhat is 43 + 37?\n/quit\n"
                          "never read\n");
  EXPECT_EQ(talk.code, 0) << talk.err;
  // The sample of data/demo/samples.json, which is a first turn.
  EXPECT_NE(talk.out.find("3 + 7 = 10; 4 + 3 + 1 = 8."), std::string::npos)
      << talk.out;
  EXPECT_NE(talk.out.find("43 + 37 = 80."), std::string::npos) << talk.out;
  EXPECT_EQ(talk.out.find("never"), std::string::npos);
}

TEST(ChatTest, ATurnThatDoesNotFitKeepsTheSession) {
  const Talk talk =
      Belay({"chat", "--model", "data/demo", "--max-context", "40"},
            std::string(400, 'x') + "\nHello!\n");
  EXPECT_EQ(talk.code, 0);
  EXPECT_NE(talk.err.find("ENG-001"), std::string::npos) << talk.err;
  EXPECT_NE(talk.out.find("Hello!"), std::string::npos) << talk.out;
}

TEST(ChatTest, NamesTheRangeInShortWords) {
  const Talk talk =
      Belay({"chat", "--model", "data/demo", "--max-tokens", "0"}, "");
  EXPECT_EQ(talk.code, 2);
  EXPECT_NE(talk.err.find("--max-tokens: Value 0 not in range 1 to 2147483647"),
            std::string::npos)
      << talk.err;
}

TEST(ChatTest, SaysThatTheTerminalHasCutALine) {
  const std::vector<std::string> args = {"chat", "--model", "data/demo",
                                         "--max-context", "40"};
  const std::string full(4095, 'x');
  EXPECT_NE(Belay(args, full + "\n", true).err.find("4095"), std::string::npos);
  EXPECT_EQ(Belay(args, full + "x\n", true).err.find("4095"),
            std::string::npos);
  EXPECT_EQ(Belay(args, full + "\n").err.find("4095"), std::string::npos);
}

TEST(RunTextTest, PrintsToolCallsAsJson) {
  const Talk talk =
      Belay({"run", "--model", "data/demo", "--messages", "-", "--json"},
            R"({"messages": [{"role": "system", "content":
          "You are an Ascend assistant.", "tools": [{"type": "function",
          "function": {"name": "get_device_health", "description":
          "Get the health of an NPU.", "parameters": {"type": "object",
          "properties": {"device": {"type": "integer"}},
          "required": ["device"]}}}]},
          {"role": "user", "content": "Is device 3 healthy?"}]})");
  EXPECT_EQ(talk.code, 0) << talk.err;
  EXPECT_NE(talk.out.find("\"get_device_health\""), std::string::npos)
      << talk.out;
}

TEST(RunTextTest, AStopStringEndsTheAnswerAndIsNoPartOfIt) {
  // "Hello! I am a tiny DeepSeek-V4 model. Ask me about Ascend NPUs."
  const Talk talk = Belay({"run", "--model", "data/demo", "--prompt", "Hello!",
                           "--stop", "V4 mod", "--json"},
                          "");
  EXPECT_EQ(talk.code, 0) << talk.err;
  EXPECT_NE(talk.out.find("\"text\": \"Hello! I am a tiny DeepSeek-\""),
            std::string::npos)
      << talk.out;
  EXPECT_NE(talk.out.find("\"finish_reason\": \"stop\""), std::string::npos)
      << talk.out;
}

TEST(RunTextTest, RefusesAPromptWithoutText) {
  const Talk file =
      Belay({"run", "--model", "data/demo", "--prompt-file", "-"}, "");
  EXPECT_EQ(file.code, 2);
  EXPECT_NE(file.err.find("ARG-004"), std::string::npos) << file.err;
  const Talk messages =
      Belay({"run", "--model", "data/demo", "--messages", "-"}, "[]");
  EXPECT_EQ(messages.code, 2);
  EXPECT_NE(messages.err.find("ARG-004"), std::string::npos) << messages.err;
}

}  // namespace
}  // namespace belay::apps
