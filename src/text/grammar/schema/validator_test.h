// SPDX-License-Identifier: Apache-2.0
// A small validator of JSON Schema for tests. It shares nothing with the
// compiler: nlohmann's values, std::regex, and the rules of draft 2020-12.
#ifndef BELAY_TEXT_GRAMMAR_SCHEMA_VALIDATOR_TEST_H_
#define BELAY_TEXT_GRAMMAR_SCHEMA_VALIDATOR_TEST_H_

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

namespace belay::text {

class Validator {
 public:
  using Json = nlohmann::json;
  explicit Validator(const Json& document) : document_(document) {}

  bool IsValid(const Json& value) const { return Check(document_, value); }

 private:
  static size_t CountCharacters(const std::string& text) {
    size_t n = 0;
    for (const char c : text)
      n += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
    return n;
  }

  static bool IsType(const std::string& type, const Json& value) {
    if (type == "null") return value.is_null();
    if (type == "boolean") return value.is_boolean();
    if (type == "string") return value.is_string();
    if (type == "array") return value.is_array();
    if (type == "object") return value.is_object();
    if (type == "number") return value.is_number();
    return value.is_number() &&
           std::floor(value.get<double>()) == value.get<double>();
  }

  bool Check(const Json& schema, const Json& value) const {
    if (schema.is_boolean()) return schema.get<bool>();
    if (schema.contains("$ref")) {
      const auto ref = schema["$ref"].get<std::string>();
      return Check(document_.at(Json::json_pointer(ref.substr(1))), value);
    }
    return CheckType(schema, value) && CheckCombined(schema, value) &&
           CheckNumber(schema, value) && CheckString(schema, value) &&
           CheckArray(schema, value) && CheckObject(schema, value);
  }

  static bool CheckType(const Json& schema, const Json& value) {
    if (!schema.contains("type")) return true;
    const Json& type = schema["type"];
    if (type.is_string()) return IsType(type, value);
    for (const Json& one : type) {
      if (IsType(one, value)) return true;
    }
    return false;
  }

  bool CheckCombined(const Json& schema, const Json& value) const {
    if (schema.contains("const") && schema["const"] != value) return false;
    if (schema.contains("enum")) {
      bool found = false;
      for (const Json& one : schema["enum"]) found |= one == value;
      if (!found) return false;
    }
    int n_any = 0;
    int n_one = 0;
    for (const Json& part : schema.value("anyOf", Json::array())) {
      n_any += Check(part, value);
    }
    for (const Json& part : schema.value("oneOf", Json::array())) {
      n_one += Check(part, value);
    }
    for (const Json& part : schema.value("allOf", Json::array())) {
      if (!Check(part, value)) return false;
    }
    return (!schema.contains("anyOf") || n_any > 0) &&
           (!schema.contains("oneOf") || n_one == 1);
  }

  static bool CheckNumber(const Json& schema, const Json& value) {
    if (!value.is_number()) return true;
    const auto v = value.get<double>();
    const auto bound = [&](const char* name, double none) {
      return schema.contains(name) ? schema[name].get<double>() : none;
    };
    return v >= bound("minimum", -INFINITY) &&
           v <= bound("maximum", INFINITY) &&
           v > bound("exclusiveMinimum", -INFINITY) &&
           v < bound("exclusiveMaximum", INFINITY);
  }

  static bool CheckString(const Json& schema, const Json& value) {
    if (!value.is_string()) return true;
    const auto& text = value.get_ref<const std::string&>();
    const size_t n = CountCharacters(text);
    if (n < schema.value("minLength", size_t{0})) return false;
    if (n > schema.value("maxLength", size_t{1} << 30)) return false;
    return !schema.contains("pattern") ||
           std::regex_search(text,
                             std::regex(schema["pattern"].get<std::string>()));
  }

  bool CheckArray(const Json& schema, const Json& value) const {
    if (!value.is_array()) return true;
    if (value.size() < schema.value("minItems", size_t{0})) return false;
    if (value.size() > schema.value("maxItems", size_t{1} << 30)) return false;
    const Json first = schema.value("prefixItems", Json::array());
    for (size_t i = 0; i < value.size(); ++i) {
      if (i < first.size()) {
        if (!Check(first[i], value[i])) return false;
      } else if (schema.contains("items") &&
                 !Check(schema["items"], value[i])) {
        return false;
      }
    }
    return true;
  }

  bool CheckObject(const Json& schema, const Json& value) const {
    if (!value.is_object()) return true;
    for (const Json& name : schema.value("required", Json::array())) {
      if (!value.contains(name.get<std::string>())) return false;
    }
    const Json properties = schema.value("properties", Json::object());
    for (const auto& [name, member] : value.items()) {
      if (properties.contains(name)) {
        if (!Check(properties[name], member)) return false;
      } else if (schema.contains("additionalProperties") &&
                 !Check(schema["additionalProperties"], member)) {
        return false;
      }
    }
    return true;
  }

  const Json& document_;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_SCHEMA_VALIDATOR_TEST_H_
