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
    std::vector<Piece> all;
    auto ids = *tokenizer_->Encode(text);
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

TEST_F(ChoiceTest, CallsAreWhole) {
  Choice choice(Options());
  const auto pieces = Feed(choice, kCall, engine::FinishReason::kStop);
  EXPECT_EQ(choice.content(), "ok");
  ASSERT_EQ(choice.calls().size(), 1u);
  EXPECT_EQ(choice.calls()[0].text, "f");
  EXPECT_EQ(choice.calls()[0].arguments, "{\"k\": 3}");
  EXPECT_EQ(choice.finish(), "tool_calls");
  int n_calls = 0;
  for (const Piece& piece : pieces) {
    n_calls += piece.kind == Piece::Kind::kCall ? 1 : 0;
  }
  EXPECT_EQ(n_calls, 1);
}

TEST_F(ChoiceTest, HalfACallIsText) {
  const std::string whole(kCall);
  Choice choice(Options());
  const std::string half = whole.substr(0, whole.find("3</"));
  const auto pieces = Feed(choice, half, engine::FinishReason::kLength);
  EXPECT_TRUE(choice.calls().empty());
  EXPECT_EQ(choice.finish(), "length");
  for (const Piece& piece : pieces) {
    EXPECT_NE(piece.kind, Piece::Kind::kCall);
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
