// SPDX-License-Identifier: Apache-2.0
// One answer while it comes: token events -> text, reasoning, calls.
#ifndef BELAY_SERVER_ANSWER_CHOICE_H_
#define BELAY_SERVER_ANSWER_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/core/channel.h"
#include "text/completion/parser.h"
#include "text/detokenizer.h"
#include "text/stop/stop_policy.h"
#include "text/tokenizer.h"

namespace belay::server {

// A part of an answer that can be sent.
struct Piece {
  enum class Kind : uint8_t {
    kReasoning,
    kContent,
    kCallBegin,      // text: the name of the function
    kCallArguments,  // text: more of its arguments in JSON
  };
  Kind kind = Kind::kContent;
  std::string text;
  size_t call_index = 0;  // of calls: 0, 1, ... in the order they began
};

// A whole call.
struct Call {
  std::string name;
  std::string arguments;  // JSON
};

// A token with its log probability, once its text is certain.
struct TokenInfo {
  int32_t token = -1;
  float logprob = 0;
  std::vector<engine::TokenLogprob> top;
  bool is_reasoning = false;
  size_t text_offset = 0;  // bytes of text before it
};

struct ChoiceOptions {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  // How the answer begins; nothing: plain text, markers and all.
  std::optional<text::ThinkingMode> chat;
  text::CompletionRules rules;  // of the markup in a chat's answer
  // Of a constrained answer, whose form follows the token that ends the
  // reasoning: that token, when there is reasoning. Ordinary tokens that spell
  // it are reasoning, as they are to the constraint.
  std::optional<int32_t> reasoning_end;
  // The answer, behind its reasoning, is text of a form of its own (JSON): no
  // marker in it means anything.
  bool verbatim = false;
  text::StopOptions stop;
  bool logprobs = false;
  bool keep_text = false;  // for an answer that goes out as a whole
};

class Choice {
 public:
  explicit Choice(ChoiceOptions options);

  // What the event makes certain. After it, finish() may be set.
  std::vector<Piece> Take(const TokenEvent& event);

  // "" while it goes on; then "stop", "length", "tool_calls" or "error". By a
  // stop string it is set before the engine knows: the caller cancels there.
  const std::string& finish() const { return finish_; }
  bool stopped_by_string() const { return stopped_by_string_; }
  // OK, or why the answer has ended with "error".
  const Status& error() const { return error_; }

  // Log probabilities since the last call.
  std::vector<TokenInfo> TakeInfos();

  int32_t n_tokens() const { return n_tokens_; }
  int32_t n_reasoning_tokens() const;

  // With keep_text: everything so far.
  const std::string& content() const { return content_; }
  const std::string& reasoning() const { return reasoning_; }
  const std::vector<Call>& calls() const { return calls_; }

 private:
  static constexpr size_t kNowhere = static_cast<size_t>(-1);

  void CountReasoning(int32_t token, const std::string& text);
  void AddText(std::string_view text, size_t n_tokens,
               std::vector<Piece>& pieces);
  void AddEvent(const text::CompletionEvent& event, std::vector<Piece>& pieces);
  void AddPiece(Piece piece, std::vector<Piece>& pieces);
  void FinishParser(bool cut, std::vector<Piece>& pieces);
  void ReleaseInfos();
  void End(const char* finish, std::vector<Piece>& pieces);
  void Fail(const TokenEvent& event);

  const ChoiceOptions options_;
  text::StreamDecoder decoder_;
  text::StopPolicy stop_;
  std::optional<text::CompletionParser> parser_;
  Call call_;           // being written
  size_t n_begun_ = 0;  // calls
  size_t n_calls_ = 0;  // those that are whole
  int32_t n_tokens_ = 0;
  // With a reasoning_end: the bytes of its marker, and tokens down to it.
  size_t marker_begin_ = kNowhere;
  size_t marker_end_ = kNowhere;
  int32_t n_reasoning_tokens_ = 0;
  size_t n_decoded_bytes_ = 0;
  size_t n_sent_bytes_ = 0;
  std::deque<TokenInfo> held_infos_;
  std::vector<TokenInfo> infos_;
  std::string finish_;
  bool stopped_by_string_ = false;
  Status error_;
  std::string content_;
  std::string reasoning_;
  std::vector<Call> calls_;
};

}  // namespace belay::server

#endif  // BELAY_SERVER_ANSWER_CHOICE_H_
