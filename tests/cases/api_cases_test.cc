// SPDX-License-Identifier: Apache-2.0
// Runs tests/cases/api/requests.jsonl: what the server reads in a request, or
// why it refuses it.
#include <cmath>
#include <map>
#include <sstream>
#include <string>

#include "base/error_ids.h"
#include "base/file.h"
#include "gtest/gtest.h"
#include "server/api/chat_request.h"
#include "server/api/completion_request.h"
#include "text/chat/json.h"

namespace belay::server {
namespace {

using text::JsonValue;

// What was read, as JSON texts by the names that cases use.
using Facts = std::map<std::string, std::string>;

std::string Number(double value) {
  return text::DumpJson(*text::ParseJson(text::PythonFloatRepr(value)));
}

std::string Quoted(const std::string& text) {
  return text::DumpJson(JsonValue::String(text));
}

std::string List(const std::vector<std::string>& items) {
  std::vector<JsonValue> values;
  for (const std::string& item : items) {
    values.push_back(JsonValue::String(item));
  }
  return text::DumpJson(JsonValue::Array(std::move(values)));
}

void AddGeneration(const Generation& g, Facts& facts) {
  const auto flag = [](bool on) { return on ? "true" : "false"; };
  facts["temperature"] = Number(g.sampling.temperature);
  facts["top_p"] = Number(g.sampling.top_p);
  facts["min_p"] = Number(g.sampling.min_p);
  facts["top_k"] = Number(g.sampling.top_k);
  facts["presence_penalty"] = Number(g.sampling.presence_penalty);
  facts["frequency_penalty"] = Number(g.sampling.frequency_penalty);
  facts["repetition_penalty"] = Number(g.sampling.repetition_penalty);
  facts["seed_given"] = flag(g.seed_given);
  facts["max_tokens"] = Number(g.max_tokens);
  facts["n"] = Number(g.n);
  facts["n_top_logprobs"] = Number(g.n_top_logprobs);
  facts["stream"] = flag(g.stream);
  facts["include_usage"] = flag(g.include_usage);
  facts["stop"] = List(g.stop);
  std::string biases;
  for (const auto& [token, bias] : g.sampling.logit_bias) {
    biases += (biases.empty() ? "" : ", ") + Quoted(std::to_string(token)) +
              ": " + Number(bias);
  }
  facts["logit_bias"] = "{" + biases + "}";
  std::vector<std::string> notes;
  for (const Note& note : g.notes) {
    notes.push_back(std::string(note.id.id) + " " + note.param);
  }
  facts["notes"] = List(notes);
}

const char* NameOf(text::ReasoningEffort effort) {
  switch (effort) {
    case text::ReasoningEffort::kDefault:
      return "";
    case text::ReasoningEffort::kLow:
      return "low";
    case text::ReasoningEffort::kHigh:
      return "high";
    case text::ReasoningEffort::kMax:
      return "max";
  }
  return "";
}

const char* NameOf(Format::Kind kind) {
  switch (kind) {
    case Format::Kind::kFree:
      return "free";
    case Format::Kind::kJsonObject:
      return "json_object";
    case Format::Kind::kJsonSchema:
      return "json_schema";
    case Format::Kind::kToolCall:
      return "tool_call";
  }
  return "";
}

StatusOr<Facts> ReadChat(const JsonValue& one) {
  ChatDefaults defaults;
  const JsonValue* thinking = one.Find("thinking_default");
  defaults.thinking = thinking != nullptr && thinking->boolean;
  if (const JsonValue* revision = one.Find("revision")) {
    BELAY_ASSIGN_OR_RETURN(defaults.revision,
                           text::ParseEncodingRevision(revision->text));
  }
  BELAY_ASSIGN_OR_RETURN(const ChatCall call,
                         ReadChatCall(*one.Find("body"), defaults));
  Facts facts;
  AddGeneration(call.generation, facts);
  const bool thinks = call.chat.thinking_mode == text::ThinkingMode::kThinking;
  facts["thinking"] = thinks ? "true" : "false";
  facts["effort"] = Quoted(NameOf(call.chat.effort));
  facts["format"] = Quoted(NameOf(call.format.kind));
  facts["function"] = Quoted(call.format.function);
  facts["has_tools"] = call.has_tools ? "true" : "false";
  // Whatever was read must render.
  const auto prompt = text::RenderChat(call.chat, defaults.revision);
  EXPECT_TRUE(prompt.ok()) << prompt.status();
  return facts;
}

StatusOr<Facts> ReadOther(const std::string& kind, const JsonValue& body) {
  Facts facts;
  if (kind == "completion") {
    BELAY_ASSIGN_OR_RETURN(const CompletionCall call, ReadCompletionCall(body));
    AddGeneration(call.generation, facts);
    facts["prompts"] = Number(static_cast<double>(call.prompts.size()));
    facts["echo"] = call.echo ? "true" : "false";
  } else if (kind == "infer") {
    BELAY_ASSIGN_OR_RETURN(const InferCall call, ReadInferCall(body));
    AddGeneration(call.generation, facts);
  } else {
    BELAY_ASSIGN_OR_RETURN(const auto tokens, ReadTokens(body));
    facts["tokens"] = Number(static_cast<double>(tokens.size()));
  }
  return facts;
}

// 5 and 5.0 are the same; floats were narrowed on the way.
bool SameFact(const JsonValue& expected, const std::string& got) {
  if (expected.kind == JsonValue::Kind::kNumber) {
    const auto value = text::ParseJson(got);
    return std::abs(std::stod(expected.text) - std::stod(value->text)) < 1e-6;
  }
  if (expected.is_object()) {
    const auto value = text::ParseJson(got);
    if (expected.members.size() != value->members.size()) return false;
    for (const auto& member : expected.members) {
      const JsonValue* other = value->Find(member.name);
      if (other == nullptr || !SameFact(member.value, text::DumpJson(*other))) {
        return false;
      }
    }
    return true;
  }
  return text::DumpJson(expected) == got;
}

TEST(ApiCasesTest, Requests) {
  const auto text = ReadFile("tests/cases/api/requests.jsonl");
  ASSERT_TRUE(text.ok()) << text.status();
  std::istringstream lines(*text);
  int n_cases = 0;
  for (std::string line; std::getline(lines, line); ++n_cases) {
    const auto one = text::ParseJson(line);
    ASSERT_TRUE(one.ok()) << line;
    const std::string& name = one->Find("name")->text;
    const std::string& kind = one->Find("kind")->text;
    const auto facts =
        kind == "chat" ? ReadChat(*one) : ReadOther(kind, *one->Find("body"));
    if (const JsonValue* error = one->Find("error")) {
      EXPECT_EQ(ErrorIdOf(facts.status()), error->text) << name;
      EXPECT_EQ(ErrorFactsOf(facts.status()).where, one->Find("where")->text)
          << name;
      continue;
    }
    ASSERT_TRUE(facts.ok()) << name << ": " << facts.status();
    for (const auto& [key, value] : one->Find("expect")->members) {
      const auto got = facts->find(key);
      ASSERT_NE(got, facts->end()) << name << ": " << key;
      EXPECT_TRUE(SameFact(value, got->second))
          << name << ": " << key << " is " << got->second;
    }
  }
  EXPECT_GE(n_cases, 120);
}

}  // namespace
}  // namespace belay::server
