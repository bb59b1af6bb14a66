// SPDX-License-Identifier: Apache-2.0
#include "server/api/fields.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/error_ids.h"

namespace belay::server {
namespace {

using Kind = text::JsonValue::Kind;

// What was sent, short enough for a message.
std::string Shown(const text::JsonValue& json) {
  constexpr size_t kMax = 60;
  std::string text = text::DumpJson(json);
  if (text.size() <= kMax) return text;
  return json.KindName();
}

std::string RangeText(const std::string& kind, const std::string& low,
                      const std::string& high) {
  return kind + " in [" + low + ", " + high + "]";
}

std::string Plain(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::optional<double> NumberOf(const text::JsonValue& json) {
  if (json.kind != Kind::kNumber) return std::nullopt;
  double value = 0;
  const char* end = json.text.data() + json.text.size();
  const auto [stop, error] = std::from_chars(json.text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

std::optional<int64_t> IntegerOf(const text::JsonValue& json) {
  if (json.kind != Kind::kNumber) return std::nullopt;
  int64_t whole = 0;
  const char* end = json.text.data() + json.text.size();
  const auto [stop, error] = std::from_chars(json.text.data(), end, whole);
  if (error == std::errc() && stop == end) return whole;
  const std::optional<double> value = NumberOf(json);
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!value || std::abs(*value) > kExact || std::trunc(*value) != *value) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*value);
}

Fields::Fields(const text::JsonValue& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json_.is_object()) Fail("", "an object", json_.KindName());
}

std::string Fields::Place(std::string_view name) const {
  if (where_.empty()) return std::string(name);
  if (name.empty()) return where_;
  return where_ + "." + std::string(name);
}

const text::JsonValue* Fields::Take(std::string_view name) {
  known_.emplace(name);
  const text::JsonValue* value = json_.Find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void Fields::Fail(std::string_view name, std::string expected,
                  std::string got) {
  Fail(MakeError(kApiBadField, {.where = Place(name),
                                .what = "",
                                .expected = std::move(expected),
                                .got = std::move(got)}));
}

void Fields::Fail(const Status& error) {
  if (status_.ok()) status_ = error;
}

std::optional<double> Fields::Number(std::string_view name, double low,
                                     double high) {
  const text::JsonValue* json = Take(name);
  if (json == nullptr) return std::nullopt;
  const std::optional<double> value = NumberOf(*json);
  if (value && *value >= low && *value <= high) return value;
  Fail(name, RangeText("a number", Plain(low), Plain(high)), Shown(*json));
  return std::nullopt;
}

std::optional<int64_t> Fields::Integer(std::string_view name, int64_t low,
                                       int64_t high) {
  const text::JsonValue* json = Take(name);
  if (json == nullptr) return std::nullopt;
  const std::optional<int64_t> value = IntegerOf(*json);
  if (value && *value >= low && *value <= high) return value;
  Fail(name,
       RangeText("a whole number", std::to_string(low), std::to_string(high)),
       Shown(*json));
  return std::nullopt;
}

std::optional<bool> Fields::Bool(std::string_view name) {
  const text::JsonValue* json = Take(name);
  if (json == nullptr) return std::nullopt;
  if (json->kind == Kind::kBool) return json->boolean;
  Fail(name, "true or false", Shown(*json));
  return std::nullopt;
}

std::optional<std::string> Fields::String(std::string_view name) {
  const text::JsonValue* json = Take(name);
  if (json == nullptr) return std::nullopt;
  if (json->is_string()) return json->text;
  Fail(name, "a string", Shown(*json));
  return std::nullopt;
}

std::vector<std::string> Fields::Unknown() const {
  std::vector<std::string> names;
  for (const auto& member : json_.members) {
    if (!known_.contains(member.name)) names.push_back(member.name);
  }
  return names;
}

}  // namespace belay::server
