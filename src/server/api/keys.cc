// SPDX-License-Identifier: Apache-2.0
#include "server/api/keys.h"

#include <algorithm>

#include "base/error_ids.h"
#include "base/file.h"
#include "http/message.h"

namespace belay::server {
namespace {

constexpr size_t kMinKeyBytes = 16;
constexpr size_t kMaxKeyBytes = 512;

Status BadFile(const std::string& where, std::string expected,
               std::string got) {
  return MakeError(kSrvBadKeyFile, {.where = where,
                                    .what = "",
                                    .expected = std::move(expected),
                                    .got = std::move(got)});
}

bool IsSendable(std::string_view key) {
  return std::all_of(key.begin(), key.end(),
                     [](char c) { return c > 0x20 && c < 0x7f; });
}

// Looks at every byte of `sent` whatever it is. The length of a key may show;
// its content may not.
bool Same(std::string_view sent, std::string_view key) {
  unsigned difference = sent.size() == key.size() ? 0 : 1;
  for (size_t i = 0; i < sent.size(); ++i) {
    difference |= static_cast<unsigned char>(sent[i]) ^
                  static_cast<unsigned char>(key[i % key.size()]);
  }
  return difference == 0;
}

}  // namespace

StatusOr<ApiKeys> ApiKeys::Read(const std::string& path) {
  BELAY_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, 1 << 20));
  return Parse(text, path);
}

StatusOr<ApiKeys> ApiKeys::Parse(std::string_view text,
                                 const std::string& where) {
  ApiKeys keys;
  int n_line = 0;
  while (!text.empty()) {
    ++n_line;
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) {
      line.remove_suffix(1);
    }
    if (line.empty() || line.front() == '#') continue;
    // The key itself must not get into a log.
    const std::string place = where + ":" + std::to_string(n_line);
    if (line.size() < kMinKeyBytes || line.size() > kMaxKeyBytes) {
      return BadFile(place, "16 to 512 characters",
                     std::to_string(line.size()));
    }
    if (!IsSendable(line)) {
      return BadFile(place, "printable ASCII without blanks", "");
    }
    keys.keys_.emplace_back(line);
  }
  if (keys.empty()) return BadFile(where, "a key", "none");
  return keys;
}

int ApiKeys::Find(std::string_view authorization) const {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() < kScheme.size() ||
      !http::EqualNoCase(authorization.substr(0, kScheme.size()), kScheme)) {
    return -1;
  }
  const std::string_view sent = authorization.substr(kScheme.size());
  int found = -1;
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (Same(sent, keys_[i])) found = static_cast<int>(i);
  }
  return found;
}

}  // namespace belay::server
