// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/schema/shape.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

#include "base/error_ids.h"
#include "text/grammar/number_range.h"

namespace belay::text {
namespace {

constexpr size_t kMaxOneOf = 256;

enum class Use : uint8_t {
  kNote,     // says nothing about what is valid
  kCombine,  // stands for the whole schema
  kType,
  kOfType,  // about the values of `types`
};
struct Keyword {
  std::string_view name;
  Use use;
  TypeSet types = 0;
};
constexpr TypeSet kNumbers = kWholeNumber | kBrokenNumber;
constexpr std::array<Keyword, 39> kKeywords = {{
    {"title", Use::kNote},
    {"description", Use::kNote},
    {"default", Use::kNote},
    {"example", Use::kNote},
    {"examples", Use::kNote},
    {"deprecated", Use::kNote},
    {"readOnly", Use::kNote},
    {"writeOnly", Use::kNote},
    {"contentEncoding", Use::kNote},
    {"contentMediaType", Use::kNote},
    {"discriminator", Use::kNote},
    {"strict", Use::kNote},
    {"$comment", Use::kNote},
    {"$schema", Use::kNote},
    {"$id", Use::kNote},
    {"$defs", Use::kNote},
    {"definitions", Use::kNote},
    {"$ref", Use::kCombine},
    {"anyOf", Use::kCombine},
    {"oneOf", Use::kCombine},
    {"allOf", Use::kCombine},
    {"enum", Use::kCombine},
    {"const", Use::kCombine},
    {"type", Use::kType},
    {"properties", Use::kOfType, kObject},
    {"required", Use::kOfType, kObject},
    {"additionalProperties", Use::kOfType, kObject},
    {"items", Use::kOfType, kArray},
    {"prefixItems", Use::kOfType, kArray},
    {"minItems", Use::kOfType, kArray},
    {"maxItems", Use::kOfType, kArray},
    {"minLength", Use::kOfType, kString},
    {"maxLength", Use::kOfType, kString},
    {"pattern", Use::kOfType, kString},
    {"format", Use::kOfType, kString},
    {"minimum", Use::kOfType, kNumbers},
    {"maximum", Use::kOfType, kNumbers},
    {"exclusiveMinimum", Use::kOfType, kNumbers},
    {"exclusiveMaximum", Use::kOfType, kNumbers},
}};

const Keyword* FindKeyword(std::string_view name) {
  for (const Keyword& keyword : kKeywords) {
    if (keyword.name == name) return &keyword;
  }
  return nullptr;
}

constexpr std::array<std::pair<std::string_view, TypeSet>, 7> kTypeNames = {{
    {"null", kNull},
    {"boolean", kBoolean},
    {"integer", kWholeNumber},
    {"number", kNumbers},
    {"string", kString},
    {"array", kArray},
    {"object", kObject},
}};

StatusOr<TypeSet> ReadTypes(const SchemaPlace& place, const JsonValue& type) {
  TypeSet types = 0;
  const auto add = [&](const JsonValue& name) {
    for (const auto& [known, set] : kTypeNames) {
      if (!name.is_string() || name.text != known) continue;
      types |= set;
      return true;
    }
    return false;
  };
  const bool ok = type.is_array() ? !type.items.empty() &&
                                        std::all_of(type.items.begin(),
                                                    type.items.end(), add)
                                  : add(type);
  if (!ok) {
    return SchemaReader::WrongValue(place, "type",
                                    "a type of JSON, or a list of them");
  }
  return types;
}

Status NotSupported(const SchemaPlace& place, std::string keyword,
                    std::string expected) {
  return MakeError(kGramKeyword, {.where = place.path,
                                  .what = "",
                                  .expected = std::move(expected),
                                  .got = std::move(keyword)});
}

// What the keywords of a schema are, before their values are read.
struct Overview {
  std::string_view combine;  // the only one of its kind
  bool has_type = false;
  std::string_view of_type;  // the last
  TypeSet types = 0;         // that of_type keywords are about
};

StatusOr<Overview> LookThrough(const SchemaPlace& place) {
  Overview seen;
  for (const JsonMember& member : place.schema->members) {
    const Keyword* keyword = FindKeyword(member.name);
    const bool off = member.name == "uniqueItems" &&
                     member.value.kind == JsonValue::Kind::kBool &&
                     !member.value.boolean;
    if (off) continue;
    if (keyword == nullptr) return NotSupported(place, member.name, "");
    switch (keyword->use) {
      case Use::kNote:
        break;
      case Use::kCombine:
        if (!seen.combine.empty()) {
          return NotSupported(
              place, std::string(seen.combine) + " beside " + member.name,
              "one of them");
        }
        seen.combine = keyword->name;
        break;
      case Use::kType:
        seen.has_type = true;
        break;
      case Use::kOfType:
        seen.of_type = keyword->name;
        seen.types |= keyword->types;
        break;
    }
  }
  const bool is_values = seen.combine == "enum" || seen.combine == "const";
  if (!seen.combine.empty() &&
      (!seen.of_type.empty() || (seen.has_type && !is_values))) {
    const std::string_view other =
        seen.of_type.empty() ? std::string_view("type") : seen.of_type;
    return NotSupported(
        place, std::string(seen.combine) + " beside " + std::string(other),
        "one of them");
  }
  return seen;
}

// A step of a JSON pointer (RFC 6901) in a URI fragment.
std::string Unescape(std::string_view step) {
  std::string plain;
  for (size_t i = 0; i < step.size(); ++i) {
    if (step[i] == '%' && i + 2 < step.size()) {
      plain += static_cast<char>(
          std::strtol(std::string(step.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      plain += step[i];
    }
  }
  std::string out;
  for (size_t i = 0; i < plain.size(); ++i) {
    const bool escape = plain[i] == '~' && i + 1 < plain.size() &&
                        (plain[i + 1] == '0' || plain[i + 1] == '1');
    out += escape ? (plain[++i] == '0' ? '~' : '/') : plain[i];
  }
  return out;
}

}  // namespace

TypeSet TypeOf(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return kNull;
    case JsonValue::Kind::kBool:
      return kBoolean;
    case JsonValue::Kind::kNumber: {
      const auto number = ParseDecimal(value.text);
      return number && number->fraction.empty() ? kWholeNumber : kBrokenNumber;
    }
    case JsonValue::Kind::kString:
      return kString;
    case JsonValue::Kind::kArray:
      return kArray;
    case JsonValue::Kind::kObject:
      return kObject;
  }
  return 0;
}

Status SchemaReader::WrongValue(const SchemaPlace& place,
                                std::string_view keyword,
                                std::string expected) {
  const JsonValue* value = place.schema->Find(keyword);
  return MakeError(
      kGramBadSchema,
      {.where = place.path + "/" + std::string(keyword),
       .what = "",
       .expected = std::move(expected),
       .got = value == nullptr ? "nothing" : DumpJson(*value).substr(0, 80)});
}

StatusOr<std::optional<uint32_t>> SchemaReader::Count(
    const SchemaPlace& place, std::string_view keyword) {
  const JsonValue* value = place.schema->Find(keyword);
  if (value == nullptr) return std::optional<uint32_t>();
  const auto number = value->kind == JsonValue::Kind::kNumber
                          ? ParseDecimal(value->text)
                          : std::nullopt;
  if (!number || number->negative || !number->fraction.empty()) {
    return WrongValue(place, keyword, "a whole number >= 0");
  }
  // More than any grammar can count.
  if (number->whole.size() > 9) return std::optional<uint32_t>(1000000000u);
  return std::optional<uint32_t>(
      static_cast<uint32_t>(std::stoul(number->whole)));
}

StatusOr<SchemaPlace> SchemaReader::Follow(const SchemaPlace& place,
                                           std::string_view ref) const {
  const auto lost = [&] {
    return MakeError(kGramBadRef,
                     {.where = place.path,
                      .what = "",
                      .expected = "#, or #/ and a path in the schema",
                      .got = std::string(ref.substr(0, 200))});
  };
  if (!ref.starts_with('#')) return lost();
  const JsonValue* at = &document_;
  std::string_view rest = ref.substr(1);
  while (!rest.empty()) {
    if (rest[0] != '/') return lost();
    rest.remove_prefix(1);
    const size_t end = std::min(rest.find('/'), rest.size());
    const std::string step = Unescape(rest.substr(0, end));
    rest.remove_prefix(end);
    if (at->is_array()) {
      const bool is_index =
          !step.empty() && step.size() < 9 &&
          step.find_first_not_of("0123456789") == std::string::npos;
      if (!is_index || std::stoul(step) >= at->items.size()) return lost();
      at = &at->items[std::stoul(step)];
    } else {
      at = at->Find(step);
    }
    if (at == nullptr) return lost();
  }
  return SchemaPlace{.schema = at, .path = std::string(ref)};
}

Status SchemaReader::ReadAlternatives(const SchemaPlace& place,
                                      std::string_view keyword,
                                      SchemaShape* shape) const {
  const JsonValue& list = *place.schema->Find(keyword);
  if (!list.is_array() || list.items.empty()) {
    return WrongValue(place, keyword, "a list of schemas");
  }
  if (keyword == "allOf" && list.items.size() > 1) {
    return NotSupported(place, "allOf", "one schema in it");
  }
  shape->kind = keyword == "allOf" ? SchemaShape::Kind::kSame
                                   : SchemaShape::Kind::kEither;
  for (size_t i = 0; i < list.items.size(); ++i) {
    shape->parts.push_back({.schema = &list.items[i],
                            .path = place.path + "/" + std::string(keyword) +
                                    "/" + std::to_string(i)});
  }
  if (keyword != "oneOf") return absl::OkStatus();
  // Every pair is compared.
  if (shape->parts.size() > kMaxOneOf) {
    return MakeError(kGramTooLarge,
                     {.where = place.path + "/oneOf",
                      .what = "",
                      .expected = "<= " + std::to_string(kMaxOneOf),
                      .got = std::to_string(shape->parts.size())});
  }
  for (size_t i = 0; i < shape->parts.size(); ++i) {
    for (size_t k = i + 1; k < shape->parts.size(); ++k) {
      if (AreDisjoint(shape->parts[i], shape->parts[k])) continue;
      return MakeError(kGramOneOf,
                       {.where = place.path + "/oneOf",
                        .what = "",
                        .expected = "schemas of which a value can fit only one",
                        .got = "numbers " + std::to_string(i) + " and " +
                               std::to_string(k)});
    }
  }
  return absl::OkStatus();
}

StatusOr<SchemaShape> SchemaReader::Read(const SchemaPlace& place) const {
  SchemaShape shape;
  const JsonValue& schema = *place.schema;
  if (schema.kind == JsonValue::Kind::kBool) {
    if (!schema.boolean) shape.kind = SchemaShape::Kind::kNever;
    return shape;
  }
  if (!schema.is_object()) {
    return MakeError(kGramBadSchema, {.where = place.path,
                                      .what = "",
                                      .expected = "an object, true or false",
                                      .got = schema.KindName()});
  }
  BELAY_ASSIGN_OR_RETURN(const Overview seen, LookThrough(place));
  if (const JsonValue* type = schema.Find("type")) {
    BELAY_ASSIGN_OR_RETURN(shape.types, ReadTypes(place, *type));
    shape.is_free = false;
  } else if (seen.types != 0) {
    shape.types = seen.types;
    shape.is_free = false;
  }
  if (seen.combine.empty()) return shape;
  const JsonValue& value = *schema.Find(seen.combine);
  if (seen.combine == "$ref") {
    if (!value.is_string()) return WrongValue(place, "$ref", "a string");
    shape.kind = SchemaShape::Kind::kSame;
    BELAY_ASSIGN_OR_RETURN(SchemaPlace target, Follow(place, value.text));
    shape.parts.push_back(std::move(target));
    return shape;
  }
  if (seen.combine == "enum" || seen.combine == "const") {
    shape.kind = SchemaShape::Kind::kValues;
    if (seen.combine == "enum" && !value.is_array()) {
      return WrongValue(place, "enum", "a list");
    }
    const auto add = [&](const JsonValue& one) {
      if ((TypeOf(one) & shape.types) != 0) shape.values.push_back(&one);
    };
    if (seen.combine == "const") {
      add(value);
    } else {
      std::for_each(value.items.begin(), value.items.end(), add);
    }
    return shape;
  }
  BELAY_RETURN_IF_ERROR(ReadAlternatives(place, seen.combine, &shape));
  return shape;
}

}  // namespace belay::text
