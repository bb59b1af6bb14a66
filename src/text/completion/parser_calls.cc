// SPDX-License-Identifier: Apache-2.0
// The DSML blocks of CompletionParser.
//
// Text of a call that is not complete yet is kept in raw_: when the call turns
// out to be none, it is content after all.
#include <algorithm>
#include <utility>

#include "base/error_ids.h"
#include "text/chat/tokens.h"
#include "text/completion/parser.h"

namespace belay::text {
namespace {

using Kind = CompletionEvent::Kind;

// Between two tags stands one newline; more than this is no such place.
constexpr size_t kMaxBlanks = 64;
constexpr size_t kMaxNameBytes = 1024;

// Whether one of `tags` stands in `text` behind ">" and blanks.
Match MatchBehindCloser(std::string_view text,
                        std::initializer_list<std::string_view> tags) {
  if (text.empty()) return Match::kNotYet;
  if (text[0] != '>') return Match::kNo;
  text.remove_prefix(1);
  const size_t n_blanks = CountBlanks(text);
  if (n_blanks > kMaxBlanks) return Match::kNo;
  text.remove_prefix(n_blanks);
  bool may_come = false;
  for (const std::string_view tag : tags) {
    const Match match = MatchPrefix(text, tag);
    if (match == Match::kYes) return Match::kYes;
    may_come |= match == Match::kNotYet;
  }
  return may_come ? Match::kNotYet : Match::kNo;
}

}  // namespace

void CompletionParser::ConsumeRaw(size_t n_bytes) {
  raw_ += rest().substr(0, n_bytes);
  Consume(n_bytes);
}

void CompletionParser::EnterBlock(size_t n_opener) {
  raw_.clear();
  ConsumeRaw(n_opener);
  n_block_calls_ = 0;
  block_is_text_ = false;
  state_ = State::kBlockHead;
}

bool CompletionParser::StepBlockHead() {
  // In the reasoning an empty block is nothing that would end it.
  const Match match =
      in_reasoning_ ? MatchBehindCloser(rest(), {kInvokeBegin})
                    : MatchBehindCloser(rest(), {kInvokeBegin, kCallsEnd});
  if (match == Match::kNotYet) return false;
  if (match == Match::kYes) {
    ConsumeRaw(1);
    state_ = State::kBlock;
  } else {
    LeaveBlockHead();
  }
  return true;
}

// It was no block: what looked like its begin is text.
void CompletionParser::LeaveBlockHead() {
  EmitText(std::exchange(raw_, {}));
  state_ = in_reasoning_ ? State::kReasoning : State::kContent;
}

bool CompletionParser::SkipCloser(State next) {
  if (rest().front() == '>') Consume(1);
  state_ = next;
  return true;
}

bool CompletionParser::StepBlock() {
  ConsumeRaw(CountBlanks(rest()));
  const Match invoke = MatchPrefix(rest(), kInvokeBegin);
  const Match end = MatchPrefix(rest(), kCallsEnd);
  const Match eos = MatchPrefix(rest(), eos_);
  if (invoke == Match::kYes) {
    ConsumeRaw(kInvokeBegin.size());
    call_ = ToolCall();
    parameters_.clear();
    state_ = State::kInvoke;
  } else if (end == Match::kYes) {
    CloseBlock();
  } else if (eos == Match::kYes) {
    NoteOnce(kChatCallRepaired, "the block of calls was not closed");
    return EndTurn();
  } else if (invoke == Match::kNotYet || end == Match::kNotYet ||
             eos == Match::kNotYet) {
    return false;
  } else {
    NoteOnce(kChatStrayText, "text between the tool calls");
    EmitText(std::exchange(raw_, {}));
    state_ = State::kBadInvoke;
  }
  return true;
}

void CompletionParser::CloseBlock() {
  // The end goes where the begin went.
  if (block_is_text_ && n_block_calls_ == 0) {
    EmitText(std::exchange(raw_, {}));
    TakeText(kCallsEnd.size());
    state_ = State::kContent;
    return;
  }
  Consume(kCallsEnd.size());
  raw_.clear();
  state_ = State::kBlockEnd;
}

bool CompletionParser::StepInvoke() {
  static constexpr std::string_view kName = "name=\"";
  ConsumeRaw(CountBlanks(rest()));
  const std::string_view text = rest();
  const Match match = MatchPrefix(text, kName);
  if (match == Match::kNotYet) return false;
  const size_t begin = kName.size();
  const size_t end = text.find("\">", begin);
  const size_t newline = text.find('\n', begin);
  const size_t marker = text.find(kDsml, begin);
  const size_t stop = std::min(newline, marker);
  const size_t limit = begin + kMaxNameBytes;
  const bool is_good =
      match == Match::kYes && end < stop && end > begin && end <= limit;
  const bool may_come = match == Match::kYes && end == std::string::npos &&
                        stop == std::string::npos && text.size() <= limit + 1;
  if (is_good) {
    call_.name = std::string(text.substr(begin, end - begin));
    ConsumeRaw(end + 2);
    state_ = State::kAfterName;
    return true;
  }
  if (may_come) return false;
  FailCall(kChatCallMalformed, "a call without its name");
  return true;
}

bool CompletionParser::StepAfterName() {
  ConsumeRaw(CountBlanks(rest()));
  const Match parameter = MatchPrefix(rest(), kParameterBegin);
  const Match end = MatchPrefix(rest(), kInvokeEnd);
  const Match next = MatchPrefix(rest(), kInvokeBegin);
  const Match block_end = MatchPrefix(rest(), kCallsEnd);
  if (parameter == Match::kYes) {
    ConsumeRaw(kParameterBegin.size());
    state_ = State::kParameter;
  } else if (end == Match::kYes) {
    ConsumeRaw(kInvokeEnd.size());
    CommitCall();
    state_ = State::kInvokeCloser;
  } else if (next == Match::kYes || block_end == Match::kYes) {
    NoteOnce(kChatCallRepaired, "a call was not closed");
    CommitCall();
    state_ = State::kBlock;
  } else if (parameter == Match::kNotYet || end == Match::kNotYet ||
             next == Match::kNotYet || block_end == Match::kNotYet) {
    return false;
  } else {
    FailCall(kChatCallMalformed, "text between the parameters of a call");
  }
  return true;
}

bool CompletionParser::StepParameter() {
  const ParameterTag tag = ReadParameterTag(rest());
  if (tag.match == Match::kNotYet) return false;
  if (tag.match == Match::kNo) {
    FailCall(kChatCallMalformed, "a parameter without its attributes");
  } else if (!parameters_.insert(tag.name).second) {
    FailCall(kChatCallMalformed, "a parameter twice: " + tag.name);
  } else {
    ConsumeRaw(tag.n_bytes);
    OpenParameter(tag);
  }
  return true;
}

void CompletionParser::OpenParameter(const ParameterTag& tag) {
  BeginCall();
  if (!tag.has_string) {
    NoteOnce(kChatCallRepaired, "a parameter without string=: " + tag.name);
  }
  std::string json = parameters_.size() == 1 ? "{\"" : ", \"";
  AppendJsonEscaped(tag.name, &json);
  json += tag.is_string ? "\": \"" : "\": ";
  EmitArguments(json);
  value_is_string_ = tag.is_string;
  json_ = JsonValueStream();
  state_ = State::kValue;
}

bool CompletionParser::StepValue() {
  const Found found = FindMarker(rest(), {kParameterEnd});
  TakeValue(found.n_text);
  if (state_ != State::kValue) return true;  // it broke
  if (found.marker < 0) return false;
  // A value may hold the marker itself, such as code about DSML: the end is
  // where the call goes on as a call.
  const Match end =
      MatchBehindCloser(rest().substr(kParameterEnd.size()),
                        {kParameterBegin, kInvokeEnd, kInvokeBegin, kCallsEnd});
  if (end == Match::kNotYet) return false;
  if (end == Match::kNo) {
    NoteOnce(kChatStrayMarker, "</｜DSML｜parameter inside a value");
    TakeValue(kParameterEnd.size());
    return true;
  }
  ConsumeRaw(kParameterEnd.size() + 1);
  CloseValue();
  return true;
}

void CompletionParser::TakeValue(size_t n_bytes) {
  if (n_bytes == 0) return;
  const std::string_view text = rest().substr(0, n_bytes);
  std::string json;
  if (value_is_string_) {
    AppendJsonEscaped(text, &json);
  } else {
    // What is behind the byte that breaks it is looked at anew.
    n_bytes = json_.Feed(text, &json);
  }
  ConsumeRaw(n_bytes);
  EmitArguments(json);
  if (!value_is_string_ && json_.broken()) {
    FailCall(kChatCallMalformed, "a value that is no JSON");
  }
}

void CompletionParser::CloseValue() {
  std::string json;
  if (value_is_string_) {
    json = "\"";
  } else if (!json_.Finish(&json)) {
    return FailCall(kChatCallMalformed, "a value that is no JSON");
  } else if (json_.repaired()) {
    NoteOnce(kChatCallRepaired, "a value that was no JSON");
  }
  EmitArguments(json);
  state_ = State::kAfterName;
}

bool CompletionParser::StepBadInvoke() {
  static constexpr std::string_view kInvokeClosed = "</｜DSML｜invoke>";
  const Found found =
      FindMarker(rest(), {kInvokeClosed, kInvokeBegin, kCallsEnd, eos_});
  TakeText(found.n_text);
  if (found.marker < 0) return false;
  if (found.marker == 0) TakeText(kInvokeClosed.size());
  state_ = State::kBlock;
  return true;
}

void CompletionParser::BeginCall() {
  if (has_begun_) return;
  has_begun_ = true;
  Emit(Kind::kCallBegin, call_.name);
}

void CompletionParser::EmitArguments(std::string_view json) {
  if (json.empty()) return;
  call_.arguments += json;
  Emit(Kind::kCallArguments, json);
}

void CompletionParser::CommitCall() {
  BeginCall();
  EmitArguments(parameters_.empty() ? "{}" : "}");
  Emit(Kind::kCallEnd, "");
  completion_.tool_calls.push_back(std::exchange(call_, {}));
  ++next_index_;
  ++n_block_calls_;
  has_begun_ = false;
  raw_.clear();
  if (!in_reasoning_) return;
  NoteOnce(kChatNoThinkEnd, "a tool call ended the reasoning");
  in_reasoning_ = false;
}

void CompletionParser::FailCall(const ErrorId& id, std::string detail) {
  NoteOnce(id, std::move(detail));
  if (has_begun_) {
    Emit(Kind::kCallAbandoned, "");
    ++next_index_;
    has_begun_ = false;
  }
  std::string text = std::exchange(raw_, {});
  // A value takes all text, also the EOS of a turn that ended too early.
  const bool ends_turn =
      state_ == State::kValue && std::string_view(id.id) == kChatCallCut.id &&
      rest().empty() && text.size() >= eos_.size() &&
      text.compare(text.size() - eos_.size(), eos_.size(), eos_) == 0;
  if (ends_turn) {
    text.resize(text.size() - eos_.size());
    saw_eos_ = true;
  }
  EmitText(text);
  block_is_text_ = true;
  state_ = in_reasoning_ ? State::kReasoning : State::kBadInvoke;
}

}  // namespace belay::text
