// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/talk/answer_text.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace belay::apps {

using Kind = text::CompletionEvent::Kind;

AnswerText::AnswerText(std::shared_ptr<const text::Tokenizer> tokenizer,
                       text::ThinkingMode mode, AnswerStyle style,
                       std::vector<std::string> stops, const Context& context)
    : decoder_(std::move(tokenizer)),
      stops_(std::move(stops)),
      parser_(mode),
      style_(style),
      context_(context) {}

void AnswerText::Dim(bool on) {
  if (!context_.out_style.color || is_dim_ == on) return;
  context_.out << (on ? "\x1b[2m" : "\x1b[0m");
  is_dim_ = on;
}

void AnswerText::Show(const text::CompletionEvent& event) {
  switch (event.kind) {
    case Kind::kReasoning:
      Dim(true);
      context_.out << event.text;
      has_gap_ = false;
      break;
    case Kind::kContent:
      // Where colour cannot tell the two apart, a line between them does.
      if (!has_gap_ && !parser_.completion().reasoning_content.empty() &&
          parser_.completion().content.size() == event.text.size()) {
        context_.out << "\n\n";
      }
      Dim(false);
      context_.out << event.text;
      has_gap_ = false;
      break;
    case Kind::kCallBegin:
      call_ = "{\"name\": " + nlohmann::json(event.text).dump() +
              ", \"arguments\": ";
      break;
    case Kind::kCallArguments:
      call_ += event.text;
      break;
    case Kind::kCallEnd:
      Dim(false);
      context_.out << (has_gap_ ? "" : "\n") << call_ << "}\n";
      has_gap_ = true;
      break;
    case Kind::kCallAbandoned:        // its text follows as content
    case Kind::kReasoningWasContent:  // it has been shown
      break;
  }
}

void AnswerText::Add(const std::string& text, size_t n_tokens) {
  raw_ += text;
  const auto events = parser_.Feed(text, n_tokens);
  if (style_ == AnswerStyle::kSilent) return;
  if (style_ == AnswerStyle::kRaw) {
    context_.out << text << std::flush;
    return;
  }
  for (const text::CompletionEvent& event : events) Show(event);
  context_.out << std::flush;
}

bool AnswerText::Take(int32_t token) {
  Add(stops_.Feed(decoder_.Append(token)), 1);
  return stops_.found() != nullptr;
}

void AnswerText::Finish(bool turn_ended) {
  const bool stopped = stops_.found() != nullptr;
  Add(stops_.Feed(decoder_.Finish()), 0);
  if (!stopped) Add(stops_.Finish(), 0);
  const auto events =
      parser_.Finish(turn_ended || stopped ? text::CompletionEnd::kTurnEnded
                                           : text::CompletionEnd::kCut);
  if (style_ == AnswerStyle::kSilent) return;
  if (style_ == AnswerStyle::kRaw) {
    context_.out << std::endl;
    return;
  }
  for (const text::CompletionEvent& event : events) Show(event);
  Dim(false);
  context_.out << (has_gap_ ? "" : "\n") << std::flush;
}

}  // namespace belay::apps
