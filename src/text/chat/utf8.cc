// SPDX-License-Identifier: Apache-2.0
#include "text/chat/utf8.h"

namespace belay::text {
namespace {

// A row of table 3-7: how many bytes follow, and which second bytes may.
struct Lead {
  size_t n_following;
  unsigned char second_low;
  unsigned char second_high;
};

Lead LeadOf(unsigned char byte) {
  if (byte < 0x80) return {0, 0x80, 0xBF};
  if (byte >= 0xC2 && byte <= 0xDF) return {1, 0x80, 0xBF};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2, 0x80, 0xBF};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3, 0x80, 0xBF};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {4, 1, 0};  // never starts a character
}

}  // namespace

Utf8Step NextUtf8(std::string_view bytes) {
  const Lead lead = LeadOf(static_cast<unsigned char>(bytes[0]));
  if (lead.n_following > 3) return {Utf8Step::Kind::kIllFormed, 1};
  for (size_t i = 1; i <= lead.n_following; ++i) {
    if (i == bytes.size()) return {Utf8Step::Kind::kIncomplete, i};
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const unsigned char low = i == 1 ? lead.second_low : 0x80;
    const unsigned char high = i == 1 ? lead.second_high : 0xBF;
    if (byte < low || byte > high) return {Utf8Step::Kind::kIllFormed, i};
  }
  return {Utf8Step::Kind::kCharacter, lead.n_following + 1};
}

size_t FindInvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.kind != Utf8Step::Kind::kCharacter) return at;
    at += step.n_bytes;
  }
  return std::string_view::npos;
}

void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto tail = [&](int shift) {
    out->push_back(static_cast<char>(0x80 | ((code_point >> shift) & 0x3F)));
  };
  if (code_point < 0x80) {
    out->push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    out->push_back(static_cast<char>(0xC0 | (code_point >> 6)));
    tail(0);
  } else if (code_point < 0x10000) {
    out->push_back(static_cast<char>(0xE0 | (code_point >> 12)));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xF0 | (code_point >> 18)));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace belay::text
