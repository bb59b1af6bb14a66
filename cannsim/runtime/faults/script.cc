// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/faults/script.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace cannsim {
namespace {

constexpr size_t kMaxText = size_t{64} << 10;
constexpr size_t kMaxRules = 256;
constexpr uint64_t kMaxNumber = uint64_t{1} << 46;

using Rule = FaultRule;

struct Token {
  std::string text;  // lower case
  int line = 1;
  int column = 1;
};

using Statement = std::vector<Token>;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsName(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || c == '_';
  });
}

// What a message may show of a word: printable, and not long.
std::string Shown(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 40)) {
    shown += c > ' ' && c < 0x7F ? c : '?';
  }
  return shown + (text.size() > 40 ? "..." : "");
}

// Digits at the begin; the rest stays in `text`. False when there are none or
// too many.
bool TakeNumber(std::string_view* text, uint64_t* value) {
  const char* begin = text->data();
  const auto result = std::from_chars(begin, begin + text->size(), *value);
  if (result.ec != std::errc() || *value > kMaxNumber) return false;
  text->remove_prefix(static_cast<size_t>(result.ptr - begin));
  return true;
}

std::vector<Statement> Split(std::string_view text) {
  std::vector<Statement> statements(1);
  int line = 1;
  size_t line_begin = 0;
  size_t at = 0;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '\n' || c == ';') {
      if (!statements.back().empty()) statements.emplace_back();
      ++at;
      if (c == '\n') {
        ++line;
        line_begin = at;
      }
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == ' ' || c == '\t' || c == '\r' || c == ',') {
      ++at;
    } else {
      const size_t end =
          std::min(text.find_first_of(" \t\r\n;#,", at), text.size());
      statements.back().push_back({Lower(text.substr(at, end - at)), line,
                                   static_cast<int>(at - line_begin) + 1});
      at = end;
    }
  }
  if (statements.back().empty()) statements.pop_back();
  return statements;
}

// One statement.
class Reader {
 public:
  Reader(const Statement& words, std::string* error)
      : words_(words), error_(error) {}

  bool Read(Rule* rule) {
    rule->line = words_[0].line;
    if (!ReadWhen(rule) || !ReadWhat(rule)) return false;
    while (Is("on")) {
      if (!ReadPlace(rule)) return false;
    }
    if (!ReadAction(rule)) return false;
    if (at_ < words_.size()) return Complain("nothing more");
    return CheckSense(*rule);
  }

 private:
  bool Is(std::string_view word) const {
    return at_ < words_.size() && words_[at_].text == word;
  }

  bool Take(std::string_view word) {
    if (!Is(word)) return false;
    ++at_;
    return true;
  }

  bool Complain(const std::string& expected) {
    const bool is_end = at_ >= words_.size();
    const Token& token = is_end ? words_.back() : words_[at_];
    const size_t column =
        static_cast<size_t>(token.column) + (is_end ? token.text.size() : 0);
    *error_ = fmt::format("line {}, column {}: expected {}, got {}", token.line,
                          column, expected,
                          is_end ? "the end" : "\"" + Shown(token.text) + "\"");
    return false;
  }

  bool Number(uint64_t* value, const std::string& expected) {
    if (at_ >= words_.size()) return Complain(expected);
    std::string_view text = words_[at_].text;
    if (!TakeNumber(&text, value) || !text.empty()) return Complain(expected);
    ++at_;
    return true;
  }

  // 1st, 2nd, 120th; the letters are not looked at closely, and may lack.
  bool Ordinal(uint64_t* value) {
    constexpr char kWanted[] = "a count like 3rd";
    Take("the");
    if (at_ >= words_.size()) return Complain(kWanted);
    std::string_view text = words_[at_].text;
    if (!TakeNumber(&text, value) || *value == 0) return Complain(kWanted);
    if (!text.empty() && text != "st" && text != "nd" && text != "rd" &&
        text != "th") {
      return Complain(kWanted);
    }
    ++at_;
    return true;
  }

  bool ReadWhen(Rule* rule) {
    if (Take("always")) return true;  // from the first
    if (Take("from")) return Ordinal(&rule->n);
    const bool at = Take("at");
    if (at && Is("byte")) return true;  // ReadWhat takes it
    if (Take("every")) {
      rule->when = Rule::When::kEvery;
      return Ordinal(&rule->n);
    }
    if (!at) return Complain("at, every, from or always");
    rule->when = Rule::When::kAt;
    return Ordinal(&rule->n);
  }

  bool ReadWhat(Rule* rule) {
    constexpr char kWanted[] =
        "task, operator, copy, fill, malloc, wait, byte or a name";
    if (at_ >= words_.size()) return Complain(kWanted);
    const std::string& word = words_[at_].text;
    if (word == "byte") return ReadByte(rule);
    constexpr std::pair<std::string_view, Rule::What> kKinds[] = {
        {"task", Rule::What::kTask},     {"operator", Rule::What::kOperator},
        {"copy", Rule::What::kCopy},     {"fill", Rule::What::kFill},
        {"malloc", Rule::What::kMalloc}, {"wait", Rule::What::kWait}};
    for (const auto& [name, what] : kKinds) {
      if (word != name) continue;
      rule->what = what;
      ++at_;
      return true;
    }
    if (!IsName(word) || IsDigit(word[0]) || IsReserved(word)) {
      return Complain(kWanted);
    }
    rule->name = FaultName(word);
    if (rule->name.empty()) return Complain("a name behind aclnn or Hccl");
    ++at_;
    return true;
  }

  // Words of the language are no names: "at 3rd return 1" lacks something.
  static bool IsReserved(std::string_view word) {
    constexpr std::string_view kWords[] = {
        "at",     "every", "from", "always", "on",   "device", "stream",
        "return", "hang",  "slow", "ignore", "lose", "missing"};
    return std::find(std::begin(kWords), std::end(kWords), word) !=
           std::end(kWords);
  }

  // byte 2147483648, byte 2GiB, byte 2 GiB
  bool ReadByte(Rule* rule) {
    constexpr char kWanted[] = "a number of bytes like 2GiB";
    if (rule->when != Rule::When::kFrom || rule->n != 1) {
      return Complain("a kind of work (\"byte\" stands right behind \"at\")");
    }
    ++at_;
    if (at_ >= words_.size()) return Complain(kWanted);
    std::string_view text = words_[at_].text;
    uint64_t n = 0;
    if (!TakeNumber(&text, &n)) return Complain(kWanted);
    const bool is_apart = text.empty() && at_ + 1 < words_.size();
    const std::string_view unit = is_apart ? words_[at_ + 1].text : text;
    constexpr std::pair<std::string_view, uint64_t> kUnits[] = {
        {"b", 1},
        {"kib", uint64_t{1} << 10},
        {"mib", uint64_t{1} << 20},
        {"gib", uint64_t{1} << 30}};
    uint64_t scale = text.empty() ? 1 : 0;
    for (const auto& [name, bytes] : kUnits) {
      if (unit != name) continue;
      scale = bytes;
      if (is_apart) ++at_;
    }
    if (scale == 0 || n > kMaxNumber / scale) return Complain(kWanted);
    ++at_;
    rule->what = Rule::What::kByte;
    rule->n = n * scale;
    return true;
  }

  bool ReadPlace(Rule* rule) {
    ++at_;  // on
    const bool is_device = Take("device");
    if (!is_device && !Take("stream")) return Complain("device or stream");
    uint64_t id = 0;
    if (!Number(&id, "its number")) return false;
    if (id > 1000000) {
      --at_;
      return Complain("a number up to 1000000");
    }
    (is_device ? rule->device : rule->stream) = static_cast<int>(id);
    return true;
  }

  bool ReadAction(Rule* rule) {
    constexpr char kWanted[] =
        "return CODE, hang, slow FACTOR, ignore, lose device or missing";
    if (Take("return")) return ReadCode(rule);
    if (Take("slow")) return ReadFactor(rule);
    if (Take("hang")) {
      rule->action = Rule::Action::kHang;
    } else if (Take("ignore")) {
      rule->action = Rule::Action::kIgnore;
    } else if (Take("missing")) {
      rule->action = Rule::Action::kMissing;
    } else if (Take("lose")) {
      rule->action = Rule::Action::kLose;
      if (!Take("device")) return Complain("device");
    } else {
      return Complain(kWanted);
    }
    return true;
  }

  bool ReadCode(Rule* rule) {
    constexpr char kWanted[] = "an error number of acl, 100000 to 600000";
    uint64_t code = 0;
    if (!Number(&code, kWanted)) return false;
    if (code < 100000 || code > 600000) {
      --at_;
      return Complain(kWanted);
    }
    rule->action = Rule::Action::kReturn;
    rule->code = static_cast<int>(code);
    return true;
  }

  bool ReadFactor(Rule* rule) {
    constexpr char kWanted[] = "a factor from 1 to 1000000";
    if (at_ >= words_.size()) return Complain(kWanted);
    const std::string& text = words_[at_].text;
    double factor = 0;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data(), end, factor);
    if (result.ec != std::errc() || result.ptr != end || !(factor >= 1) ||
        !(factor <= 1e6)) {
      return Complain(kWanted);
    }
    ++at_;
    rule->action = Rule::Action::kSlow;
    rule->factor = factor;
    return true;
  }

  // What parses and cannot happen is a mistake, too.
  bool CheckSense(const Rule& rule) {
    using What = Rule::What;
    using Action = Rule::Action;
    const char* why = nullptr;
    const bool is_host = rule.what == What::kByte ||
                         rule.what == What::kMalloc || rule.what == What::kWait;
    if (is_host && rule.action != Action::kReturn) {
      why = "byte, malloc and wait can only return a code";
    } else if (rule.action == Action::kMissing &&
               (rule.name.empty() || rule.device >= 0 || rule.stream >= 0 ||
                rule.when != Rule::When::kFrom || rule.n != 1)) {
      why = "missing goes as: always NAME missing";
    } else if (rule.stream >= 0 &&
               (rule.what == What::kByte || rule.what == What::kMalloc)) {
      why = "memory belongs to a device, not to a stream";
    }
    if (why == nullptr) return true;
    *error_ = fmt::format("line {}: {}", rule.line, why);
    return false;
  }

  const Statement& words_;
  std::string* error_;
  size_t at_ = 0;
};

}  // namespace

std::string FaultName(std::string_view name) {
  std::string lower = Lower(name);
  if (lower.starts_with("aclnn")) lower.erase(0, 5);
  if (lower.starts_with("hccl")) lower.erase(0, 4);
  return lower;
}

bool ParseFaultScript(std::string_view text, std::vector<FaultRule>* rules,
                      std::string* error) {
  rules->clear();
  if (text.size() > kMaxText) {
    *error = fmt::format("longer than {} bytes", kMaxText);
    return false;
  }
  for (const Statement& statement : Split(text)) {
    if (rules->size() >= kMaxRules) {
      *error = fmt::format("line {}: more than {} statements",
                           statement[0].line, kMaxRules);
      return false;
    }
    Rule rule;
    if (!Reader(statement, error).Read(&rule)) return false;
    rules->push_back(std::move(rule));
  }
  return true;
}

}  // namespace cannsim
