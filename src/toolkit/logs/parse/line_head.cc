// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/parse/line_head.h"

#include <algorithm>
#include <array>
#include <utility>

namespace belay::logs {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLetter(char c) { return IsUpper(c) || (c >= 'a' && c <= 'z'); }

// "123", "-1"; -1 for anything else or beyond 2^31.
int Number(std::string_view text) {
  if (text.empty() || text.size() > 9) return -1;
  int value = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

constexpr std::pair<std::string_view, Level> kLevels[] = {
    {"DEBUG", Level::kDebug},     {"TRACE", Level::kDebug},
    {"INFO", Level::kInfo},       {"EVENT", Level::kEvent},
    {"WARNING", Level::kWarning}, {"WARN", Level::kWarning},
    {"ERROR", Level::kError},     {"CRITICAL", Level::kFatal},
    {"FATAL", Level::kFatal},     {"Error", Level::kError},
    {"Warning", Level::kWarning}, {"error", Level::kError},
    {"warn", Level::kWarning},    {"info", Level::kInfo}};

// The level whose name is exactly `word`.
Level LevelOf(std::string_view word) {
  for (const auto& [name, level] : kLevels) {
    if (word == name) return level;
  }
  return Level::kNone;
}

// Reads one mark after the other off a line.
class HeadParser {
 public:
  explicit HeadParser(std::string_view line) : line_(line) {}

  LineHead Parse() {
    for (int n_marks = 0; n_marks < 12; ++n_marks) {
      SkipBlanks();
      if (!TakeMark()) break;
      head_.n_chars = at_;
    }
    SkipBlanks();
    head_.n_chars = at_;
    return head_;
  }

 private:
  std::string_view Rest() const { return line_.substr(at_); }

  void SkipBlanks() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) {
      ++at_;
    }
  }

  bool TakeMark() {
    const std::string_view rest = Rest();
    if (rest.empty()) return false;
    if (rest[0] == '[') return TakeBracket(rest);
    if (rest[0] == '(') return TakeActor(rest);
    if (rest[0] == '-' && head_.time) {  // " - " of Python's logging
      if (rest.size() < 2 || rest[1] != ' ') return false;
      ++at_;
      return true;
    }
    if (IsDigit(rest[0])) return !head_.time && TakeTime(rest);
    if (!IsLetter(rest[0])) return false;
    return TakeWord(rest);
  }

  bool TakeTime(std::string_view text) {
    const auto parsed = ParseTime(text);
    if (!parsed) return false;
    head_.time = parsed->time;
    at_ += parsed->n_chars;
    return true;
  }

  // [LEVEL], [time ...], [PID: n], [rank3]:, [123.456], [name], [file.cc:12]
  bool TakeBracket(std::string_view rest) {
    const size_t end = rest.substr(0, 100).find(']');
    if (end == std::string_view::npos) return false;
    const std::string_view inner = rest.substr(1, end - 1);
    const Level level = LevelOf(inner);
    if (level != Level::kNone) {
      // "[Error]: text" of torch_npu belongs to the line before it.
      if (head_.level != Level::kNone) return false;
      head_.level = level;
      at_ += end + 1;
      if (at_ < line_.size() && line_[at_] == ':') ++at_;
      SkipBlanks();
      TakeModule();
      return true;
    }
    if (inner.starts_with("PID:")) {
      const size_t digits = inner.find_first_not_of(' ', 4);
      if (digits == std::string_view::npos) return false;
      head_.pid = Number(inner.substr(digits));
      at_ += end + 1;
      return true;
    }
    if (inner.starts_with("rank") && Number(inner.substr(4)) >= 0) {
      head_.rank = Number(inner.substr(4));
      at_ += end + 1;
      if (at_ < line_.size() && line_[at_] == ':') ++at_;
      return true;
    }
    return TakeBracketTime(inner, end) || TakeUptime(inner, end) ||
           TakeKernelTag(inner, end) || TakeMindIeField(inner, end);
  }

  // [2025-08-12 10:00:00 TP3], [2021-10-05-23:07:08.656411],
  // [Fri Aug  1 08:38:31 2025]
  bool TakeBracketTime(std::string_view inner, size_t end) {
    if (head_.time) return false;
    std::string_view text = inner;
    if (text.size() > 20 && IsUpper(text[0]) && text[3] == ' ' &&
        IsUpper(text[4])) {
      text.remove_prefix(4);  // the day of the week
    }
    const auto parsed = ParseTime(text);
    if (!parsed) return false;
    head_.time = parsed->time;
    const std::string_view behind = text.substr(parsed->n_chars);
    if (behind.size() == 5 && Number(behind.substr(1)) > 1970) {
      head_.time =
          TimeStamp{WithYear(parsed->time.us, Number(behind.substr(1))), true};
      head_.is_kernel = true;
    }
    TakeParallel(behind);
    at_ += end + 1;
    return true;
  }

  // The uptime of dmesg, in seconds; no point in time by itself.
  bool TakeUptime(std::string_view inner, size_t end) {
    const size_t start = inner.find_first_not_of(' ');
    if (start == std::string_view::npos) return false;
    const std::string_view number = inner.substr(start);
    const size_t dot = number.find('.');
    if (dot == std::string_view::npos || number.size() - dot != 7 ||
        Number(number.substr(0, dot)) < 0 ||
        Number(number.substr(dot + 1)) < 0) {
      return false;
    }
    head_.is_kernel = true;
    at_ += end + 1;
    return true;
  }

  // [ascend] [ERROR] [drv_soft_fault]
  bool TakeKernelTag(std::string_view inner, size_t end) {
    if (inner != "ascend") return false;
    head_.is_kernel = true;
    // The tag itself stays readable for the rules: only the level is taken.
    const std::string_view behind = Rest().substr(end + 1);
    const size_t open = behind.find('[');
    const size_t close = behind.find(']');
    if (open == std::string_view::npos || close == std::string_view::npos ||
        close < open) {
      return false;
    }
    head_.level = LevelOf(behind.substr(open + 1, close - open - 1));
    return false;
  }

  // [12345] [67890] [llm] behind the time of a MindIE line.
  bool TakeMindIeField(std::string_view inner, size_t end) {
    if (!head_.time || head_.level != Level::kNone || inner.empty() ||
        inner.size() > 24) {
      return false;
    }
    const bool plain = std::all_of(inner.begin(), inner.end(), [](char c) {
      return IsLetter(c) || IsDigit(c) || c == '_' || c == '-';
    });
    if (!plain) return false;
    if (head_.pid < 0) head_.pid = Number(inner);
    at_ += end + 1;
    return true;
  }

  // RUNTIME(2723298,python): of a plog, directly behind the level.
  void TakeModule() {
    const std::string_view rest = Rest();
    size_t n = 0;
    while (n < rest.size() && n < 24 &&
           (IsUpper(rest[n]) || IsDigit(rest[n]) || rest[n] == '_')) {
      ++n;
    }
    if (n < 2 || n >= rest.size() || rest[n] != '(') return;
    const size_t comma = rest.substr(0, n + 16).find(',', n);
    const size_t close = rest.substr(0, n + 160).find("):", n);
    if (comma == std::string_view::npos || close == std::string_view::npos ||
        comma > close) {
      return;
    }
    head_.module = rest.substr(0, n);
    head_.pid = Number(rest.substr(n + 1, comma - n - 1));
    at_ += close + 2;
  }

  // (Worker_TP3 pid=12), (PID:553, Device:0, RankID:-1)
  bool TakeActor(std::string_view rest) {
    const size_t end = rest.substr(0, 120).find(')');
    if (end == std::string_view::npos) return false;
    const std::string_view inner = rest.substr(1, end - 1);
    const auto field = [&](std::string_view name) {
      const size_t found = inner.find(name);
      if (found == std::string_view::npos) return -1;
      const size_t start = found + name.size();
      size_t n = start;
      while (n < inner.size() && IsDigit(inner[n])) ++n;
      return Number(inner.substr(start, n - start));
    };
    if (inner.starts_with("PID:")) {
      head_.pid = field("PID:");
      head_.device = field("Device:");
      head_.rank = field("RankID:");
    } else if (field("pid=") >= 0) {
      head_.pid = field("pid=");
      head_.rank = field(" rank=");  // "VllmWorker rank=3 pid=12"
      TakeParallel(inner.substr(0, inner.find(' ')));
    } else {
      return false;
    }
    at_ += end + 1;
    return true;
  }

  // TP3, DP0_TP2, DP1_TP0_EP3: the rank inside a group; the tensor-parallel one
  // is a rank if it stands alone.
  void TakeParallel(std::string_view text) {
    const size_t tp = text.rfind("TP");
    if (tp == std::string_view::npos) return;
    size_t n = tp + 2;
    while (n < text.size() && IsDigit(text[n])) ++n;
    const int rank = Number(text.substr(tp + 2, n - tp - 2));
    const size_t dp = text.find("DP");
    const bool other_group = dp != std::string_view::npos &&
                             dp + 2 < text.size() && text[dp + 2] != '0';
    if (rank >= 0 && !other_group && head_.rank < 0) head_.rank = rank;
  }

  bool TakeWord(std::string_view rest) {
    // E20250812 10:00:00.123456 12345 file.cpp:12] of glog
    static constexpr std::string_view kGlog = "IWEF";
    const size_t glog = kGlog.find(rest[0]);
    if (glog != std::string_view::npos && rest.size() > 16 &&
        IsDigit(rest[1]) && !head_.time) {
      static constexpr std::array<Level, 4> kOf = {
          Level::kInfo, Level::kWarning, Level::kError, Level::kFatal};
      const auto parsed = ParseTime(rest.substr(1));
      if (parsed) {
        head_.level = kOf[glog];
        head_.time = parsed->time;
        at_ += 1 + parsed->n_chars;
        return true;
      }
    }
    if (!head_.time) {
      if (const auto parsed = ParseTime(rest)) {  // syslog
        head_.time = parsed->time;
        at_ += parsed->n_chars;
        TakeSyslogHost();
        return true;
      }
    }
    return TakeLevelWord(rest) || TakeCodeMark(rest);
  }

  // "host kernel:" or "host name[12]:" behind a syslog time.
  void TakeSyslogHost() {
    const std::string_view rest = Rest().substr(0, 120);
    const size_t colon = rest.find(": ");
    if (colon == std::string_view::npos) return;
    head_.is_kernel = rest.substr(0, colon).ends_with(" kernel");
    if (head_.is_kernel) at_ += colon + 1;
  }

  // "ERROR 08-12 10:00:00 [core.py:12]", "name - ERROR - "
  bool TakeLevelWord(std::string_view rest) {
    size_t n = 0;
    while (n < rest.size() && n < 64 &&
           (IsLetter(rest[n]) || IsDigit(rest[n]) || rest[n] == '_' ||
            rest[n] == '.')) {
      ++n;
    }
    const std::string_view word = rest.substr(0, n);
    // In capitals: "Error Code : ..." is a message.
    if (head_.level == Level::kNone && n > 1 && IsUpper(word[1]) &&
        n < rest.size() && (rest[n] == ' ' || rest[n] == ':')) {
      const Level level = LevelOf(word);
      if (level != Level::kNone) {
        head_.level = level;
        at_ += n + 1;
        return true;
      }
    }
    // The logger's name, if a level follows it.
    if (head_.time && head_.level == Level::kNone &&
        rest.substr(n).starts_with(" - ")) {
      at_ += n + 3;
      return true;
    }
    return false;
  }

  // "EL0004: [PID: 553] time", "EZ9999[PID: 1] time", "EI9999: time": the head
  // is read, but the code stays in the message.
  bool TakeCodeMark(std::string_view rest) {
    if (rest.size() < 8 || rest[0] != 'E' || !IsDigit(rest[3]) ||
        !IsDigit(rest[5])) {
      return false;
    }
    std::string_view behind = rest.substr(6);
    if (behind[0] == ':') behind.remove_prefix(1);
    while (!behind.empty() && behind[0] == ' ') behind.remove_prefix(1);
    if (behind.starts_with("[PID:")) {
      const size_t close = behind.find(']');
      if (close == std::string_view::npos || close > 24) return false;
      const size_t digits = behind.find_first_not_of(' ', 5);
      head_.pid = Number(behind.substr(digits, close - digits));
      behind.remove_prefix(close + 1);
      while (!behind.empty() && behind[0] == ' ') behind.remove_prefix(1);
    }
    if (const auto parsed = ParseTime(behind)) head_.time = parsed->time;
    if (head_.time || head_.pid >= 0) head_.level = Level::kError;
    return false;
  }

  std::string_view line_;
  size_t at_ = 0;
  LineHead head_;
};

}  // namespace

std::string_view NameOf(Level level) {
  static constexpr std::string_view kNames[] = {
      "", "DEBUG", "INFO", "EVENT", "WARNING", "ERROR", "FATAL"};
  return kNames[static_cast<size_t>(level)];
}

LineHead ParseHead(std::string_view line) {
  return HeadParser(line.substr(0, 400)).Parse();
}

}  // namespace belay::logs
