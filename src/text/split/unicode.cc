// SPDX-License-Identifier: Apache-2.0
#include "text/split/unicode.h"

#include <algorithm>
#include <cstring>

namespace belay::text {
namespace {

constexpr CategoryRun kRuns[] = {
#include "text/split/unicode_categories.inc"
};

constexpr std::string_view kCategoryNames[kNumCategories] = {
    "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl",
    "No", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sc",
    "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"};

// The table 3-7 of the Unicode standard: which second bytes a lead allows.
struct Lead {
  uint8_t n_bytes;  // 0: not a lead
  uint8_t second_min;
  uint8_t second_max;
};

Lead LeadOf(uint8_t byte) {
  if (byte < 0xC2 || byte > 0xF4) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {4, 0x80, 0xBF};
}

// The number of ASCII bytes at the start of `bytes`, in steps of 8.
size_t AsciiPrefix(std::string_view bytes) {
  size_t n = 0;
  while (n + 8 <= bytes.size()) {
    uint64_t word;
    std::memcpy(&word, bytes.data() + n, 8);
    if ((word & 0x8080808080808080u) != 0) break;
    n += 8;
  }
  return n;
}

// The length of the valid UTF-8 at the start of `bytes`.
size_t ValidPrefix(std::string_view bytes) {
  size_t pos = 0;
  while (pos < bytes.size()) {
    if (static_cast<uint8_t>(bytes[pos]) < 0x80) {
      pos += std::max<size_t>(AsciiPrefix(bytes.substr(pos)), 1);
      continue;
    }
    const Utf8Step step = NextUtf8(bytes.substr(pos));
    if (step.kind != Utf8Step::kCharacter) break;
    pos += step.n_bytes;
  }
  return pos;
}

}  // namespace

std::span<const CategoryRun> CategoryRuns() { return kRuns; }

Category CategoryOf(char32_t c) {
  const auto* next = std::upper_bound(
      std::begin(kRuns), std::end(kRuns), c,
      [](char32_t value, const CategoryRun& run) { return value < run.first; });
  return (next - 1)->category;
}

uint32_t CategoryMask(std::string_view name) {
  uint32_t mask = 0;
  for (int i = 0; i < kNumCategories; ++i) {
    const bool group = name.size() == 1 && name[0] == kCategoryNames[i][0];
    if (group || name == kCategoryNames[i]) mask |= 1u << i;
  }
  return mask;
}

bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsWordCharacter(char32_t c) {
  constexpr uint32_t kWordMask = 1u << kLu | 1u << kLl | 1u << kLt | 1u << kLm |
                                 1u << kLo | 1u << kMn | 1u << kMc | 1u << kMe |
                                 1u << kNd | 1u << kNl | 1u << kPc;
  if ((kWordMask >> CategoryOf(c) & 1) != 0) return true;
  // Of the symbols only these are Alphabetic: circled and squared letters.
  return (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
         (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189) ||
         c == 0x200C || c == 0x200D;
}

Utf8Step NextUtf8(std::string_view bytes) {
  const auto byte = [&bytes](size_t i) {
    return static_cast<uint8_t>(bytes[i]);
  };
  if (byte(0) < 0x80) return {Utf8Step::kCharacter, 1};
  const Lead lead = LeadOf(byte(0));
  if (lead.n_bytes == 0) return {Utf8Step::kInvalid, 1};
  for (uint8_t i = 1; i < lead.n_bytes; ++i) {
    if (i == bytes.size()) return {Utf8Step::kIncomplete, i};
    const uint8_t min = i == 1 ? lead.second_min : 0x80;
    const uint8_t max = i == 1 ? lead.second_max : 0xBF;
    if (byte(i) < min || byte(i) > max) return {Utf8Step::kInvalid, i};
  }
  return {Utf8Step::kCharacter, lead.n_bytes};
}

bool IsValidUtf8(std::string_view bytes) {
  return ValidPrefix(bytes) == bytes.size();
}

std::string ReplaceInvalidUtf8(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  while (true) {
    const size_t n_valid = ValidPrefix(bytes);
    text.append(bytes.substr(0, n_valid));
    bytes.remove_prefix(n_valid);
    if (bytes.empty()) return text;
    text.append(kReplacement);
    bytes.remove_prefix(NextUtf8(bytes).n_bytes);
  }
}

}  // namespace belay::text
