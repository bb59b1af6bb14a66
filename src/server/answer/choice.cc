// SPDX-License-Identifier: Apache-2.0
#include "server/answer/choice.h"

#include <algorithm>
#include <utility>

#include "base/error_ids.h"
#include "text/chat/tokens.h"

namespace belay::server {

using text::CompletionEvent;

Choice::Choice(ChoiceOptions options)
    : options_(std::move(options)),
      decoder_(options_.tokenizer),
      stop_(options_.stop) {
  if (!options_.chat || options_.verbatim) return;
  const auto mode =
      options_.reasoning_end ? text::ThinkingMode::kChat : *options_.chat;
  parser_.emplace(mode, options_.rules);
}

int32_t Choice::n_reasoning_tokens() const {
  if (options_.reasoning_end) return n_reasoning_tokens_;
  if (!parser_) return 0;
  return static_cast<int32_t>(parser_->completion().n_reasoning_tokens);
}

void Choice::AddPiece(Piece piece, std::vector<Piece>& pieces) {
  if (options_.keep_text) {
    if (piece.kind == Piece::Kind::kReasoning) reasoning_ += piece.text;
    if (piece.kind == Piece::Kind::kContent) content_ += piece.text;
  }
  // Neighbours of one kind go out as one.
  const bool joins = !pieces.empty() && pieces.back().kind == piece.kind &&
                     pieces.back().call_index == piece.call_index &&
                     piece.kind != Piece::Kind::kCallBegin;
  if (joins) {
    pieces.back().text += piece.text;
  } else {
    pieces.push_back(std::move(piece));
  }
}

// A stream has a call as it is written, as OpenAI's does. A whole answer has
// whole calls only.
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
      call_ = {.name = event.text, .arguments = {}};
      return AddPiece({.kind = Piece::Kind::kCallBegin,
                       .text = event.text,
                       .call_index = n_begun_++},
                      pieces);
    case CompletionEvent::Kind::kCallArguments:
      call_.arguments += event.text;
      return AddPiece({.kind = Piece::Kind::kCallArguments,
                       .text = event.text,
                       .call_index = n_begun_ - 1},
                      pieces);
    case CompletionEvent::Kind::kCallEnd:
      ++n_calls_;
      if (options_.keep_text) calls_.push_back(std::exchange(call_, {}));
      return;
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

void Choice::CountReasoning(int32_t token, const std::string& text) {
  if (!options_.reasoning_end || marker_end_ != kNowhere) return;
  ++n_reasoning_tokens_;
  if (token != *options_.reasoning_end) return;
  marker_end_ = n_decoded_bytes_ + text.size();
  marker_begin_ = marker_end_;
  if (text.ends_with(text::kThinkEnd)) marker_begin_ -= text::kThinkEnd.size();
}

void Choice::AddText(std::string_view text, size_t n_tokens,
                     std::vector<Piece>& pieces) {
  size_t at = n_sent_bytes_;
  n_sent_bytes_ += text.size();
  const auto take = [&](size_t end) {
    const size_t n = at < end ? std::min(text.size(), end - at) : 0;
    std::string taken(text.substr(0, n));
    text.remove_prefix(n);
    at += n;
    return taken;
  };
  if (options_.reasoning_end) {
    std::string reasoning = take(marker_begin_);
    if (!reasoning.empty()) {
      AddPiece({.kind = Piece::Kind::kReasoning, .text = std::move(reasoning)},
               pieces);
    }
    take(marker_end_);
  }
  if (parser_) {
    for (const CompletionEvent& event : parser_->Feed(text, n_tokens)) {
      AddEvent(event, pieces);
    }
  } else if (!text.empty()) {
    AddPiece({.kind = Piece::Kind::kContent, .text = std::string(text)},
             pieces);
  }
}

// A call that the limit cut is in the stream as far as it came, and "length"
// says why; its text does not come a second time. In a whole answer it is text.
void Choice::FinishParser(bool cut, std::vector<Piece>& pieces) {
  const auto end =
      cut ? text::CompletionEnd::kCut : text::CompletionEnd::kTurnEnded;
  bool is_known = false;
  for (const CompletionEvent& event : parser_->Finish(end)) {
    const bool is_text = event.kind == CompletionEvent::Kind::kContent ||
                         event.kind == CompletionEvent::Kind::kReasoning;
    if (is_known && is_text) continue;
    is_known = cut && !options_.keep_text &&
               event.kind == CompletionEvent::Kind::kCallAbandoned;
    AddEvent(event, pieces);
  }
}

void Choice::ReleaseInfos() {
  while (!held_infos_.empty() &&
         held_infos_.front().text_offset < n_sent_bytes_) {
    infos_.push_back(std::move(held_infos_.front()));
    held_infos_.pop_front();
  }
}

void Choice::End(const char* finish, std::vector<Piece>& pieces) {
  const bool cut = std::string_view(finish) == "length";
  if (!stopped_by_string_) AddText(stop_.Finish(decoder_.Finish()), 0, pieces);
  if (parser_) FinishParser(cut, pieces);
  finish_ = n_calls_ > 0 && !cut ? "tool_calls" : finish;
  ReleaseInfos();
  held_infos_.clear();  // text that will never come: the end, a stop string
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
    CountReasoning(event.token, text);
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
    ReleaseInfos();
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
