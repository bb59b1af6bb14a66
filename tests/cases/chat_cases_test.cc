// SPDX-License-Identifier: Apache-2.0
// Runs tests/cases/chat/*.jsonl: conversations to prompts, completions to
// messages.
#include <set>
#include <sstream>
#include <string>

#include "base/error_ids.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "text/chat/render.h"
#include "text/completion/parser.h"

namespace belay::text {
namespace {

std::vector<JsonValue> Cases(const std::string& name) {
  std::vector<JsonValue> cases;
  const auto text = ReadFile("tests/cases/chat/" + name);
  EXPECT_TRUE(text.ok()) << text.status();
  std::istringstream lines(text.ok() ? *text : "");
  for (std::string line; std::getline(lines, line);) {
    const auto value = ParseJson(line);
    EXPECT_TRUE(value.ok()) << value.status() << "\n" << line;
    if (value.ok()) cases.push_back(*value);
  }
  return cases;
}

StatusOr<std::string> Render(const JsonValue& one) {
  EncodingRevision revision = EncodingRevision::kInitial;
  if (const JsonValue* name = one.Find("encoding")) {
    BELAY_ASSIGN_OR_RETURN(revision, ParseEncodingRevision(name->text));
  }
  BELAY_ASSIGN_OR_RETURN(const ChatRequest request, ChatRequestFromJson(one));
  return RenderChat(request, revision);
}

TEST(ChatCasesTest, Render) {
  const std::vector<JsonValue> cases = Cases("render.jsonl");
  EXPECT_GE(cases.size(), 60u);
  for (const JsonValue& one : cases) {
    const std::string& name = one.Find("name")->text;
    const StatusOr<std::string> prompt = Render(one);
    if (const JsonValue* error = one.Find("error")) {
      EXPECT_EQ(ErrorIdOf(prompt.status()), error->text) << name;
    } else {
      ASSERT_TRUE(prompt.ok()) << name << ": " << prompt.status();
      EXPECT_EQ(*prompt, one.Find("prompt")->text) << name;
    }
  }
}

std::string IdsOf(const Completion& completion) {
  std::set<std::string> ids;
  for (const auto& diagnostic : completion.diagnostics) {
    ids.insert(diagnostic.id.id);
  }
  std::string list;
  for (const std::string& id : ids) list += id + " ";
  return list;
}

TEST(ChatCasesTest, Parse) {
  const std::vector<JsonValue> cases = Cases("parse.jsonl");
  EXPECT_GE(cases.size(), 15u);
  for (const JsonValue& one : cases) {
    const std::string& name = one.Find("name")->text;
    const auto mode = ParseThinkingMode(one.Find("thinking_mode")->text);
    ASSERT_TRUE(mode.ok()) << name;
    const Completion got = ParseCompletion(one.Find("text")->text, *mode);
    EXPECT_EQ(DumpJson(CompletionToJson(got)), DumpJson(*one.Find("message")))
        << name;
    std::string expected;
    for (const JsonValue& id : one.Find("diagnostics")->items) {
      expected += id.text + " ";
    }
    EXPECT_EQ(IdsOf(got), expected) << name;
  }
}

TEST(ChatCasesTest, EveryIdHasACase) {
  // A line that is no JSON cannot stand in a file of JSON lines.
  std::set<std::string> seen = {kChatBadJson.id};
  for (const JsonValue& one : Cases("render.jsonl")) {
    if (const JsonValue* error = one.Find("error")) seen.insert(error->text);
  }
  for (const JsonValue& one : Cases("parse.jsonl")) {
    for (const JsonValue& id : one.Find("diagnostics")->items) {
      seen.insert(id.text);
    }
  }
#define BELAY_CHECK_CASE(name, id, code)                   \
  if (std::string_view(id).substr(0, 5) == "CHAT-") {      \
    EXPECT_EQ(seen.count(id), 1u) << id << " has no case"; \
  }
  BELAY_ERROR_IDS(BELAY_CHECK_CASE)
#undef BELAY_CHECK_CASE
}

}  // namespace
}  // namespace belay::text
