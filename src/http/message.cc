// SPDX-License-Identifier: Apache-2.0
#include "http/message.h"

#include <algorithm>
#include <array>

namespace belay::http {
namespace {

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool EqualNoCase(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

std::string_view FindHeader(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (EqualNoCase(key, name)) return value;
  }
  return {};
}

// RFC 9110 section 15 and RFC 6585 (429, 431).
std::string_view ReasonPhrase(int status) {
  static constexpr std::array<std::pair<int, std::string_view>, 19> kPhrases = {
      {{200, "OK"},
       {204, "No Content"},
       {304, "Not Modified"},
       {400, "Bad Request"},
       {401, "Unauthorized"},
       {403, "Forbidden"},
       {404, "Not Found"},
       {405, "Method Not Allowed"},
       {408, "Request Timeout"},
       {411, "Length Required"},
       {413, "Content Too Large"},
       {415, "Unsupported Media Type"},
       {422, "Unprocessable Content"},
       {429, "Too Many Requests"},
       {431, "Request Header Fields Too Large"},
       {500, "Internal Server Error"},
       {501, "Not Implemented"},
       {503, "Service Unavailable"},
       {504, "Gateway Timeout"}}};
  for (const auto& [code, phrase] : kPhrases) {
    if (code == status) return phrase;
  }
  return {};
}

}  // namespace belay::http
