// SPDX-License-Identifier: Apache-2.0
#include "text/chat/json.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <utility>

namespace belay::text {
namespace {

using Kind = JsonValue::Kind;

void Dump(const JsonValue& value, std::string* out);

void DumpString(std::string_view text, std::string* out) {
  out->push_back('"');
  AppendJsonEscaped(text, out);
  out->push_back('"');
}

void DumpMembers(const JsonValue& value, std::string* out) {
  const char* separator = "";
  for (const auto& [key, member] : value.members) {
    out->append(separator);
    DumpString(key, out);
    out->append(": ");
    Dump(member, out);
    separator = ", ";
  }
}

void Dump(const JsonValue& value, std::string* out) {
  switch (value.kind) {
    case Kind::kNull:
      out->append("null");
      return;
    case Kind::kBool:
      out->append(value.boolean ? "true" : "false");
      return;
    case Kind::kNumber:
      out->append(value.text);
      return;
    case Kind::kString:
      DumpString(value.text, out);
      return;
    case Kind::kArray: {
      out->push_back('[');
      const char* separator = "";
      for (const JsonValue& item : value.items) {
        out->append(separator);
        Dump(item, out);
        separator = ", ";
      }
      out->push_back(']');
      return;
    }
    case Kind::kObject:
      out->push_back('{');
      DumpMembers(value, out);
      out->push_back('}');
      return;
  }
}

}  // namespace

JsonValue JsonValue::Bool(bool value) {
  JsonValue result;
  result.kind = Kind::kBool;
  result.boolean = value;
  return result;
}

JsonValue JsonValue::Integer(long long value) {
  JsonValue result;
  result.kind = Kind::kNumber;
  result.text = std::to_string(value);
  return result;
}

JsonValue JsonValue::String(std::string value) {
  JsonValue result;
  result.kind = Kind::kString;
  result.text = std::move(value);
  return result;
}

JsonValue JsonValue::Array(std::vector<JsonValue> items) {
  JsonValue result;
  result.kind = Kind::kArray;
  result.items = std::move(items);
  return result;
}

JsonValue JsonValue::Object(std::vector<JsonMember> members) {
  JsonValue result;
  result.kind = Kind::kObject;
  result.members = std::move(members);
  return result;
}

const JsonValue* JsonValue::Find(std::string_view key) const {
  for (const auto& [name, member] : members) {
    if (name == key) return &member;
  }
  return nullptr;
}

bool JsonValue::Truthy() const {
  switch (kind) {
    case Kind::kNull:
      return false;
    case Kind::kBool:
      return boolean;
    case Kind::kNumber:
      return text != "0" && text != "0.0" && text != "-0.0";
    case Kind::kString:
      return !text.empty();
    case Kind::kArray:
      return !items.empty();
    case Kind::kObject:
      return !members.empty();
  }
  return false;
}

const char* JsonValue::KindName() const {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBool:
      return "bool";
    case Kind::kNumber:
      return "number";
    case Kind::kString:
      return "string";
    case Kind::kArray:
      return "array";
    case Kind::kObject:
      return "object";
  }
  return "";
}

std::string DumpJson(const JsonValue& value) {
  std::string out;
  Dump(value, &out);
  return out;
}

void AppendJsonEscaped(std::string_view text, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  static constexpr std::string_view kFrom = "\"\\\n\r\t\f\b";
  static constexpr std::string_view kTo = "\"\\nrtfb";
  for (const char c : text) {
    const size_t found = kFrom.find(c);
    if (found != std::string_view::npos) {
      out->push_back('\\');
      out->push_back(kTo[found]);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out->append("\\u00");
      out->push_back(kHex[(c >> 4) & 15]);
      out->push_back(kHex[c & 15]);
    } else {
      out->push_back(c);
    }
  }
}

std::string PythonFloatRepr(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  // The shortest digits that read back as the same value: d.ddde+XX.
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                    std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(result.ptr - buffer));
  std::string out;
  if (text.front() == '-') {
    out = "-";
    text.remove_prefix(1);
  }
  const size_t mark = text.find('e');
  const int exponent = std::atoi(std::string(text.substr(mark + 1)).c_str());
  std::string digits(1, text[0]);
  if (mark > 2) digits += text.substr(2, mark - 2);
  // float.__repr__ leaves the plain form below 1e-4 and from 1e16 on.
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (digits.size() > 1) out += "." + digits.substr(1);
    const std::string power = std::to_string(std::abs(exponent));
    out += exponent < 0 ? "e-" : "e+";
    return out + (power.size() < 2 ? "0" : "") + power;
  }
  if (exponent < 0) {
    return out + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') +
           digits;
  }
  const size_t whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return out + digits + std::string(whole - digits.size(), '0') + ".0";
  }
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

}  // namespace belay::text
