// SPDX-License-Identifier: Apache-2.0
#include "text/completion/json_value_stream.h"

#include "text/chat/json.h"

namespace belay::text {
namespace {

struct Word {
  std::string_view text;
  std::string_view json;
};
// Python's words come from models that were fed with Python.
constexpr Word kWords[] = {{"true", "true"},   {"false", "false"},
                           {"null", "null"},   {"True", "true"},
                           {"False", "false"}, {"None", "null"}};

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

enum class Fit { kNo, kBeginning, kWhole };

size_t SkipDigits(std::string_view text, size_t at) {
  while (at < text.size() && IsDigit(text[at])) ++at;
  return at;
}

// Whether `text` is a JSON number or may become one.
Fit FitNumber(std::string_view text) {
  size_t at = text.substr(0, 1) == "-" ? 1 : 0;
  if (at == text.size()) return Fit::kBeginning;
  if (!IsDigit(text[at])) return Fit::kNo;
  at = text[at] == '0' ? at + 1 : SkipDigits(text, at);
  if (at < text.size() && text[at] == '.') {
    const size_t end = SkipDigits(text, ++at);
    if (end == text.size() && end == at) return Fit::kBeginning;
    if (end == at) return Fit::kNo;
    at = end;
  }
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    ++at;
    if (at < text.size() && (text[at] == '+' || text[at] == '-')) ++at;
    const size_t end = SkipDigits(text, at);
    if (end == text.size() && end == at) return Fit::kBeginning;
    if (end == at) return Fit::kNo;
    at = end;
  }
  return at == text.size() ? Fit::kWhole : Fit::kNo;
}

// The same for the six words; the longest is five characters.
Fit FitWord(std::string_view text) {
  for (const Word& word : kWords) {
    if (word.text == text) return Fit::kWhole;
    if (word.text.substr(0, text.size()) == text) return Fit::kBeginning;
  }
  return Fit::kNo;
}

// A longer number than any of use: from here on it counts as bare text, so
// that the check of each further digit stays cheap.
constexpr size_t kMaxNumber = 4300;  // Python refuses integers beyond

Fit FitScalar(std::string_view text) {
  const bool is_number = IsDigit(text[0]) || text[0] == '-';
  if (is_number && text.size() > kMaxNumber) return Fit::kNo;
  return is_number ? FitNumber(text) : FitWord(text);
}

std::string_view WithoutBlanksAtEnd(std::string_view text) {
  while (!text.empty() && IsBlank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace

size_t JsonValueStream::Feed(std::string_view text, std::string* out) {
  for (size_t at = 0; at < text.size(); ++at) {
    if (!broken()) Step(text[at], out);
    if (broken()) return at;
  }
  return text.size();
}

void JsonValueStream::Step(char c, std::string* out) {
  switch (state_) {
    case State::kLead:
      return StepLead(c, out);
    case State::kWord:
      return StepWord(c, out);
    case State::kBare:
      return AppendJsonEscaped(std::string_view(&c, 1), out);
    case State::kString:
      return StepString(c, out);
    case State::kEscape:
      return StepEscape(c, out);
    case State::kUnicode:
      return StepUnicode(c, out);
    case State::kQuote:
      return StepQuote(c, out);
    case State::kBroken:
      return;
    default:
      return StepStructure(c, out);
  }
}

void JsonValueStream::StepLead(char c, std::string* out) {
  if (IsBlank(c)) {
    out->push_back(c);
  } else if (c == '{' || c == '[') {
    Open(c, out);
  } else if (c == '"') {
    StartString(false, out);
  } else {
    StartWord(c);
    if (FitScalar(held_) == Fit::kNo) BecomeBare(out);
  }
}

void JsonValueStream::StartWord(char c) {
  held_.assign(1, c);
  state_ = State::kWord;
}

void JsonValueStream::StepWord(char c, std::string* out) {
  const bool is_end = IsBlank(c) || c == ',' || c == ']' || c == '}';
  if (at_top()) {
    // Blanks may end the value or be inside a bare sentence: held as well.
    const bool had_blanks = IsBlank(held_.back());
    held_.push_back(c);
    if (IsBlank(c)) return;
    if (had_blanks || FitScalar(held_) == Fit::kNo) BecomeBare(out);
  } else if (!is_end) {
    held_.push_back(c);
    if (FitScalar(held_) == Fit::kNo) state_ = State::kBroken;
  } else if (EndWord(out)) {
    state_ = State::kNext;
    StepStructure(c, out);
  } else {
    state_ = State::kBroken;
  }
}

bool JsonValueStream::EndWord(std::string* out) {
  const std::string_view word = WithoutBlanksAtEnd(held_);
  if (FitScalar(word) != Fit::kWhole) return false;
  const std::string_view blanks = std::string_view(held_).substr(word.size());
  std::string_view json = word;
  for (const Word& known : kWords) {
    if (known.text == word) json = known.json;
  }
  repaired_ |= json != word;
  out->append(json).append(blanks);
  held_.clear();
  return true;
}

void JsonValueStream::BecomeBare(std::string* out) {
  repaired_ = true;
  state_ = State::kBare;
  out->push_back('"');
  AppendJsonEscaped(held_, out);
  held_.clear();
}

void JsonValueStream::StartString(bool is_key, std::string* out) {
  out->push_back('"');
  is_key_ = is_key;
  state_ = State::kString;
}

void JsonValueStream::StepString(char c, std::string* out) {
  if (c == '\\') {
    state_ = State::kEscape;
  } else if (c == '"') {
    held_ = "\"";
    state_ = State::kQuote;
  } else if (static_cast<unsigned char>(c) < 0x20) {
    repaired_ = true;
    AppendJsonEscaped(std::string_view(&c, 1), out);
  } else {
    out->push_back(c);
  }
}

void JsonValueStream::StepEscape(char c, std::string* out) {
  state_ = State::kString;
  if (c == 'u') {
    held_ = "\\u";
    state_ = State::kUnicode;
  } else if (std::string_view("\"\\/bfnrt").find(c) != std::string_view::npos) {
    out->push_back('\\');
    out->push_back(c);
  } else {
    repaired_ = true;
    out->append("\\\\");
    StepString(c, out);
  }
}

void JsonValueStream::StepUnicode(char c, std::string* out) {
  if (IsHex(c)) {
    held_.push_back(c);
    if (held_.size() < 6) return;
    out->append(held_);
    held_.clear();
    state_ = State::kString;
    return;
  }
  repaired_ = true;
  out->append("\\").append(held_);
  held_.clear();
  state_ = State::kString;
  StepString(c, out);
}

bool JsonValueStream::QuoteEnds(char next) const {
  if (at_top()) return false;
  if (is_key_) return next == ':';
  return next == ',' || next == (nesting_.back() == '{' ? '}' : ']');
}

void JsonValueStream::StepQuote(char c, std::string* out) {
  if (IsBlank(c)) {
    held_.push_back(c);
    return;
  }
  const std::string held = std::move(held_);
  held_.clear();
  if (QuoteEnds(c)) {
    out->append(held);
    state_ = is_key_ ? State::kColon : State::kNext;
    StepStructure(c, out);
    return;
  }
  repaired_ = true;
  AppendJsonEscaped(held, out);
  state_ = State::kString;
  StepString(c, out);
}

void JsonValueStream::Open(char bracket, std::string* out) {
  if (nesting_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
    state_ = State::kBroken;
    return;
  }
  nesting_.push_back(bracket);
  out->push_back(bracket);
  state_ = State::kFirst;
}

void JsonValueStream::Close(char bracket, std::string* out) {
  nesting_.pop_back();
  out->push_back(bracket);
  state_ = at_top() ? State::kDone : State::kNext;
}

void JsonValueStream::StepStructure(char c, std::string* out) {
  if (IsBlank(c)) {
    out->push_back(c);
    return;
  }
  if (at_top()) {  // kDone: the value was complete
    state_ = State::kBroken;
    return;
  }
  const bool in_object = nesting_.back() == '{';
  const bool can_close = state_ == State::kFirst || state_ == State::kNext;
  if (can_close && c == (in_object ? '}' : ']')) return Close(c, out);
  if (state_ == State::kNext) {
    state_ =
        c != ',' ? State::kBroken : (in_object ? State::kKey : State::kValue);
    if (!broken()) out->push_back(c);
    return;
  }
  if (state_ == State::kColon) {
    state_ = c == ':' ? State::kValue : State::kBroken;
    if (!broken()) out->push_back(c);
    return;
  }
  const bool wants_key =
      state_ == State::kKey || (state_ == State::kFirst && in_object);
  if (c == '"') return StartString(wants_key, out);
  if (wants_key) {
    state_ = State::kBroken;
  } else if (c == '{' || c == '[') {
    Open(c, out);
  } else {
    StartWord(c);
    if (FitScalar(held_) == Fit::kNo) state_ = State::kBroken;
  }
}

bool JsonValueStream::Finish(std::string* out) {
  switch (state_) {
    case State::kLead:
      repaired_ = true;
      out->append("\"\"");
      return true;
    case State::kWord:
      if (!at_top()) return false;
      if (EndWord(out)) return true;
      BecomeBare(out);
      out->push_back('"');
      return true;
    case State::kBare:
      out->push_back('"');
      return true;
    case State::kQuote:
      if (!at_top()) return false;
      out->append(held_);
      return true;
    case State::kDone:
      return true;
    case State::kString:
      if (!at_top()) return false;
      repaired_ = true;  // the closing quote is missing
      out->push_back('"');
      return true;
    default:
      return false;
  }
}

}  // namespace belay::text
