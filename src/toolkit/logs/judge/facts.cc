// SPDX-License-Identifier: Apache-2.0
// Small facts in names and lines.
#include <algorithm>

#include "toolkit/logs/judge/event.h"
#include "toolkit/logs/judge/scanner.h"

namespace belay::logs {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameByte(char c) {
  return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         c == '_';
}

int Digits(std::string_view text) {
  int value = 0;
  size_t n = 0;
  while (n < text.size() && n < 9 && IsDigit(text[n])) {
    value = value * 10 + (text[n++] - '0');
  }
  return n == 0 ? -1 : value;
}

// The number behind the last `word` and at most one of "-_" in `path`.
int NumberBehind(std::string_view path, std::string_view word) {
  for (size_t at = path.rfind(word); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : path.rfind(word, at - 1)) {
    std::string_view rest = path.substr(at + word.size());
    if (!rest.empty() && (rest[0] == '-' || rest[0] == '_')) {
      rest.remove_prefix(1);
    }
    if (const int value = Digits(rest); value >= 0) return value;
  }
  return -1;
}

// The identifier at the start of `text`.
std::string_view NameAt(std::string_view text) {
  size_t n = 0;
  while (n < text.size() && n < 120 && IsNameByte(text[n])) ++n;
  return text.substr(0, n);
}

// Bytes of the character at the start of `text`; 0 if they are no UTF-8.
size_t LengthOfUtf8(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  size_t n = 0;
  if (first >= 0xc2 && first < 0xe0) n = 2;
  if (first >= 0xe0 && first < 0xf0) n = 3;
  if (first >= 0xf0 && first < 0xf5) n = 4;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Too long for what it says, half of a pair, or beyond Unicode.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f) ||
      (first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) {
    return 0;
  }
  return n;
}

// "Foo_12" is the 12th node of operator Foo.
std::string_view WithoutCount(std::string_view name) {
  const size_t end = name.find_last_not_of("0123456789");
  if (end != std::string_view::npos && name[end] == '_' &&
      end + 1 < name.size() && end > 0) {
    return name.substr(0, end);
  }
  return name;
}

}  // namespace

void FactsFromName(FileFacts& facts) {
  const std::string& name = facts.name;
  for (const std::string_view word : {"rank", "worker", "Worker_TP"}) {
    if (facts.rank < 0) facts.rank = NumberBehind(name, word);
  }
  // device-0/device-24052_20260101...log: the file has the number of the
  // process.
  std::string_view place = name;
  const size_t slash = place.rfind('/') + 1;  // 0 without one
  const std::string_view base = place.substr(slash);
  if (base.starts_with("device-") && base.find('_') != std::string_view::npos) {
    place = place.substr(0, slash);
  }
  for (const std::string_view word : {"device", "dev-os"}) {
    if (facts.device < 0) facts.device = NumberBehind(place, word);
  }
  facts.pid = NumberBehind(name, "plog-");
  if (facts.pid < 0) facts.pid = NumberBehind(name, "/device-");
}

std::string OperatorIn(std::string_view line) {
  const size_t aclnn = line.find("aclnn");
  if (aclnn != std::string_view::npos) {
    const std::string_view name = NameAt(line.substr(aclnn));
    if (name.size() > 6 && name[5] >= 'A' && name[5] <= 'Z') {
      return std::string(name);
    }
  }
  // A kernel's name goes on with formats and types: "Foo_ND_ND_BF16_...".
  const size_t kernel = line.find("kernel_name=");
  if (kernel != std::string_view::npos) {
    const std::string_view name = NameAt(line.substr(kernel + 12));
    return std::string(name.substr(0, name.find('_')));
  }
  for (const std::string_view cue :
       {"OpName:[", "opName:[", "op_name[", "op[", "execute operator ",
        "opType[", "op_type["}) {
    const size_t at = line.find(cue);
    if (at == std::string_view::npos) continue;
    const std::string_view name = NameAt(line.substr(at + cue.size()));
    if (name.size() > 2) return std::string(WithoutCount(name));
  }
  return "";
}

std::string TextOf(std::string_view line) {
  line = line.substr(0, kMaxTextBytes);
  const size_t start = line.find_first_not_of(" \t\r");
  if (start == std::string_view::npos) return "";
  line = line.substr(start, line.find_last_not_of(" \t\r") - start + 1);
  std::string text;
  text.reserve(line.size());
  for (size_t i = 0; i < line.size();) {
    const size_t n = LengthOfUtf8(line.substr(i));
    if (n > 0) {
      text += line.substr(i, n);
    } else {
      text += "\xef\xbf\xbd";
    }
    i += std::max<size_t>(n, 1);
  }
  return text;
}

std::vector<int> BlamedIn(std::string_view line) {
  std::vector<int> ranks;
  for (const std::string_view cue :
       {"remote rank:[", "remote rank: [", "connect agent[", "remoteRank[",
        "remote rank["}) {
    const size_t at = line.find(cue);
    if (at == std::string_view::npos) continue;
    std::string_view list = line.substr(at + cue.size());
    list = list.substr(0, std::min(list.find(']'), size_t{400}));
    while (!list.empty() && ranks.size() < 64) {
      const int rank = Digits(list);
      if (rank >= 0 &&
          std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) {
        ranks.push_back(rank);
      }
      const size_t comma = list.find_first_of(", ");
      if (comma == std::string_view::npos) break;
      list.remove_prefix(comma + 1);
    }
    break;
  }
  return ranks;
}

}  // namespace belay::logs
