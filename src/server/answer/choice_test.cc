// SPDX-License-Identifier: Apache-2.0
#include "server/answer/choice.h"

#include <string>

#include "base/error_ids.h"
#include "gtest/gtest.h"
#include "text/chat/tokens.h"

namespace belay::server {
namespace {

constexpr int32_t kEos = 1;

class ChoiceTest : public ::testing::Test {
 protected:
  ChoiceTest() : tokenizer_(*text::Tokenizer::Open("data/demo")) {}

  ChoiceOptions Options() const {
    ChoiceOptions options;
    options.tokenizer = tokenizer_;
    options.chat = text::ThinkingMode::kChat;
    options.stop.eos_ids = {kEos};
    options.keep_text = true;
    return options;
  }

  // Feeds the tokens of `text`, then an end; returns all pieces.
  std::vector<Piece> Feed(Choice& choice, const std::string& text,
                          engine::FinishReason finish) {
    return Feed(choice, *tokenizer_->Encode(text), finish);
  }
  std::vector<Piece> Feed(Choice& choice, std::vector<int32_t> ids,
                          engine::FinishReason finish) {
    std::vector<Piece> all;
    if (finish == engine::FinishReason::kStop) ids.push_back(kEos);
    for (size_t i = 0; i < ids.size() && choice.finish().empty(); ++i) {
      TokenEvent event;
      event.token = ids[i];
      event.logprob = -1.0f;
      if (i + 1 == ids.size()) event.finish = finish;
      for (Piece& piece : choice.Take(event)) all.push_back(std::move(piece));
    }
    n_tokens_ = ids.size();
    return all;
  }

  // Character by character, so that no marker becomes its token.
  std::vector<int32_t> Spell(const std::string& text) const {
    std::vector<int32_t> ids;
    for (size_t at = 0; at < text.size();) {
      size_t n = 1;
      while (at + n < text.size() &&
             (static_cast<uint8_t>(text[at + n]) & 0xc0) == 0x80) {
        ++n;
      }
      const auto some = *tokenizer_->Encode(text.substr(at, n));
      ids.insert(ids.end(), some.begin(), some.end());
      at += n;
    }
    return ids;
  }

  static std::string TextOf(const std::vector<Piece>& pieces,
                            Piece::Kind kind) {
    std::string text;
    for (const Piece& piece : pieces) {
      if (piece.kind == kind) text += piece.text;
    }
    return text;
  }

  std::shared_ptr<const text::Tokenizer> tokenizer_;
  size_t n_tokens_ = 0;
};

TEST_F(ChoiceTest, Text) {
  Choice choice(Options());
  const auto pieces = Feed(choice, "Hello 昇腾!", engine::FinishReason::kStop);
  EXPECT_EQ(TextOf(pieces, Piece::Kind::kContent), "Hello 昇腾!");
  EXPECT_EQ(choice.content(), "Hello 昇腾!");
  EXPECT_EQ(choice.finish(), "stop");
  EXPECT_EQ(choice.n_tokens(), static_cast<int32_t>(n_tokens_));
  EXPECT_EQ(choice.n_reasoning_tokens(), 0);
}

TEST_F(ChoiceTest, ReasoningIsCounted) {
  ChoiceOptions options = Options();
  options.chat = text::ThinkingMode::kThinking;
  options.logprobs = true;
  Choice choice(options);
  const auto pieces =
      Feed(choice, "I think</think>42", engine::FinishReason::kStop);
  EXPECT_EQ(TextOf(pieces, Piece::Kind::kReasoning), "I think");
  EXPECT_EQ(choice.reasoning(), "I think");
  EXPECT_EQ(choice.content(), "42");
  EXPECT_EQ(choice.n_reasoning_tokens(),
            static_cast<int32_t>(tokenizer_->Encode("I think")->size()) + 1);
  int32_t n_reasoning = 0;
  for (const TokenInfo& info : choice.TakeInfos()) {
    n_reasoning += info.is_reasoning ? 1 : 0;
  }
  EXPECT_EQ(n_reasoning, choice.n_reasoning_tokens());
}

TEST_F(ChoiceTest, StopStringsEndBeforeTheEngineDoes) {
  ChoiceOptions options = Options();
  options.stop.stop = {"lo w"};
  options.logprobs = true;
  Choice choice(options);
  Feed(choice, "Hello world", engine::FinishReason::kNone);
  EXPECT_EQ(choice.content(), "Hel");
  EXPECT_EQ(choice.finish(), "stop");
  EXPECT_TRUE(choice.stopped_by_string());
  // Nothing of what the engine had already made comes behind it.
  TokenEvent late;
  late.token = 300;
  EXPECT_TRUE(choice.Take(late).empty());
  for (const TokenInfo& info : choice.TakeInfos()) {
    EXPECT_LT(info.text_offset, 3u);
  }
}

TEST_F(ChoiceTest, HeldTextComesAtTheLimit) {
  ChoiceOptions options = Options();
  options.stop.stop = {"world!"};
  Choice choice(options);
  Feed(choice, "Hello world", engine::FinishReason::kLength);
  EXPECT_EQ(choice.content(), "Hello world");
  EXPECT_EQ(choice.finish(), "length");
}

constexpr char kCall[] =
    "ok\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n"
    "<｜DSML｜parameter name=\"k\" string=\"false\">3</｜DSML｜parameter>\n"
    "</｜DSML｜invoke>\n</｜DSML｜tool_calls>";

TEST_F(ChoiceTest, CallsOfAWholeAnswerAreWhole) {
  Choice choice(Options());
  Feed(choice, kCall, engine::FinishReason::kStop);
  EXPECT_EQ(choice.content(), "ok");
  ASSERT_EQ(choice.calls().size(), 1u);
  EXPECT_EQ(choice.calls()[0].name, "f");
  EXPECT_EQ(choice.calls()[0].arguments, "{\"k\": 3}");
  EXPECT_EQ(choice.finish(), "tool_calls");
}

TEST_F(ChoiceTest, HalfACallIsTextInAWholeAnswer) {
  const std::string whole(kCall);
  Choice choice(Options());
  const std::string half = whole.substr(0, whole.find("3</"));
  Feed(choice, half, engine::FinishReason::kLength);
  EXPECT_TRUE(choice.calls().empty());
  EXPECT_EQ(choice.finish(), "length");
  EXPECT_EQ(choice.content(), half);
}

// In a stream a call comes as it is written.
TEST_F(ChoiceTest, ArgumentsComeInPieces) {
  ChoiceOptions options = Options();
  options.keep_text = false;
  Choice choice(options);
  std::string two(kCall);
  const std::string call = two.substr(two.find("<｜DSML｜invoke"));
  two.insert(two.find("</｜DSML｜tool_calls>"),
             call.substr(0, call.find("</｜DSML｜tool_calls>")));
  const auto value = two.rfind("3</");
  two.replace(value, 1, "\"climb with the long red rope, please\"");
  const auto pieces = Feed(choice, two, engine::FinishReason::kStop);
  std::vector<std::string> names, arguments;
  size_t n_pieces = 0;
  for (const Piece& piece : pieces) {
    if (piece.kind == Piece::Kind::kCallBegin) {
      EXPECT_EQ(piece.call_index, names.size());
      names.push_back(piece.text);
      arguments.emplace_back();
    }
    if (piece.kind == Piece::Kind::kCallArguments) {
      ASSERT_EQ(piece.call_index + 1, names.size());
      arguments.back() += piece.text;
      ++n_pieces;
    }
  }
  EXPECT_EQ(TextOf(pieces, Piece::Kind::kContent), "ok");
  EXPECT_EQ(names, (std::vector<std::string>{"f", "f"}));
  EXPECT_EQ(arguments[0], "{\"k\": 3}");
  EXPECT_EQ(arguments[1], "{\"k\": \"climb with the long red rope, please\"}");
  EXPECT_GT(n_pieces, 6u) << "token by token";
  EXPECT_EQ(choice.finish(), "tool_calls");
}

TEST_F(ChoiceTest, AStreamEndsInsideACallAsItWasCut) {
  ChoiceOptions options = Options();
  options.keep_text = false;
  const std::string whole(kCall);
  const std::string half = whole.substr(0, whole.find("3</"));
  Choice cut(options);
  const auto pieces = Feed(cut, half, engine::FinishReason::kLength);
  EXPECT_EQ(cut.finish(), "length");
  EXPECT_EQ(TextOf(pieces, Piece::Kind::kCallBegin), "f");
  EXPECT_EQ(TextOf(pieces, Piece::Kind::kCallArguments), "{\"k\": ");
  EXPECT_EQ(TextOf(pieces, Piece::Kind::kContent), "ok") << "not twice";
  // A turn that ends there is no call: what it was is told as text, too.
  Choice ended(options);
  const auto said = Feed(ended, half, engine::FinishReason::kStop);
  EXPECT_EQ(ended.finish(), "stop");
  EXPECT_EQ(TextOf(said, Piece::Kind::kContent), half);
}

// JSON may spell any marker; so may a text whose request forbids calls.
TEST_F(ChoiceTest, TextOfAFormIsTakenAsItIs) {
  const std::string spelled = "{\"a\": \"<think>" + std::string(kCall) +
                              "<｜end▁of▁sentence｜></think>\"}";
  for (const bool verbatim : {true, false}) {
    ChoiceOptions options = Options();
    options.verbatim = verbatim;
    options.rules = {.calls = false, .eos = false};
    Choice choice(options);
    const auto pieces =
        Feed(choice, Spell(spelled), engine::FinishReason::kStop);
    EXPECT_EQ(choice.content(), spelled);
    EXPECT_EQ(TextOf(pieces, Piece::Kind::kContent), spelled);
    EXPECT_TRUE(choice.calls().empty());
    EXPECT_EQ(choice.finish(), "stop");
  }
}

// The token ends the reasoning, not ordinary tokens that spell it, and nothing
// in the reasoning is a call.
TEST_F(ChoiceTest, ConstrainedReasoningEndsWithItsToken) {
  const int32_t think_end = *tokenizer_->IdOf(text::kThinkEnd);
  const std::string reasoning = "a</think>b\n\n<｜DSML｜tool_calls>c";
  std::vector<int32_t> ids = Spell(reasoning);
  const auto n_reasoning = static_cast<int32_t>(ids.size()) + 1;
  ids.push_back(think_end);
  for (const int32_t id : Spell("{}</think>")) ids.push_back(id);
  for (const bool has_stop : {false, true}) {
    ChoiceOptions options = Options();
    options.chat = text::ThinkingMode::kThinking;
    options.reasoning_end = think_end;
    options.verbatim = true;
    options.logprobs = true;
    // Holds text back over the token that ends the reasoning.
    if (has_stop) options.stop.stop = {"c</think>{}!"};
    Choice choice(options);
    Feed(choice, ids, engine::FinishReason::kStop);
    EXPECT_EQ(choice.reasoning(), reasoning);
    EXPECT_EQ(choice.content(), "{}</think>");
    EXPECT_EQ(choice.n_reasoning_tokens(), n_reasoning);
    int32_t n_told = 0;
    for (const TokenInfo& info : choice.TakeInfos()) {
      n_told += info.is_reasoning ? 1 : 0;
    }
    EXPECT_EQ(n_told, n_reasoning);
  }
}

TEST_F(ChoiceTest, ReasoningThatWasTheAnswer) {
  ChoiceOptions options = Options();
  options.chat = text::ThinkingMode::kThinking;
  Choice choice(options);
  const auto pieces = Feed(choice, "42", engine::FinishReason::kStop);
  EXPECT_EQ(choice.content(), "42");
  EXPECT_EQ(choice.reasoning(), "");
  EXPECT_EQ(TextOf(pieces, Piece::Kind::kContent), "42");
}

TEST_F(ChoiceTest, PlainTextKeepsItsMarkers) {
  ChoiceOptions options = Options();
  options.chat.reset();
  Choice choice(options);
  Feed(choice, "a</think>b", engine::FinishReason::kStop);
  EXPECT_EQ(choice.content(), "a</think>b");
}

TEST_F(ChoiceTest, EndsThatAreErrors) {
  const std::pair<engine::FinishReason, ErrorId> cases[] = {
      {engine::FinishReason::kError, kEngNotFinite},
      {engine::FinishReason::kDeadline, kApiDeadline},
      {engine::FinishReason::kCancelled, kApiDraining}};
  for (const auto& [finish, id] : cases) {
    Choice choice(Options());
    TokenEvent event;
    event.finish = finish;
    choice.Take(event);
    EXPECT_EQ(choice.finish(), "error");
    EXPECT_EQ(ErrorIdOf(choice.error()), id.id);
  }
}

}  // namespace
}  // namespace belay::server
