// SPDX-License-Identifier: Apache-2.0
// What the tokenizer needs to know of Unicode. The tables are our own, not
// PCRE2's: ids must not depend on the Unicode version of a system library.
#ifndef BELAY_TEXT_SPLIT_UNICODE_H_
#define BELAY_TEXT_SPLIT_UNICODE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace belay::text {

// General categories, in the order of the Unicode standard's table 4-4.
enum Category : uint8_t {
  // clang-format off
  kLu, kLl, kLt, kLm, kLo, kMn, kMc, kMe, kNd, kNl, kNo,
  kPc, kPd, kPs, kPe, kPi, kPf, kPo, kSm, kSc, kSk, kSo,
  kZs, kZl, kZp, kCc, kCf, kCs, kCo, kCn,
  // clang-format on
};
inline constexpr int kNumCategories = kCn + 1;
inline constexpr uint32_t kNumCodePoints = 0x110000;

// A run of code points of one category: from `first` to the next run.
struct CategoryRun {
  uint32_t first;
  Category category;
};

// All of Unicode in ascending order; Unicode 16.0.0.
std::span<const CategoryRun> CategoryRuns();

Category CategoryOf(char32_t c);  // log n; c < kNumCodePoints

// The category mask of a property name: "L" or "Lu"; 0 when there is none.
uint32_t CategoryMask(std::string_view name);

// The property White_Space: what \s means.
bool IsWhiteSpace(char32_t c);

// What \w means in Rust's regex crate: Alphabetic, M, Nd, Pc, Join_Control.
bool IsWordCharacter(char32_t c);

// One step through bytes that may be anything.
struct Utf8Step {
  enum Kind : uint8_t { kCharacter, kInvalid, kIncomplete };
  Kind kind;
  uint8_t n_bytes;  // of the character, or of the maximal subpart
};

// The step at bytes[0]; `bytes` is not empty. kIncomplete: the bytes end inside
// what could be a character.
Utf8Step NextUtf8(std::string_view bytes);

bool IsValidUtf8(std::string_view bytes);

// Each maximal subpart that is not UTF-8 becomes U+FFFD (WHATWG "decode",
// Rust String::from_utf8_lossy).
std::string ReplaceInvalidUtf8(std::string_view bytes);

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// The character at `p` in valid UTF-8; moves `p` behind it.
inline char32_t DecodeUtf8(const char*& p) {
  const auto b = [&p](int i) { return static_cast<uint8_t>(p[i]); };
  const uint32_t lead = b(0);
  if (lead < 0x80) {
    p += 1;
    return lead;
  }
  if (lead < 0xE0) {
    const char32_t c = (lead & 0x1F) << 6 | (b(1) & 0x3F);
    p += 2;
    return c;
  }
  if (lead < 0xF0) {
    const char32_t c = (lead & 0x0F) << 12 | (b(1) & 0x3F) << 6 | (b(2) & 0x3F);
    p += 3;
    return c;
  }
  const char32_t c = (lead & 0x07) << 18 | (b(1) & 0x3F) << 12 |
                     (b(2) & 0x3F) << 6 | (b(3) & 0x3F);
  p += 4;
  return c;
}

}  // namespace belay::text

#endif  // BELAY_TEXT_SPLIT_UNICODE_H_
