// SPDX-License-Identifier: Apache-2.0
#include "toolkit/loadtest/text_check.h"

#include <algorithm>
#include <array>
#include <string>

namespace belay::loadtest {
namespace {

constexpr size_t kMaxUnit = 200;
constexpr size_t kMinTimes = 8;
constexpr size_t kMinBytes = 160;

// Bytes at the end that are periodic with `unit`.
size_t PeriodicTail(std::string_view text, size_t unit) {
  size_t n = unit;
  while (n < text.size() &&
         text[text.size() - 1 - n] == text[text.size() - 1 - n + unit]) {
    ++n;
  }
  return n;
}

// The unit that the end of `text` repeats, or "".
std::string_view RepeatedUnit(std::string_view text) {
  for (size_t unit = 1; unit <= std::min(kMaxUnit, text.size() / kMinTimes);
       ++unit) {
    const size_t n = PeriodicTail(text, unit);
    if (n >= kMinBytes && n / unit >= kMinTimes) {
      return text.substr(text.size() - unit);
    }
  }
  return {};
}

std::string_view FindMarker(std::string_view text) {
  // "<｜" begins and "｜>" ends every special token of DeepSeek's.
  constexpr std::array<std::string_view, 4> kMarkers = {
      "<\xef\xbd\x9c", "\xef\xbd\x9c>", "<think>", "</think>"};
  for (const std::string_view marker : kMarkers) {
    if (text.find(marker) != std::string_view::npos) return marker;
  }
  return {};
}

bool HasControl(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\t' && c != '\r') || byte == 0x7f;
  });
}

}  // namespace

TextFault CheckText(std::string_view text, int64_t n_tokens) {
  TextFault fault;
  if (text.empty()) {
    fault.empty = n_tokens > 1;  // one token may be the end of the turn
    return fault;
  }
  if (const auto unit = RepeatedUnit(text); !unit.empty()) {
    fault.repeats = true;
    fault.detail = "repeats '" + std::string(unit.substr(0, 40)) + "'";
  }
  std::string garbage;
  if (const auto marker = FindMarker(text); !marker.empty()) {
    garbage = "marker " + std::string(marker);
  } else if (text.find("\xef\xbf\xbd") != std::string_view::npos) {
    garbage = "U+FFFD";
  } else if (HasControl(text)) {
    garbage = "control characters";
  }
  fault.garbage = !garbage.empty();
  if (fault.detail.empty()) fault.detail = garbage;
  return fault;
}

}  // namespace belay::loadtest
