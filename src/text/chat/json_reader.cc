// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "base/error_ids.h"
#include "text/chat/json.h"
#include "text/split/unicode.h"

namespace belay::text {
namespace {

using Kind = JsonValue::Kind;

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Offset of the first byte that is not part of a well-formed character.
size_t FindInvalidUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Step step = NextUtf8(text.substr(at));
    if (step.kind != Utf8Step::kCharacter) return at;
    at += step.n_bytes;
  }
  return std::string_view::npos;
}

// `code_point` is no surrogate and at most U+10FFFF.
void AppendUtf8(uint32_t code_point, std::string* out) {
  const auto push = [&](uint32_t byte) {
    out->push_back(static_cast<char>(byte));
  };
  const auto tail = [&](int shift) {
    push(0x80 | ((code_point >> shift) & 0x3F));
  };
  if (code_point < 0x80) {
    push(code_point);
  } else if (code_point < 0x800) {
    push(0xC0 | (code_point >> 6));
    tail(0);
  } else if (code_point < 0x10000) {
    push(0xE0 | (code_point >> 12));
    tail(6);
    tail(0);
  } else {
    push(0xF0 | (code_point >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  StatusOr<JsonValue> ReadAll() {
    JsonValue value;
    BELAY_RETURN_IF_ERROR(ReadValue(&value, 0));
    SkipBlanks();
    if (at_ != text_.size()) return Error("text after the end of the value");
    return value;
  }

 private:
  Status Error(const char* what) const {
    return MakeError(kChatBadJson, {.where = "byte " + std::to_string(at_),
                                    .what = what,
                                    .expected = "",
                                    .got = ""});
  }

  void SkipBlanks() {
    while (at_ < text_.size() && IsBlank(text_[at_])) ++at_;
  }
  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  Status ReadValue(JsonValue* value, int depth) {
    SkipBlanks();
    if (depth > kMaxJsonDepth) return Error("nested too deep");
    switch (Peek()) {
      case '"':
        value->kind = Kind::kString;
        return ReadString(&value->text);
      case '[':
        return ReadArray(value, depth);
      case '{':
        return ReadObject(value, depth);
      default:
        return ReadScalar(value);
    }
  }

  Status ReadScalar(JsonValue* value) {
    if (Take("null")) return absl::OkStatus();
    const bool is_true = Take("true");
    if (is_true || Take("false")) {
      value->kind = Kind::kBool;
      value->boolean = is_true;
      return absl::OkStatus();
    }
    value->kind = Kind::kNumber;
    // json.loads takes these three words, and json.dumps prints them.
    for (const std::string_view word : {"NaN", "Infinity", "-Infinity"}) {
      if (!Take(word)) continue;
      value->text = word;
      return absl::OkStatus();
    }
    return ReadNumber(&value->text);
  }

  size_t SkipDigits() {
    const size_t begin = at_;
    while (IsDigit(Peek())) ++at_;
    return at_ - begin;
  }

  Status ReadNumber(std::string* number) {
    const size_t begin = at_;
    if (Peek() == '-') ++at_;
    if (Peek() == '0') {
      ++at_;
    } else if (SkipDigits() == 0) {
      at_ = begin;
      return Error("no JSON value");
    }
    const size_t integer_end = at_;
    TakeFraction();
    TakeExponent();
    *number = std::string(text_.substr(begin, at_ - begin));
    if (at_ != integer_end) {
      // strtod, because from_chars leaves what is out of range unset.
      *number = PythonFloatRepr(std::strtod(number->c_str(), nullptr));
    } else if (*number == "-0") {
      *number = "0";
    }
    return absl::OkStatus();
  }

  void TakeFraction() {
    if (Peek() != '.') return;
    const size_t dot = at_++;
    if (SkipDigits() == 0) at_ = dot;
  }

  void TakeExponent() {
    if (Peek() != 'e' && Peek() != 'E') return;
    const size_t mark = at_++;
    if (Peek() == '+' || Peek() == '-') ++at_;
    if (SkipDigits() == 0) at_ = mark;
  }

  Status ReadArray(JsonValue* value, int depth) {
    value->kind = Kind::kArray;
    ++at_;
    SkipBlanks();
    if (Take("]")) return absl::OkStatus();
    while (true) {
      value->items.emplace_back();
      BELAY_RETURN_IF_ERROR(ReadValue(&value->items.back(), depth + 1));
      SkipBlanks();
      if (Take("]")) return absl::OkStatus();
      if (!Take(",")) return Error("expected ',' or ']'");
    }
  }

  Status ReadObject(JsonValue* value, int depth) {
    value->kind = Kind::kObject;
    ++at_;
    SkipBlanks();
    if (Take("}")) return absl::OkStatus();
    std::unordered_map<std::string, size_t> place;
    while (true) {
      SkipBlanks();
      if (Peek() != '"') return Error("expected a key in double quotes");
      std::string key;
      BELAY_RETURN_IF_ERROR(ReadString(&key));
      SkipBlanks();
      if (!Take(":")) return Error("expected ':'");
      JsonValue member;
      BELAY_RETURN_IF_ERROR(ReadValue(&member, depth + 1));
      const auto [found, is_new] = place.emplace(key, value->members.size());
      if (is_new) {
        value->members.push_back({std::move(key), std::move(member)});
      } else {
        value->members[found->second].value = std::move(member);
      }
      SkipBlanks();
      if (Take("}")) return absl::OkStatus();
      if (!Take(",")) return Error("expected ',' or '}'");
    }
  }

  Status ReadString(std::string* out) {
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        ++at_;
        return absl::OkStatus();
      }
      if (static_cast<unsigned char>(c) < 0x20) {
        return Error("a control character inside a string");
      }
      if (c == '\\') {
        BELAY_RETURN_IF_ERROR(ReadEscape(out));
      } else {
        out->push_back(c);
        ++at_;
      }
    }
    return Error("a string without its end");
  }

  Status ReadEscape(std::string* out) {
    static constexpr std::string_view kFrom = "\"\\/bfnrt";
    static constexpr std::string_view kTo = "\"\\/\b\f\n\r\t";
    ++at_;
    const char c = Peek();
    if (c == 'u') return ReadUnicodeEscape(out);
    const size_t found = kFrom.find(c);
    if (at_ >= text_.size() || found == std::string_view::npos) {
      return Error("an unknown escape");
    }
    out->push_back(kTo[found]);
    ++at_;
    return absl::OkStatus();
  }

  // The four hex digits at `begin`, or -1.
  int HexQuad(size_t begin) const {
    if (begin + 4 > text_.size()) return -1;
    int value = 0;
    const char* first = text_.data() + begin;
    const auto [end, error] = std::from_chars(first, first + 4, value, 16);
    const bool ok = error == std::errc() && end == first + 4 && *first != '-';
    return ok ? value : -1;
  }

  Status ReadUnicodeEscape(std::string* out) {
    int code = HexQuad(at_ + 1);
    if (code < 0) return Error("\\u without four hex digits");
    at_ += 5;
    if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
      const int low = HexQuad(at_ + 2);
      if (low >= 0xDC00 && low < 0xE000) {
        at_ += 6;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
    }
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
    AppendUtf8(static_cast<uint32_t>(code), out);
    return absl::OkStatus();
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

StatusOr<JsonValue> ParseJson(std::string_view text) {
  const size_t bad = FindInvalidUtf8(text);
  if (bad != std::string_view::npos) {
    return MakeError(kChatBadJson, {.where = "byte " + std::to_string(bad),
                                    .what = "not UTF-8",
                                    .expected = "",
                                    .got = ""});
  }
  return Reader(text).ReadAll();
}

}  // namespace belay::text
