// SPDX-License-Identifier: Apache-2.0
// Token ids -> words on the screen: what `run` and `chat` share on the way out.
#ifndef BELAY_APPS_BELAY_TALK_ANSWER_TEXT_H_
#define BELAY_APPS_BELAY_TALK_ANSWER_TEXT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/belay/shell/context.h"
#include "text/chat/request.h"
#include "text/completion/parser.h"
#include "text/detokenizer.h"
#include "text/stop/stop_matcher.h"
#include "text/tokenizer.h"

namespace belay::apps {

enum class AnswerStyle : uint8_t {
  kSilent,   // nothing is printed (JSON comes at the end)
  kRaw,      // every byte as the model wrote it, special tokens included
  kMessage,  // reasoning dim, content, tool calls as JSON
};

// One answer while it comes.
class AnswerText {
 public:
  // `stops`: strings that end the answer and are not part of it.
  AnswerText(std::shared_ptr<const text::Tokenizer> tokenizer,
             text::ThinkingMode mode, AnswerStyle style,
             std::vector<std::string> stops, const Context& context);

  // True when the answer has met a stop string: no more tokens are wanted.
  bool Take(int32_t token);
  // Nothing more comes; `turn_ended`: by the model's own end token.
  void Finish(bool turn_ended);

  const std::string& raw() const { return raw_; }
  const text::Completion& completion() const { return parser_.completion(); }

 private:
  void Add(const std::string& text, size_t n_tokens);
  void Show(const text::CompletionEvent& event);
  void Dim(bool on);

  text::StreamDecoder decoder_;
  text::StopMatcher stops_;
  text::CompletionParser parser_;
  const AnswerStyle style_;
  const Context& context_;
  std::string raw_;
  std::string call_;     // the call being written, as JSON
  bool is_dim_ = false;  // the terminal's colour
  bool has_gap_ = true;  // no line is open
};

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_TALK_ANSWER_TEXT_H_
