// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/parse/codes.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace belay::logs {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsWordByte(char c) {
  return IsDigit(c) || IsUpper(c) || (c >= 'a' && c <= 'z') || c == '_';
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (IsUpper(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool Holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Decimal or 0x hexadecimal, whole.
std::optional<int64_t> NumberOf(std::string_view token) {
  int base = 10;
  if (token.size() > 2 && token[0] == '0' &&
      (token[1] == 'x' || token[1] == 'X')) {
    token.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const char* end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, value, base);
  if (token.empty() || error != std::errc() || stop != end ||
      value > uint64_t{1} << 62) {
    return std::nullopt;
  }
  return static_cast<int64_t>(value);
}

// Round numbers that count steps and tokens as well: they need sure words.
bool IsRound(int64_t value) { return value % 100000 == 0 || value == 507000; }

constexpr std::string_view kSureWords[] = {
    "error code is", "error code", "errorcode", "errcode",
    "errno",         "result",     "retcode",   "error code is:"};
constexpr std::string_view kWords[] = {
    "ret", "return", "ret is", "failed", "code is", "acl error", "err"};

constexpr std::string_view kSixDigits[] = {"acl", "runtime", "ge", "aclnn"};

}  // namespace

// One line while it is read.
class CodeIndex::Line {
 public:
  Line(const CodeIndex& index, std::string_view text, std::string_view module)
      : index_(index), text_(text), lower_(Lower(text)), module_(module) {
    is_hccl_ = module == "HCCL" || Holds(lower_, "hccl");
    is_driver_ = module == "DRV" || Holds(lower_, "drvmng") ||
                 Holds(lower_, "halmem") || Holds(lower_, "halhost") ||
                 Holds(lower_, "haldev") || Holds(lower_, "halget");
    is_dcmi_ = Holds(lower_, "dcmi") || Holds(lower_, "ret");
  }

  std::vector<FoundCode> Read() {
    size_t at = 0;
    while (at < text_.size() && found_.size() < 16) {
      if (!IsWordByte(text_[at])) {
        ++at;
        continue;
      }
      size_t end = at;
      while (end < text_.size() && IsWordByte(text_[end])) ++end;
      Token(at, end);
      at = end;
    }
    return std::move(found_);
  }

 private:
  void Add(const diag::Entry* entry, std::string text) {
    for (const FoundCode& other : found_) {
      if (other.text == text && other.entry == entry) return;
    }
    found_.push_back({entry, std::move(text)});
  }

  // The words directly in front of `at`, without signs between.
  std::string_view Before(size_t at) const {
    std::string_view before = std::string_view(lower_).substr(0, at);
    constexpr std::string_view kSigns = " \t:=[](){}'\",-.";
    const size_t end = before.find_last_not_of(kSigns);
    return end == std::string_view::npos ? "" : before.substr(0, end + 1);
  }

  template <size_t kCount>
  static bool EndsWithAny(std::string_view text,
                          const std::string_view (&words)[kCount]) {
    return std::any_of(words, words + kCount, [&](std::string_view word) {
      if (!text.ends_with(word)) return false;
      const size_t start = text.size() - word.size();
      // "ret" and "err" end other words too.
      return start == 0 || word.size() > 3 || !IsWordByte(text[start - 1]) ||
             text[start - 1] == '_';
    });
  }

  void Token(size_t at, size_t end) {
    const std::string_view token = text_.substr(at, end - at);
    if (IsDigit(token[0])) {
      Number(token, at);
      return;
    }
    if (token.size() == 6 && (token[0] == 'E' || token[0] == 'W') &&
        IsDigit(token[2]) && IsDigit(token[3])) {
      ErrorString(token, at, end);
    } else if (token.size() == 8 && token.starts_with("ERR") &&
               IsDigit(token[3])) {
      Text(token);
    } else if (token.starts_with("ACL_ERROR_") ||
               token.starts_with("HCCL_E_") ||
               token.starts_with("DRV_ERROR_") ||
               token.starts_with("ACLNN_ERR_")) {
      Text(token);
    } else if (token.size() == 8 && Holds(lower_, "error code") &&
               token.find_first_not_of("0123456789ABCDEFabcdef") ==
                   std::string_view::npos) {
      Event("0x" + Lower(token));  // npu-smi: "Error Code : A4025021 8C03A000"
    }
  }

  void Text(std::string_view token) {
    if (const diag::Entry* entry = index_.OfText(token)) {
      Add(entry, std::string(token));
    }
  }

  // EI0006 and the like.
  void ErrorString(std::string_view token, size_t at, size_t end) {
    const diag::Entry* entry = index_.OfText(token);
    if (entry == nullptr) return;
    const char next = end < text_.size() ? text_[end] : ' ';
    const char before = at > 0 ? text_[at - 1] : ' ';
    const bool marked =
        next == ':' || next == '[' || (next == ')' && before == '(') || at == 0;
    if (marked) Add(entry, std::string(token));
  }

  bool Event(const std::string& text) {
    const diag::Entry* entry = index_.OfText(text);
    if (entry == nullptr) return false;
    Add(entry, text);
    return true;
  }

  void Number(std::string_view token, size_t at) {
    const auto value = NumberOf(token);
    if (!value) {
      // 8C03A000 begins with a digit as well.
      if (token.size() == 8 && Holds(lower_, "error code")) {
        Event("0x" + Lower(token));
      }
      return;
    }
    const bool is_hex =
        token.size() > 2 && (token[1] == 'x' || token[1] == 'X');
    if (is_hex && token.size() == 10 && Event(Lower(token))) return;
    const std::string_view before = Before(at);
    const bool is_sure = EndsWithAny(before, kSureWords) ||
                         before.ends_with("ret_code") ||
                         before.ends_with("innercode");
    const bool is_told =
        (is_sure || EndsWithAny(before, kWords)) && !IsTalk(before, at);
    if (!is_told && !Negative(*value, at)) {
      Host(*value, before);
      return;
    }
    if (is_hex && Inner(token, *value, before)) return;
    if (*value >= 100000 && *value < 1000000) {
      const auto six = index_.six_digits_.find(*value);
      if (six != index_.six_digits_.end() && (is_sure || !IsRound(*value))) {
        Add(six->second, std::to_string(*value));
      }
      return;
    }
    Small(*value, at, before);
  }

  // "what does error code 507014 mean": people put no sign in front of a
  // number, and name no part of the system.
  bool IsTalk(std::string_view before, size_t at) const {
    if (!before.ends_with("error code")) return false;
    const std::string_view between =
        text_.substr(before.size(), at - before.size());
    if (between.find_first_not_of(' ') != std::string_view::npos) return false;
    return !Holds(lower_, "acl") && !Holds(lower_, "npu") &&
           !Holds(lower_, "ascend") && !is_hccl_ && !Holds(lower_, "stream");
  }

  // Codes of DCMI are negative: "ret is -8005".
  bool Negative(int64_t value, size_t at) const {
    return at > 0 && text_[at - 1] == '-' && value >= 8000 && value < 9000 &&
           is_dcmi_;
  }

  // "Unable to halHostRegister: 65534"
  void Host(int64_t value, std::string_view before) {
    if (value != 0xfffe || !before.ends_with("hostregister")) return;
    Add(index_.Of("driver", value), "0xfffe");
  }

  // InnerCode=0x715005e, retCode=0x31, errNo[0x0000000005000002].
  bool Inner(std::string_view token, int64_t value, std::string_view before) {
    if (before.ends_with("errno") && token.size() > 12) {
      constexpr int64_t kHcclModule = 5;
      if ((value >> 24 & 0xff) == kHcclModule) {
        AddOf("hccl", value & 0xffff);
      }
      return true;
    }
    const std::string text = Lower(token);
    if (const diag::Entry* entry = index_.OfText(text)) {
      Add(entry, text);
      return true;
    }
    if (before.ends_with("innercode")) {
      Add(nullptr, text);
      return true;
    }
    return false;
  }

  void AddOf(std::string_view component, int64_t value) {
    if (const diag::Entry* entry = index_.Of(component, value)) {
      Add(entry, std::to_string(value));
    }
  }

  void Small(int64_t value, size_t at, std::string_view before) {
    if (Negative(value, at)) {
      AddOf("dcmi", -value);
      return;
    }
    if (value == 0 || value > 0xffff) return;
    if (before.ends_with("drvretcode") || before.ends_with("drv_ret_code") ||
        before.ends_with("drv_ret") || before.ends_with("drv ret")) {
      AddOf("driver", value);
    } else if (is_driver_ && module_ != "HCCL" && before.ends_with("ret")) {
      AddOf("driver", value);
    } else if (is_hccl_ && value < 25) {
      AddOf("hccl", value);
    }
  }

  const CodeIndex& index_;
  std::string_view text_;
  std::string lower_;
  std::string_view module_;
  bool is_hccl_ = false, is_driver_ = false, is_dcmi_ = false;
  std::vector<FoundCode> found_;
};

CodeIndex::CodeIndex(const diag::Catalogue& catalogue) {
  for (const diag::Entry& entry : catalogue.entries()) {
    for (const diag::Code& code : entry.codes) {
      const bool is_negative = code.code.starts_with('-');
      const auto value =
          NumberOf(is_negative ? std::string_view(code.code).substr(1)
                               : std::string_view(code.code));
      // Success is no error.
      if (value && *value == 0) continue;
      if (value) {
        const int64_t number = is_negative ? -*value : *value;
        numbers_.emplace(std::pair(code.component, number), &entry);
        if (std::find(std::begin(kSixDigits), std::end(kSixDigits),
                      code.component) != std::end(kSixDigits)) {
          six_digits_.emplace(number, &entry);
        }
      }
      // Numbers of few digits mean something in their component only.
      if (!value || code.component == "event" || code.component == "inner" ||
          code.component == "task") {
        texts_.emplace(code.code, &entry);
      }
      if (!code.symbol.empty() && Holds(code.symbol, "_")) {
        texts_.emplace(code.symbol, &entry);
      }
    }
  }
}

std::vector<FoundCode> CodeIndex::Find(std::string_view message,
                                       std::string_view module) const {
  return Line(*this, message.substr(0, 4096), module).Read();
}

const diag::Entry* CodeIndex::Of(std::string_view component,
                                 int64_t value) const {
  const auto found = numbers_.find({std::string(component), value});
  return found == numbers_.end() ? nullptr : found->second;
}

const diag::Entry* CodeIndex::OfText(std::string_view code) const {
  const auto found = texts_.find(code);
  return found == texts_.end() ? nullptr : found->second;
}

}  // namespace belay::logs
