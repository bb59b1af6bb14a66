// SPDX-License-Identifier: Apache-2.0
// Text: reasoning, content, the end. The calls are in parser_calls.cc.
#include "text/completion/parser.h"

#include <utility>

#include "base/error_ids.h"
#include "text/chat/tokens.h"

namespace belay::text {
namespace {

using Kind = CompletionEvent::Kind;

// The official begin of a block: the blank line belongs to it.
constexpr std::string_view kStrictCallsBegin = "\n\n<｜DSML｜tool_calls";

// Stands in no text: UTF-8 has no such byte.
constexpr std::string_view kNever = "\xff";

}  // namespace

CompletionParser::CompletionParser(ThinkingMode mode, CompletionRules rules)
    : eos_(rules.eos ? kEos : kNever),
      calls_begin_(rules.calls ? kCallsBegin : kNever),
      strict_calls_begin_(rules.calls ? kStrictCallsBegin : kNever),
      in_reasoning_(mode == ThinkingMode::kThinking) {}

std::vector<CompletionEvent> CompletionParser::Feed(std::string_view text,
                                                    size_t n_tokens) {
  if (in_reasoning_ && !has_begun_) {
    completion_.n_reasoning_tokens += n_tokens;
  }
  pending_ += utf8_.Append(text);
  while (Step()) {
  }
  pending_.erase(0, at_);
  at_ = 0;
  return std::exchange(events_, {});
}

std::vector<CompletionEvent> CompletionParser::Finish(CompletionEnd end) {
  pending_ += utf8_.Finish();
  while (Step()) {
  }
  // Each round leaves a state that waits for more; none can come back to one
  // without consuming.
  while (FinishState()) {
    while (Step()) {
    }
  }
  const bool turn_ended = saw_eos_ || end == CompletionEnd::kTurnEnded;
  if (in_reasoning_) FinishReasoning(turn_ended);
  NoteMarkersInText();
  return std::exchange(events_, {});
}

bool CompletionParser::Step() {
  if (rest().empty()) return false;
  switch (state_) {
    case State::kStart:
      return StepStart();
    case State::kReasoning:
      return StepReasoning();
    case State::kContent:
      return StepContent();
    case State::kBlockHead:
      return StepBlockHead();
    case State::kBlock:
      return StepBlock();
    case State::kBlockEnd:
      return SkipCloser(State::kAfterBlock);
    case State::kInvoke:
      return StepInvoke();
    case State::kAfterName:
      return StepAfterName();
    case State::kParameter:
      return StepParameter();
    case State::kValue:
      return StepValue();
    case State::kInvokeCloser:
      return SkipCloser(State::kBlock);
    case State::kBadInvoke:
      return StepBadInvoke();
    case State::kAfterBlock:
      return StepAfterBlock();
    case State::kEnded:
      NoteOnce(kChatStrayText, "text behind the end of the turn");
      Consume(rest().size());
      return false;
  }
  return false;
}

// Some servers leave <think> to the model instead of the prompt, and a model
// may think although it was told not to.
bool CompletionParser::StepStart() {
  const Match match = MatchPrefix(rest(), kThinkBegin);
  if (match == Match::kNotYet) return false;
  if (match == Match::kYes) {
    Consume(kThinkBegin.size());
    in_reasoning_ = true;
  }
  state_ = in_reasoning_ ? State::kReasoning : State::kContent;
  return true;
}

bool CompletionParser::StepReasoning() {
  const Found found =
      FindMarker(rest(), {kThinkEnd, eos_, strict_calls_begin_});
  TakeText(found.n_text);
  switch (found.marker) {
    case 0:
      Consume(kThinkEnd.size());
      in_reasoning_ = false;
      state_ = State::kContent;
      return true;
    case 1:
      return EndTurn();
    case 2:
      EnterBlock(kStrictCallsBegin.size());
      return true;
    default:
      return false;
  }
}

bool CompletionParser::StepContent() {
  const Found found =
      FindMarker(rest(), {strict_calls_begin_, eos_, calls_begin_});
  TakeText(found.n_text);
  switch (found.marker) {
    case 0:
      EnterBlock(kStrictCallsBegin.size());
      return true;
    case 1:
      return EndTurn();
    case 2:
      // Without its blank line it may be an example that the model shows.
      if (code_.in_code()) {
        TakeText(kCallsBegin.size());
      } else {
        EnterBlock(kCallsBegin.size());
      }
      return true;
    default:
      return false;
  }
}

bool CompletionParser::StepAfterBlock() {
  ConsumeRaw(CountBlanks(rest()));
  if (rest().empty()) return false;
  const Match eos = MatchPrefix(rest(), eos_);
  const Match calls = MatchPrefix(rest(), calls_begin_);
  if (eos == Match::kNotYet || calls == Match::kNotYet) return false;
  if (eos == Match::kYes) return EndTurn();
  if (calls == Match::kYes) {
    EnterBlock(kCallsBegin.size());
    return true;
  }
  NoteOnce(kChatStrayText, "text behind the tool calls");
  state_ = State::kContent;
  EmitText(std::exchange(raw_, {}));
  return true;
}

bool CompletionParser::EndTurn() {
  Consume(kEos.size());
  saw_eos_ = true;
  state_ = State::kEnded;
  return true;
}

// What a state makes of the end of the input. True when there is more to do.
bool CompletionParser::FinishState() {
  switch (state_) {
    case State::kStart:
      state_ = in_reasoning_ ? State::kReasoning : State::kContent;
      return true;
    case State::kReasoning:
    case State::kContent:
    case State::kBadInvoke:
      TakeText(rest().size());
      return false;
    case State::kBlockHead:
      LeaveBlockHead();
      return true;
    case State::kBlock:
      NoteOnce(kChatCallRepaired, "the block of calls was not closed");
      EmitRestOfBlock();
      return false;
    case State::kInvoke:
    case State::kAfterName:
    case State::kParameter:
    case State::kValue:
      FailCall(kChatCallCut, "the completion ended inside a call");
      return true;
    case State::kBlockEnd:
    case State::kInvokeCloser:
    case State::kEnded:
      return false;
    case State::kAfterBlock:
      EmitRestOfBlock();
      return false;
  }
  return false;
}

// Blanks behind calls are no content; anything else is, such as half a marker.
void CompletionParser::EmitRestOfBlock() {
  if (rest().empty()) return;
  EmitText(std::exchange(raw_, {}));
  TakeText(rest().size());
}

void CompletionParser::FinishReasoning(bool turn_ended) {
  NoteOnce(kChatNoThinkEnd, turn_ended ? "the turn ended inside the reasoning"
                                       : "the completion was cut");
  if (!turn_ended || completion_.reasoning_content.empty()) return;
  completion_.content = std::exchange(completion_.reasoning_content, {});
  completion_.n_reasoning_tokens = 0;
  events_.push_back({Kind::kReasoningWasContent, "", 0});
}

void CompletionParser::NoteMarkersInText() {
  for (const std::string_view marker : {kBos, kThinkBegin, kThinkEnd, kDsml}) {
    for (const std::string* text :
         {&completion_.content, &completion_.reasoning_content}) {
      if (text->find(marker) == std::string::npos) continue;
      NoteOnce(kChatStrayMarker, std::string(marker));
    }
  }
}

void CompletionParser::TakeText(size_t n_bytes) {
  EmitText(rest().substr(0, n_bytes));
  Consume(n_bytes);
}

void CompletionParser::EmitText(std::string_view text) {
  if (text.empty()) return;
  if (in_reasoning_) {
    completion_.reasoning_content += text;
    Emit(Kind::kReasoning, text);
  } else {
    completion_.content += text;
    code_.Append(text);
    Emit(Kind::kContent, text);
  }
}

void CompletionParser::Emit(Kind kind, std::string_view text) {
  const bool is_text = kind == Kind::kReasoning || kind == Kind::kContent ||
                       kind == Kind::kCallArguments;
  if (is_text && !events_.empty() && events_.back().kind == kind) {
    events_.back().text += text;
    return;
  }
  const bool is_call = kind != Kind::kReasoning && kind != Kind::kContent;
  events_.push_back({kind, std::string(text), is_call ? next_index_ : 0});
}

void CompletionParser::NoteOnce(const ErrorId& id, std::string detail) {
  for (const CompletionDiagnostic& known : completion_.diagnostics) {
    if (std::string_view(known.id.id) == id.id && known.detail == detail) {
      return;
    }
  }
  completion_.diagnostics.push_back({id, std::move(detail)});
}

Completion ParseCompletion(std::string_view text, ThinkingMode mode,
                           CompletionEnd end) {
  CompletionParser parser(mode);
  parser.Feed(text);
  parser.Finish(end);
  return parser.completion();
}

JsonValue CompletionToJson(const Completion& completion) {
  std::vector<JsonValue> calls;
  for (const ToolCall& call : completion.tool_calls) {
    JsonValue function =
        JsonValue::Object({{"name", JsonValue::String(call.name)},
                           {"arguments", JsonValue::String(call.arguments)}});
    calls.push_back(JsonValue::Object({{"type", JsonValue::String("function")},
                                       {"function", std::move(function)}}));
  }
  return JsonValue::Object(
      {{"role", JsonValue::String("assistant")},
       {"content", JsonValue::String(completion.content)},
       {"reasoning_content", JsonValue::String(completion.reasoning_content)},
       {"tool_calls", JsonValue::Array(std::move(calls))}});
}

}  // namespace belay::text
