// SPDX-License-Identifier: Apache-2.0
// DeepSeek's three split patterns as one scanner. pretokenizer_test.cc holds it
// against the patterns themselves.
#include <algorithm>
#include <cstdint>

#include "text/split/pretokenizer.h"
#include "text/split/unicode.h"

namespace belay::text {
namespace {

// What the patterns ask of a character, one bit each.
enum ClassBit : uint8_t {
  kLetter = 1,       // \p{L}
  kMark = 2,         // \p{M}
  kPunctuation = 4,  // [\p{P}\p{S}]
  kNumber = 8,       // \p{N}
  kSpace = 16,       // \s
  kNewline = 32,     // [\r\n]
  kCjk = 64,         // the second pattern: ideographs, hiragana, katakana
};

bool IsCjk(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FA5) || (c >= 0x3040 && c <= 0x30FF);
}

bool IsAsciiLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class DeepSeekPreTokenizer : public PreTokenizer {
 public:
  DeepSeekPreTokenizer();
  Status Split(std::string_view text, std::vector<size_t>* ends) const override;

 private:
  uint8_t ClassOf(char32_t c) const { return classes_[c]; }

  // The end of the run of characters of any class in `mask`, from `p`.
  const char* Run(const char* p, const char* end, uint8_t mask) const;
  // The third pattern over [p, end).
  void SplitRest(const char* p, const char* end, const char* base,
                 std::vector<size_t>* ends) const;
  // The end of its match at `p`, or `p` when there is none.
  const char* MatchRest(const char* p, const char* end) const;
  const char* MatchSpace(const char* p, const char* end) const;

  std::vector<uint8_t> classes_;  // by code point
};

DeepSeekPreTokenizer::DeepSeekPreTokenizer() : classes_(kNumCodePoints) {
  const uint32_t masks[][2] = {{CategoryMask("L"), kLetter},
                               {CategoryMask("M"), kMark},
                               {CategoryMask("P"), kPunctuation},
                               {CategoryMask("S"), kPunctuation},
                               {CategoryMask("N"), kNumber}};
  const auto runs = CategoryRuns();
  for (size_t i = 0; i < runs.size(); ++i) {
    uint8_t bits = 0;
    for (const auto& [categories, bit] : masks) {
      if ((categories >> runs[i].category & 1) != 0) bits |= bit;
    }
    const uint32_t last =
        i + 1 < runs.size() ? runs[i + 1].first : kNumCodePoints;
    std::fill(classes_.begin() + runs[i].first, classes_.begin() + last, bits);
  }
  for (char32_t c = 0; c < 0x10000; ++c) {  // no white space, no CJK above
    if (IsWhiteSpace(c)) classes_[c] |= kSpace;
    if (IsCjk(c)) classes_[c] |= kCjk;
  }
  classes_['\r'] |= kNewline;
  classes_['\n'] |= kNewline;
}

Status DeepSeekPreTokenizer::Split(std::string_view text,
                                   std::vector<size_t>* ends) const {
  ends->clear();
  const char* const base = text.data();
  const char* const end = base + text.size();
  for (const char* p = base; p < end;) {
    const char* const start = p;
    const uint8_t kind = ClassOf(DecodeUtf8(p)) & (kNumber | kCjk);
    if (kind == kNumber) {
      // \p{N}{1,3}; the other patterns find nothing in it.
      for (int n = 1; n < 3 && p < end; ++n) {
        const char* next = p;
        if ((ClassOf(DecodeUtf8(next)) & kNumber) == 0) break;
        p = next;
      }
      ends->push_back(p - base);
      continue;
    }
    while (p < end) {
      const char* next = p;
      if ((ClassOf(DecodeUtf8(next)) & (kNumber | kCjk)) != kind) break;
      p = next;
    }
    SplitRest(start, p, base, ends);
  }
  return absl::OkStatus();
}

const char* DeepSeekPreTokenizer::Run(const char* p, const char* end,
                                      uint8_t mask) const {
  while (p < end) {
    const char* next = p;
    if ((ClassOf(DecodeUtf8(next)) & mask) == 0) break;
    p = next;
  }
  return p;
}

void DeepSeekPreTokenizer::SplitRest(const char* p, const char* end,
                                     const char* base,
                                     std::vector<size_t>* ends) const {
  const char* start = p;  // of what no match has taken yet
  while (p < end) {
    const char* const match_end = MatchRest(p, end);
    if (match_end == p) {
      DecodeUtf8(p);
      continue;
    }
    if (start < p) ends->push_back(p - base);
    ends->push_back(match_end - base);
    p = start = match_end;
  }
  if (start < end) ends->push_back(end - base);
}

const char* DeepSeekPreTokenizer::MatchRest(const char* p,
                                            const char* end) const {
  const char* next = p;
  const char32_t c = DecodeUtf8(next);
  const uint8_t kind = ClassOf(c);
  const uint8_t next_kind = [&] {
    const char* q = next;
    return next < end ? ClassOf(DecodeUtf8(q)) : uint8_t{0};
  }();
  // [!-/:-~][A-Za-z]+ : all ASCII punctuation, and all of it is P or S.
  if (c < 0x80 && (kind & kPunctuation) != 0 && next < end &&
      IsAsciiLetter(*next)) {
    while (next < end && IsAsciiLetter(*next)) ++next;
    return next;
  }
  // [^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+
  const bool can_lead = (kind & (kNewline | kLetter | kPunctuation)) == 0;
  if ((kind & (kLetter | kMark)) != 0 ||
      (can_lead && (next_kind & (kLetter | kMark)) != 0)) {
    return Run(next, end, kLetter | kMark);
  }
  //  ?[\p{P}\p{S}]+[\r\n]*
  if ((kind & kPunctuation) != 0 ||
      (c == ' ' && (next_kind & kPunctuation) != 0)) {
    return Run(Run(next, end, kPunctuation), end, kNewline);
  }
  return (kind & kSpace) != 0 ? MatchSpace(p, end) : p;
}

// \s*[\r\n]+|\s+(?!\S)|\s+ at a space: up to the last newline of the run if it
// has one; else all of the run at the end of the text, and all but its last
// character (which goes with what follows) before something else.
const char* DeepSeekPreTokenizer::MatchSpace(const char* p,
                                             const char* end) const {
  const char* behind_newline = nullptr;
  const char* last = p;  // start of the run's last character
  const char* q = p;
  while (q < end) {
    const char* next = q;
    const uint8_t kind = ClassOf(DecodeUtf8(next));
    if ((kind & kSpace) == 0) break;
    last = q;
    q = next;
    if ((kind & kNewline) != 0) behind_newline = q;
  }
  if (behind_newline != nullptr) return behind_newline;
  return q == end || last == p ? q : last;
}

}  // namespace

std::vector<std::string> DeepSeekPatterns() {
  return {R"(\p{N}{1,3})", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
          R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)"
          R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
          R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
}

bool AreDeepSeekPatterns(const std::vector<std::string>& patterns) {
  std::vector<std::string> spelled;
  for (const std::string& pattern : patterns) {
    std::string& text = spelled.emplace_back();
    for (const char c : pattern) {
      if (c == '\r' || c == '\n') {
        text += c == '\r' ? "\\r" : "\\n";
      } else {
        text += c;
      }
    }
  }
  return spelled == DeepSeekPatterns();
}

std::unique_ptr<const PreTokenizer> MakeDeepSeekPreTokenizer() {
  return std::make_unique<DeepSeekPreTokenizer>();
}

}  // namespace belay::text
