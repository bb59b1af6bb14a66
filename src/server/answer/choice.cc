// SPDX-License-Identifier: Apache-2.0
#include "server/answer/choice.h"

#include <utility>

#include "base/error_ids.h"

namespace belay::server {

using text::CompletionEvent;

Choice::Choice(ChoiceOptions options)
    : options_(std::move(options)),
      decoder_(options_.tokenizer),
      stop_(options_.stop) {
  if (options_.chat) parser_.emplace(*options_.chat);
}

int32_t Choice::n_reasoning_tokens() const {
  if (!parser_) return 0;
  return static_cast<int32_t>(parser_->completion().n_reasoning_tokens);
}

void Choice::AddPiece(Piece piece, std::vector<Piece>& pieces) {
  if (options_.keep_text) {
    switch (piece.kind) {
      case Piece::Kind::kReasoning:
        reasoning_ += piece.text;
        break;
      case Piece::Kind::kContent:
        content_ += piece.text;
        break;
      case Piece::Kind::kCall:
        calls_.push_back(piece);
        break;
    }
  }
  // Neighbours of one kind go out as one.
  const bool joins = !pieces.empty() && pieces.back().kind == piece.kind &&
                     piece.kind != Piece::Kind::kCall;
  if (joins) {
    pieces.back().text += piece.text;
  } else {
    pieces.push_back(std::move(piece));
  }
}

// A call is held until it is complete. Its beginning may turn out to be no call
// at all (cut by the limit, malformed beyond repair), and what a client has
// once got it cannot be asked to forget: half a call would be executed or break
// its JSON parser.
void Choice::AddEvent(const CompletionEvent& event,
                      std::vector<Piece>& pieces) {
  switch (event.kind) {
    case CompletionEvent::Kind::kReasoning:
      return AddPiece({.kind = Piece::Kind::kReasoning, .text = event.text},
                      pieces);
    case CompletionEvent::Kind::kContent:
      return AddPiece({.kind = Piece::Kind::kContent, .text = event.text},
                      pieces);
    case CompletionEvent::Kind::kCallBegin:
      call_ = {.kind = Piece::Kind::kCall, .text = event.text};
      return;
    case CompletionEvent::Kind::kCallArguments:
      call_.arguments += event.text;
      return;
    case CompletionEvent::Kind::kCallEnd:
      call_.call_index = n_calls_++;
      return AddPiece(std::exchange(call_, {}), pieces);
    case CompletionEvent::Kind::kCallAbandoned:
      call_ = {};
      return;
    case CompletionEvent::Kind::kReasoningWasContent: {
      // What was streamed as reasoning comes again as the content that it was;
      // a whole answer has it once.
      const std::string text = parser_->completion().content;
      reasoning_.clear();
      return AddPiece({.kind = Piece::Kind::kContent, .text = text}, pieces);
    }
  }
}

void Choice::AddText(const std::string& text, size_t n_tokens,
                     std::vector<Piece>& pieces) {
  n_sent_bytes_ += text.size();
  if (!parser_) {
    if (!text.empty()) {
      AddPiece({.kind = Piece::Kind::kContent, .text = text}, pieces);
    }
    return;
  }
  for (const CompletionEvent& event : parser_->Feed(text, n_tokens)) {
    AddEvent(event, pieces);
  }
}

void Choice::End(const char* finish, std::vector<Piece>& pieces) {
  const bool cut = std::string_view(finish) == "length";
  if (!stopped_by_string_) AddText(stop_.Finish(decoder_.Finish()), 0, pieces);
  if (parser_) {
    const auto end =
        cut ? text::CompletionEnd::kCut : text::CompletionEnd::kTurnEnded;
    for (const CompletionEvent& event : parser_->Finish(end)) {
      AddEvent(event, pieces);
    }
  }
  finish_ = n_calls_ > 0 && !cut ? "tool_calls" : finish;
  // Tokens whose text will never come (the end token, a stop string).
  while (!held_infos_.empty() &&
         held_infos_.front().text_offset < n_sent_bytes_) {
    infos_.push_back(std::move(held_infos_.front()));
    held_infos_.pop_front();
  }
  held_infos_.clear();
}

void Choice::Fail(const TokenEvent& event) {
  finish_ = "error";
  error_ = event.error;
  if (!error_.ok()) return;
  const bool is_late = event.finish == engine::FinishReason::kDeadline;
  const bool is_cut = event.finish == engine::FinishReason::kCancelled;
  error_ = MakeError(
      is_late ? kApiDeadline : (is_cut ? kApiDraining : kEngNotFinite),
      ErrorFacts{});
}

std::vector<Piece> Choice::Take(const TokenEvent& event) {
  std::vector<Piece> pieces;
  if (!finish_.empty()) return pieces;
  if (event.token >= 0) {
    ++n_tokens_;
    const std::string text = decoder_.Append(event.token);
    const size_t n_reasoning = static_cast<size_t>(n_reasoning_tokens());
    const std::string certain = stop_.Token(event.token, text);
    const bool is_eos = stop_.reason() == text::StopReason::kEos;
    AddText(certain, 1, pieces);
    if (options_.logprobs && !is_eos) {
      held_infos_.push_back(
          {.token = event.token,
           .logprob = event.logprob,
           .top = event.top,
           .is_reasoning =
               static_cast<size_t>(n_reasoning_tokens()) > n_reasoning,
           .text_offset = n_decoded_bytes_});
    }
    if (!is_eos) n_decoded_bytes_ += text.size();
    while (!held_infos_.empty() &&
           held_infos_.front().text_offset < n_sent_bytes_) {
      infos_.push_back(std::move(held_infos_.front()));
      held_infos_.pop_front();
    }
    if (stop_.reason() == text::StopReason::kStopString) {
      stopped_by_string_ = true;
      End("stop", pieces);
      return pieces;
    }
  }
  switch (event.finish) {
    case engine::FinishReason::kNone:
      break;
    case engine::FinishReason::kStop:
      End("stop", pieces);
      break;
    case engine::FinishReason::kLength:
      End("length", pieces);
      break;
    case engine::FinishReason::kCancelled:
    case engine::FinishReason::kError:
    case engine::FinishReason::kDeadline:
      Fail(event);
      break;
  }
  return pieces;
}

std::vector<TokenInfo> Choice::TakeInfos() { return std::exchange(infos_, {}); }

}  // namespace belay::server
