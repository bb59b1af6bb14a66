// SPDX-License-Identifier: Apache-2.0
#include "text/completion/parser.h"

#include <algorithm>
#include <random>

#include "base/file.h"
#include "gtest/gtest.h"
#include "text/chat/tokens.h"

namespace belay::text {
namespace {

using Kind = CompletionEvent::Kind;
constexpr auto kChat = ThinkingMode::kChat;
constexpr auto kThinking = ThinkingMode::kThinking;

std::string Block(const std::string& inside) {
  return "\n\n<｜DSML｜tool_calls>\n" + inside + "</｜DSML｜tool_calls>";
}
std::string Invoke(const std::string& name, const std::string& parameters) {
  return "<｜DSML｜invoke name=\"" + name + "\">\n" + parameters +
         "</｜DSML｜invoke>\n";
}
std::string Parameter(const std::string& head, const std::string& value) {
  return "<｜DSML｜parameter " + head + ">" + value + "</｜DSML｜parameter>\n";
}
std::string Text(const std::string& name, const std::string& value) {
  return Parameter("name=\"" + name + "\" string=\"true\"", value);
}
std::string Json(const std::string& name, const std::string& value) {
  return Parameter("name=\"" + name + "\" string=\"false\"", value);
}
std::string Eos() { return std::string(kEos); }

std::string Arguments(const std::string& parameters) {
  const Completion got = ParseCompletion(Block(Invoke("f", parameters)), kChat);
  return got.tool_calls.size() == 1 ? got.tool_calls[0].arguments
                                    : "content: " + got.content;
}

bool Has(const Completion& completion, const std::string& id) {
  return std::any_of(
      completion.diagnostics.begin(), completion.diagnostics.end(),
      [&](const CompletionDiagnostic& d) { return id == d.id.id; });
}

// One line that says all of a completion, to compare by.
std::string Summary(const Completion& completion) {
  std::string text = DumpJson(CompletionToJson(completion));
  for (const CompletionDiagnostic& d : completion.diagnostics) {
    text += std::string("\n") + d.id.id + " " + d.detail;
  }
  return text;
}

// The message as a client builds it from the events alone.
class Client {
 public:
  void Take(const std::vector<CompletionEvent>& events) {
    for (const CompletionEvent& event : events) TakeOne(event);
  }
  std::string Message() const {
    Completion message;
    message.reasoning_content = reasoning_;
    message.content = content_;
    for (const auto& [index, call] : calls_) message.tool_calls.push_back(call);
    return DumpJson(CompletionToJson(message));
  }
  const std::string& content() const { return content_; }
  const std::string& reasoning() const { return reasoning_; }
  const std::string& open_arguments() const { return open_.arguments; }

 private:
  void TakeOne(const CompletionEvent& event) {
    switch (event.kind) {
      case Kind::kReasoning:
        reasoning_ += event.text;
        break;
      case Kind::kContent:
        content_ += event.text;
        break;
      case Kind::kCallBegin:
        open_ = {"", event.text, ""};
        open_index_ = event.call_index;
        EXPECT_GE(event.call_index, next_index_);
        next_index_ = event.call_index + 1;
        break;
      case Kind::kCallArguments:
        EXPECT_EQ(event.call_index, open_index_);
        open_.arguments += event.text;
        break;
      case Kind::kCallEnd:
        EXPECT_EQ(event.call_index, open_index_);
        calls_.emplace_back(open_index_, open_);
        break;
      case Kind::kCallAbandoned:
        EXPECT_EQ(event.call_index, open_index_);
        open_ = {};
        break;
      case Kind::kReasoningWasContent:
        content_ = std::exchange(reasoning_, "");
        break;
    }
  }

  std::string reasoning_;
  std::string content_;
  std::vector<std::pair<size_t, ToolCall>> calls_;
  ToolCall open_;
  size_t open_index_ = 0;
  size_t next_index_ = 0;
};

void ExpectSameInPieces(const std::string& text, ThinkingMode mode,
                        const std::vector<size_t>& cuts) {
  const std::string whole = Summary(ParseCompletion(text, mode));
  CompletionParser parser(mode);
  Client client;
  size_t begin = 0;
  for (const size_t cut : cuts) {
    client.Take(parser.Feed(std::string_view(text).substr(begin, cut - begin)));
    begin = cut;
  }
  client.Take(parser.Feed(std::string_view(text).substr(begin)));
  client.Take(parser.Finish(CompletionEnd::kCut));
  ASSERT_EQ(Summary(parser.completion()), whole) << text;
  ASSERT_EQ(client.Message() + whole.substr(client.Message().size()), whole)
      << text;
}

// Completions of every kind, good and bad.
std::vector<std::string> Corpus() {
  const std::string two =
      Invoke("f", Text("a", "x\"y\n") + Json("n", "[1]")) + Invoke("g", "\n");
  return {
      "",
      "hello" + Eos(),
      "r</think>hello\n\n<b> a < b" + Eos(),
      "<think>r</think>hello",
      "a" + Block(two) + Eos(),
      "r</think>a" + Block(two) + "\n" + Eos(),
      "r" + Block(two),
      "a" + Block(two) + " and more" + Block(Invoke("h", "")),
      "a" + Block(Invoke("f", Parameter("name=\"a\" string=\"maybe\"", "x"))),
      "a" + Block(Invoke("f", Text("a", "x") + Text("a", "y"))) + "z",
      "a" + Block(Invoke("f", Text("a", "x") + Json("b", "{\"k\": oops}")) +
                  Invoke("g", Text("b", "y"))),
      "a\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n"
      "<｜DSML｜parameter name=\"a\" string=\"true\">half of it",
      "a\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f",
      "a\n\n<｜DSML｜tool_calls>\n",
      "a\n\n<｜DSML｜tool_calls and so "
      "on\n\n\n<｜DSML｜tool_calls>\n<｜DSML｜x",
      "```xml\n<｜DSML｜tool_calls>\n" + two + "</｜DSML｜tool_calls>\n```\nok",
      Block(Invoke("w", Text("code",
                             "</｜DSML｜parameter> `<｜DSML｜invoke` "
                             "</think> " +
                                 Eos() + "!"))),
      Block(Invoke("f", Json("a", "Paris") + Json("b", "\"a \"b\" c\"") +
                            Json("c", "{\"x\": True, \"y\": \"p\"q\"}"))),
      "\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n"
      "<｜DSML｜parameter name=\"q\" string=\"false\">{x>\n"
      "</｜DSML｜invoke>\n</｜DSML?｜tool_calls>",
      Block(""),
      "a</think>b<think>c" + Eos() + "d",
      "你好\xE4\xBD 😀\xFF<｜DSML",
      "x\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n"
      "</｜DSML｜invoke",
  };
}

TEST(CompletionParserTest, EqualsTheOfficialParser) {
  const auto text = ReadFile("tests/data/chat/encoding_cases.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const auto file = ParseJson(*text);
  ASSERT_TRUE(file.ok()) << file.status();
  size_t n_equal = 0;
  for (const JsonValue& one : file->Find("parse")->items) {
    const auto mode = ParseThinkingMode(one.Find("thinking_mode")->text);
    const Completion got = ParseCompletion(one.Find("text")->text, *mode);
    if (const JsonValue* message = one.Find("message")) {
      EXPECT_EQ(DumpJson(CompletionToJson(got)), DumpJson(*message));
      EXPECT_TRUE(got.diagnostics.empty()) << Summary(got);
      ++n_equal;
    } else {
      EXPECT_FALSE(got.diagnostics.empty()) << one.Find("text")->text;
    }
  }
  EXPECT_EQ(n_equal, 5u);
}

TEST(CompletionParserTest, SameResultForEveryCut) {
  for (const std::string& text : Corpus()) {
    for (const ThinkingMode mode : {kChat, kThinking}) {
      for (size_t cut = 0; cut <= text.size(); ++cut) {
        ExpectSameInPieces(text, mode, {cut});
      }
      std::vector<size_t> all;
      for (size_t cut = 1; cut < text.size(); ++cut) all.push_back(cut);
      ExpectSameInPieces(text, mode, all);
    }
  }
}

TEST(CompletionParserTest, SameResultForRandomTextAndCuts) {
  const std::vector<std::string> parts = {"\n",
                                          "\n\n",
                                          ">",
                                          "\"",
                                          "a",
                                          "你",
                                          " ",
                                          "<",
                                          "</",
                                          "`",
                                          "```\n",
                                          std::string(kThinkEnd),
                                          std::string(kThinkBegin),
                                          Eos(),
                                          std::string(kCallsBegin),
                                          std::string(kCallsEnd),
                                          ">\n",
                                          std::string(kInvokeBegin),
                                          std::string(kInvokeEnd),
                                          " name=\"f\"",
                                          std::string(kParameterBegin),
                                          std::string(kParameterEnd),
                                          " string=\"true\"",
                                          " string=\"false\"",
                                          "{\"k\": 1}",
                                          "\xE4",
                                          Block(Invoke("f", Text("a", "b"))),
                                          Invoke("g", Json("n", "1")),
                                          Text("t", "v"),
                                          Json("j", "[")};
  std::mt19937 random(20261130);
  const auto below = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 3000; ++round) {
    std::string text = below(3) == 0 ? "\n\n<｜DSML｜tool_calls>\n" : "";
    for (size_t n = below(14); n > 0; --n) text += parts[below(parts.size())];
    std::vector<size_t> cuts;
    for (size_t n = below(6); n > 0; --n)
      cuts.push_back(below(text.size() + 1));
    std::sort(cuts.begin(), cuts.end());
    ExpectSameInPieces(text, below(2) == 0 ? kChat : kThinking, cuts);
  }
}

// The longest suffix of `text` that is a proper prefix of a marker.
size_t PossibleMarker(const std::string& text,
                      const std::vector<std::string>& markers) {
  for (size_t n = text.size(); n > 0; --n) {
    const std::string end = text.substr(text.size() - n);
    for (const std::string& marker : markers) {
      if (n < marker.size() && marker.substr(0, n) == end) return n;
    }
  }
  return 0;
}

TEST(CompletionParserTest, NeverHoldsBackWhatCanBeNoMarker) {
  const std::vector<std::string> markers = {"\n\n" + std::string(kCallsBegin),
                                            std::string(kCallsBegin), Eos(),
                                            std::string(kThinkEnd)};
  const std::vector<std::string> parts = {
      "\n",        "<",          "</",  "<｜",    "<｜DSML",
      "<｜DSML｜", "<｜end",     "<th", "</thin", "a",
      "你",        "tool_calls", "▁of", "`",      "\n\n<｜DSML｜tool_call"};
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const ThinkingMode mode = round % 2 == 0 ? kChat : kThinking;
    std::vector<std::string> known = markers;
    if (mode == kChat) known.pop_back();  // no </think> is awaited there
    if (mode == kThinking) known.erase(known.begin() + 1);
    CompletionParser parser(mode);
    Client client;
    std::string fed = "x";
    client.Take(parser.Feed(fed));
    for (int n = 0; n < 12; ++n) {
      const std::string& part = parts[random() % parts.size()];
      fed += part;
      const bool is_marker = std::any_of(
          known.begin(), known.end(), [&](const std::string& marker) {
            return fed.find(marker) != std::string::npos;
          });
      if (is_marker) break;  // from here on it is another state
      client.Take(parser.Feed(part));
      const std::string& out =
          mode == kChat ? client.content() : client.reasoning();
      ASSERT_EQ(out, fed.substr(0, fed.size() - PossibleMarker(fed, known)));
    }
  }
}

TEST(CompletionParserTest, ArgumentsStreamWhileTheyCome) {
  CompletionParser parser(kChat);
  Client client;
  client.Take(
      parser.Feed("ok\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n"
                  "<｜DSML｜parameter name=\"code\" string=\"true\">a\"b\n"));
  EXPECT_EQ(client.content(), "ok");
  EXPECT_EQ(client.open_arguments(), R"({"code": "a\"b\n)");
  client.Take(parser.Feed("if x </"));
  EXPECT_EQ(client.open_arguments(), R"({"code": "a\"b\nif x )");
  client.Take(parser.Feed("a"));
  EXPECT_EQ(client.open_arguments(), R"({"code": "a\"b\nif x </a)");
  client.Take(
      parser.Feed("</｜DSML｜parameter>\n<｜DSML｜parameter name=\"n\" "
                  "string=\"false\">[1, {\"k\": 2"));
  EXPECT_EQ(client.open_arguments(),
            R"({"code": "a\"b\nif x </a", "n": [1, {"k": )");
}

TEST(CompletionParserTest, CountsReasoningTokens) {
  CompletionParser parser(kThinking);
  parser.Feed("let me", 2);
  parser.Feed(" see", 1);
  parser.Feed("</think>", 1);
  parser.Feed("the answer", 5);
  parser.Finish(CompletionEnd::kTurnEnded);
  EXPECT_EQ(parser.completion().n_reasoning_tokens, 4u);
  CompletionParser chat(kChat);
  chat.Feed("the answer", 5);
  EXPECT_EQ(chat.completion().n_reasoning_tokens, 0u);
}

TEST(CompletionParserTest, TurnWithoutThinkEndIsAnAnswer) {
  const Completion ended = ParseCompletion("Hello!" + Eos(), kThinking);
  EXPECT_EQ(ended.content, "Hello!");
  EXPECT_EQ(ended.reasoning_content, "");
  EXPECT_TRUE(Has(ended, "CHAT-010"));
  // Cut by max tokens it is what it looks like: reasoning.
  const Completion cut = ParseCompletion("Hello!", kThinking);
  EXPECT_EQ(cut.content, "");
  EXPECT_EQ(cut.reasoning_content, "Hello!");
  EXPECT_TRUE(Has(cut, "CHAT-010"));
}

TEST(CompletionParserTest, CallInsideTheReasoningEndsIt) {
  const Completion got =
      ParseCompletion("hm" + Block(Invoke("f", Text("a", "b"))), kThinking);
  EXPECT_EQ(got.reasoning_content, "hm");
  ASSERT_EQ(got.tool_calls.size(), 1u);
  EXPECT_EQ(got.tool_calls[0].arguments, R"({"a": "b"})");
  EXPECT_TRUE(Has(got, "CHAT-010"));
  // What only talks about calls does not.
  const Completion talk = ParseCompletion(
      "first\n\n<｜DSML｜tool_calls> is how\n</think>done", kThinking);
  EXPECT_EQ(talk.content, "done");
  EXPECT_TRUE(talk.tool_calls.empty());
}

TEST(CompletionParserTest, MalformedCallComesBackAsText) {
  const std::string bad =
      Block(Invoke("f", Parameter("name=\"a\" string=\"maybe\"", "x")));
  const Completion got = ParseCompletion("x" + bad + Eos(), kChat);
  EXPECT_EQ(got.content, "x" + bad);
  EXPECT_TRUE(got.tool_calls.empty());
  EXPECT_TRUE(Has(got, "CHAT-011"));
}

TEST(CompletionParserTest, GoodCallsBesideABadOneCount) {
  const std::string bad = Invoke("f", Text("a", "1") + Text("a", "2"));
  const Completion got = ParseCompletion(
      "x" + Block(Invoke("e", "") + bad + Invoke("g", Json("n", "5"))), kChat);
  ASSERT_EQ(got.tool_calls.size(), 2u);
  EXPECT_EQ(got.tool_calls[0].name, "e");
  EXPECT_EQ(got.tool_calls[1].arguments, R"({"n": 5})");
  EXPECT_NE(got.content.find(bad.substr(0, bad.size() - 1)), std::string::npos)
      << got.content;
}

TEST(CompletionParserTest, CutCallComesBackAsText) {
  const std::string text =
      "x\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"rm\">\n"
      "<｜DSML｜parameter name=\"path\" string=\"true\">/";
  const Completion got = ParseCompletion(text, kChat);
  EXPECT_EQ(got.content, text);
  EXPECT_TRUE(got.tool_calls.empty());
  EXPECT_TRUE(Has(got, "CHAT-012"));
  EXPECT_EQ(ParseCompletion(text + Eos(), kChat).content, text);
}

TEST(CompletionParserTest, RepairsWhatIsClear) {
  EXPECT_EQ(Arguments(Json("a", "Paris")), R"({"a": "Paris"})");
  EXPECT_EQ(Arguments(Json("a", "{\"k\": \"say \"hi\" x\"}")),
            R"({"a": {"k": "say \"hi\" x"}})");
  EXPECT_EQ(Arguments(Parameter("name=\"a\"", "x")), R"({"a": "x"})");
  EXPECT_EQ(Arguments(Parameter("string=\"false\" name=\"a\"", "7")),
            R"({"a": 7})");
  EXPECT_EQ(
      Arguments(Parameter("name=\"a\" type=\"int\" string=\"false\"", "7")),
      R"({"a": 7})");
  EXPECT_EQ(Arguments(Text("a\"b", "x")), R"({"a\"b": "x"})");
  const Completion open =
      ParseCompletion("\n\n<｜DSML｜tool_calls><｜DSML｜invoke name=\"f\">" +
                          Text("a", "b") + "</｜DSML｜tool_calls>",
                      kChat);
  ASSERT_EQ(open.tool_calls.size(), 1u);
  EXPECT_TRUE(Has(open, "CHAT-013"));
}

TEST(CompletionParserTest, MarkersInsideAValueAreText) {
  EXPECT_EQ(Arguments(Text("a", "x</｜DSML｜parameter>y</think>")),
            R"({"a": "x</｜DSML｜parameter>y</think>"})");
  EXPECT_EQ(Arguments(Text("a", "<｜DSML｜invoke name=\"g\">")),
            R"({"a": "<｜DSML｜invoke name=\"g\">"})");
}

TEST(CompletionParserTest, ExampleInsideCodeIsText) {
  const std::string example = "Write\n```\n<｜DSML｜tool_calls>\n" +
                              Invoke("f", "") +
                              "</｜DSML｜tool_calls>\n```\nso.";
  const Completion got = ParseCompletion(example + Eos(), kChat);
  EXPECT_EQ(got.content, example);
  EXPECT_TRUE(got.tool_calls.empty());
  EXPECT_TRUE(Has(got, "CHAT-014"));
}

TEST(CompletionParserTest, BlankLineIsNotNeededOutsideCode) {
  const Completion got =
      ParseCompletion("</think>ok <｜DSML｜tool_calls>\n" + Invoke("f", "") +
                          "</｜DSML｜tool_calls>\n",
                      kThinking);
  EXPECT_EQ(got.content, "ok ");
  EXPECT_EQ(got.tool_calls.size(), 1u);
}

// A request may forbid calls, and a server knows the end from ids: then markup
// is text to the last byte, however it is cut.
TEST(CompletionParserTest, MarkupThatDoesNotCountIsText) {
  const std::string spelled = "a" + Block(Invoke("f", Text("a", "b"))) + "\n" +
                              Eos() + " and <｜DSML｜tool_calls>\n" +
                              Invoke("g", "") + Eos();
  for (const size_t n_piece : {size_t{1}, size_t{5}, spelled.size()}) {
    CompletionParser parser(kThinking, {.calls = false, .eos = false});
    const std::string text = spelled + "</think>" + spelled;
    std::string content;
    for (size_t at = 0; at < text.size(); at += n_piece) {
      for (const auto& event :
           parser.Feed(std::string_view(text).substr(at, n_piece))) {
        if (event.kind == Kind::kContent) content += event.text;
      }
    }
    for (const auto& event : parser.Finish(CompletionEnd::kTurnEnded)) {
      if (event.kind == Kind::kContent) content += event.text;
    }
    EXPECT_EQ(content, spelled);
    EXPECT_EQ(parser.completion().content, spelled);
    EXPECT_EQ(parser.completion().reasoning_content, spelled);
    EXPECT_TRUE(parser.completion().tool_calls.empty());
  }
  // Calls count, a spelled end does not.
  CompletionParser parser(kChat, {.calls = true, .eos = false});
  parser.Feed("x" + Eos() + "y" + Block(Invoke("f", Text("a", Eos()))));
  parser.Finish(CompletionEnd::kTurnEnded);
  EXPECT_EQ(parser.completion().content, "x" + Eos() + "y");
  ASSERT_EQ(parser.completion().tool_calls.size(), 1u);
  EXPECT_EQ(parser.completion().tool_calls[0].arguments,
            "{\"a\": \"" + Eos() + "\"}");
}

TEST(CompletionParserTest, BytesThatAreNoTextAreReplaced) {
  EXPECT_EQ(ParseCompletion("a\xFF\xE4\xBD", kChat).content,
            "a\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace belay::text
