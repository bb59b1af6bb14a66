// SPDX-License-Identifier: Apache-2.0
// JSON as Python's json module reads and writes it.
//
// The chat encoding of DeepSeek-V4 is defined by a Python program: tool
// schemas and call arguments reach the model as json.dumps(value,
// ensure_ascii=False) prints json.loads(text). A general library differs in
// what the model then sees: integers beyond 64 bits, 1e16 against 1e+16, NaN,
// the separators. Source of each rule: Lib/json of CPython 3.11.
#ifndef BELAY_TEXT_CHAT_JSON_H_
#define BELAY_TEXT_CHAT_JSON_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belay::text {

struct JsonMember;

// One JSON value. Plain data: what a kind does not use stays empty.
struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool boolean = false;
  // kString: the characters, UTF-8. kNumber: as Python prints it: integers of
  // any length, floats as repr(), NaN, Infinity, -Infinity.
  std::string text;
  std::vector<JsonValue> items;     // kArray
  std::vector<JsonMember> members;  // kObject, in order

  static JsonValue Null();
  static JsonValue Bool(bool value);
  static JsonValue Integer(long long value);
  static JsonValue String(std::string value);
  static JsonValue Array(std::vector<JsonValue> items);
  static JsonValue Object(std::vector<JsonMember> members);

  bool is_null() const { return kind == Kind::kNull; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }

  // The member `key` of an object, or null when there is none or this is no
  // object. The pointer lives as long as this value.
  const JsonValue* Find(std::string_view key) const;

  // bool(value) in Python: false for null, false, 0, "", [] and {}.
  bool Truthy() const;

  // "null", "bool", "number", "string", "array", "object": for messages.
  const char* KindName() const;
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

inline JsonValue JsonValue::Null() { return {}; }

// Arrays and objects may be nested this deep, which is also what keeps the
// recursion over them inside any thread's stack.
inline constexpr int kMaxJsonDepth = 400;

// Reads one JSON text (blanks around it are allowed). A key that comes twice
// keeps its first place and its last value, as in a Python dict. A surrogate
// without its partner becomes U+FFFD (Python keeps it and then cannot encode
// the prompt); bytes that are not UTF-8 are refused.
// Errors: CHAT-001 with the byte offset in `where`.
StatusOr<JsonValue> ParseJson(std::string_view text);

// json.dumps(value, ensure_ascii=False): ", " and ": " as separators, keys in
// order, only quote, backslash and controls below 0x20 escaped.
std::string DumpJson(const JsonValue& value);

// Appends `text` as the inside of a JSON string, without the quotes; the same
// escapes as DumpJson. Byte by byte, so that a text may come in pieces.
void AppendJsonEscaped(std::string_view text, std::string* out);

// repr(float) of a finite or infinite double.
std::string PythonFloatRepr(double value);

}  // namespace belay::text

#endif  // BELAY_TEXT_CHAT_JSON_H_
