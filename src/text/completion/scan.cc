// SPDX-License-Identifier: Apache-2.0
#include "text/completion/scan.h"

#include <algorithm>

#include "text/chat/tokens.h"

namespace belay::text {
namespace {

// A tag head is one short line. The bound keeps a missing ">" from holding
// back a whole answer.
constexpr size_t kMaxTagBytes = 4096;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

// One attribute ` key="value"` at the front of `text`; 0 when there is none.
size_t ReadAttribute(std::string_view text, std::string_view* key,
                     std::string_view* value) {
  const size_t begin = CountBlanks(text);
  size_t at = begin;
  while (at < text.size() && IsNameChar(text[at])) ++at;
  *key = text.substr(begin, at - begin);
  if (begin == 0 || key->empty() || text.substr(at, 2) != "=\"") return 0;
  const size_t end = text.find('"', at + 2);
  if (end == std::string_view::npos) return 0;
  *value = text.substr(at + 2, end - at - 2);
  return end + 1;
}

// `head` as a list of well-formed attributes: kNo when it is none.
ParameterTag ReadAttributes(std::string_view head) {
  ParameterTag tag;
  tag.match = Match::kNo;
  bool has_name = false;
  while (CountBlanks(head) < head.size()) {
    std::string_view key;
    std::string_view value;
    const size_t n_bytes = ReadAttribute(head, &key, &value);
    if (n_bytes == 0) return tag;
    head.remove_prefix(n_bytes);
    if (key == "name" && !has_name) {
      tag.name = std::string(value);
      has_name = true;
    } else if (key == "string") {
      if (value != "true" && value != "false") return tag;
      tag.is_string = value == "true";
      tag.has_string = true;
    }
  }
  if (has_name) tag.match = Match::kYes;
  return tag;
}

// `head` as the official parser reads it: the name is all up to the last
// attribute, quotes included.
ParameterTag ReadOfficial(std::string_view head) {
  static constexpr std::string_view kBegin = " name=\"";
  ParameterTag tag;
  tag.match = Match::kNo;
  if (head.substr(0, kBegin.size()) != kBegin) return tag;
  head.remove_prefix(kBegin.size());
  for (const bool is_string : {true, false}) {
    const std::string_view end =
        is_string ? "\" string=\"true\"" : "\" string=\"false\"";
    if (!EndsWith(head, end)) continue;
    head.remove_suffix(end.size());
    tag.match = Match::kYes;
    tag.name = std::string(head);
    tag.is_string = is_string;
    tag.has_string = true;
    return tag;
  }
  return tag;
}

}  // namespace

Match MatchPrefix(std::string_view text, std::string_view literal) {
  const size_t n = std::min(text.size(), literal.size());
  if (text.substr(0, n) != literal.substr(0, n)) return Match::kNo;
  return n == literal.size() ? Match::kYes : Match::kNotYet;
}

Found FindMarker(std::string_view text,
                 std::initializer_list<std::string_view> markers) {
  for (size_t at = 0; at < text.size(); ++at) {
    // Every marker starts so; most text does not.
    if (text[at] != '<' && text[at] != '\n') continue;
    int index = 0;
    bool may_come = false;
    for (const std::string_view marker : markers) {
      const Match match = MatchPrefix(text.substr(at), marker);
      if (match == Match::kYes) return {at, index};
      may_come |= match == Match::kNotYet;
      ++index;
    }
    if (may_come) return {at, -1};
  }
  return {text.size(), -1};
}

size_t CountBlanks(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && IsBlank(text[n])) ++n;
  return n;
}

ParameterTag ReadParameterTag(std::string_view text) {
  ParameterTag tag;
  tag.match = Match::kNo;
  // Another marker before the ">" means that this tag never ended.
  const size_t stop = std::min(text.find(kDsml), kMaxTagBytes);
  for (size_t end = text.find('>'); end < stop; end = text.find('>', end + 1)) {
    const std::string_view head = text.substr(0, end);
    tag = ReadAttributes(head);
    if (tag.match == Match::kNo) tag = ReadOfficial(head);
    if (tag.match == Match::kYes) {
      tag.n_bytes = end + 1;
      return tag;
    }
    // A complete list of attributes that says something impossible, such as
    // string="maybe", will not get better.
    const size_t last = head.find_last_not_of(" \t\r\n");
    const bool is_closed = last != std::string_view::npos && head[last] == '"';
    if (is_closed && head.find(" string=\"") != std::string_view::npos) {
      return tag;
    }
  }
  if (text.size() < stop) tag.match = Match::kNotYet;
  return tag;
}

void CodeTracker::Append(std::string_view text) {
  for (const char c : text) {
    if (c == '`') {
      ++run_;
      continue;
    }
    EndRun();
    if (c == '\n') {
      at_line_start_ = true;
      in_span_ = false;
    } else if (!IsBlank(c)) {
      at_line_start_ = false;
    }
  }
}

void CodeTracker::EndRun() {
  if (run_ == 0) return;
  if (run_ >= 3 && at_line_start_) {
    in_fence_ = !in_fence_;
  } else if (!in_fence_) {
    in_span_ = !in_span_;
  }
  at_line_start_ = false;
  run_ = 0;
}

bool CodeTracker::in_code() const {
  CodeTracker after = *this;
  after.EndRun();
  return after.in_fence_ || after.in_span_;
}

}  // namespace belay::text
