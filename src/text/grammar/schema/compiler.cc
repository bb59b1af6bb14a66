// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/schema/compiler.h"

#include <algorithm>

#include "base/error_ids.h"
#include "text/grammar/number_range.h"
#include "text/grammar/pattern/pattern.h"

namespace belay::text {
namespace {

// Longer texts and lists are never needed to be valid; counting them takes a
// node each.
constexpr uint32_t kMaxCharacters = 16384;
constexpr uint32_t kMaxItems = 4096;
constexpr int kMaxAliases = 32;

const JsonValue& True() {
  static const JsonValue value = JsonValue::Bool(true);
  return value;
}

// A maximum beyond the limit becomes the limit, a minimum an error.
StatusOr<LengthRange> ReadLength(const SchemaPlace& place,
                                 std::string_view min_name,
                                 std::string_view max_name, uint32_t limit) {
  BELAY_ASSIGN_OR_RETURN(const auto min, SchemaReader::Count(place, min_name));
  BELAY_ASSIGN_OR_RETURN(const auto max, SchemaReader::Count(place, max_name));
  LengthRange range{.min = min.value_or(0), .max = max};
  if (range.min > limit) {
    return MakeError(kGramTooLarge,
                     {.where = place.path + "/" + std::string(min_name),
                      .what = "",
                      .expected = "<= " + std::to_string(limit),
                      .got = std::to_string(range.min)});
  }
  if (range.max) range.max = std::min(*range.max, limit);
  return range;
}

StatusOr<std::optional<NumberBound>> ReadBound(const SchemaPlace& place,
                                               std::string_view inclusive,
                                               std::string_view exclusive,
                                               int tighter) {
  std::optional<NumberBound> bound;
  for (const std::string_view keyword : {inclusive, exclusive}) {
    const JsonValue* value = place.schema->Find(keyword);
    if (value == nullptr) continue;
    const auto number = value->kind == JsonValue::Kind::kNumber
                            ? ParseDecimal(value->text)
                            : std::nullopt;
    if (!number) {
      return SchemaReader::WrongValue(place, keyword,
                                      "a number of at most 40 digits");
    }
    const bool is_exclusive = keyword == exclusive;
    const int order = bound ? Compare(*number, bound->value) * tighter : 1;
    if (order > 0 || (order == 0 && is_exclusive)) {
      bound = NumberBound{.value = *number, .exclusive = is_exclusive};
    }
  }
  return bound;
}

// Members by name; an empty object when there are none.
StatusOr<const JsonValue*> ReadObject(const SchemaPlace& place,
                                      std::string_view keyword) {
  const JsonValue* value = place.schema->Find(keyword);
  if (value != nullptr && !value->is_object()) {
    return SchemaReader::WrongValue(place, keyword, "an object of schemas");
  }
  return value;
}

}  // namespace

Status SchemaCompiler::CheckSize(const JsonValue& document) {
  constexpr size_t kMaxValues = 20000;
  std::vector<const JsonValue*> todo = {&document};
  for (size_t n = 0; !todo.empty(); ++n) {
    if (n == kMaxValues) {
      return MakeError(
          kGramTooLarge,
          {.where = "#",
           .what = "",
           .expected = "<= " + std::to_string(kMaxValues) + " values",
           .got = ""});
    }
    const JsonValue& value = *todo.back();
    todo.pop_back();
    for (const JsonValue& item : value.items) todo.push_back(&item);
    for (const JsonMember& member : value.members) {
      todo.push_back(&member.value);
    }
  }
  return absl::OkStatus();
}

GrammarRule SchemaCompiler::RuleOf(const SchemaPlace& place) {
  const auto found = known_.find(place.schema);
  if (found != known_.end()) return found->second;
  const GrammarRule rule = rules_.builder().NewRule();
  known_[place.schema] = rule;
  todo_.emplace_back(place, rule);
  return rule;
}

Status SchemaCompiler::Finish() {
  while (!todo_.empty() && !rules_.builder().is_full()) {
    const auto [place, rule] = todo_.back();
    todo_.pop_back();
    BELAY_RETURN_IF_ERROR(Fill(place, rule));
  }
  return absl::OkStatus();
}

Status SchemaCompiler::Fill(const SchemaPlace& place, GrammarRule rule) {
  GrammarBuilder& builder = rules_.builder();
  const Ends ends = {builder.start(rule), builder.end(rule)};
  BELAY_ASSIGN_OR_RETURN(const SchemaShape shape, reader_.Read(place));
  switch (shape.kind) {
    case SchemaShape::Kind::kNever:
      return absl::OkStatus();
    case SchemaShape::Kind::kSame:
    case SchemaShape::Kind::kEither:
      for (const SchemaPlace& part : shape.parts) {
        builder.Call(ends.from, RuleOf(part), ends.to);
      }
      return absl::OkStatus();
    case SchemaShape::Kind::kValues: {
      std::vector<std::string> texts;
      for (const JsonValue* value : shape.values) {
        texts.push_back(EscapeBars(DumpJson(*value)));
      }
      rules_.AddOneOf(ends.from, std::move(texts), ends.to);
      return absl::OkStatus();
    }
    case SchemaShape::Kind::kTyped:
      if (shape.is_free) {
        builder.Call(ends.from, rules_.AnyValue(), ends.to);
        return absl::OkStatus();
      }
      return AddTyped(place, shape.types, ends);
  }
  return absl::OkStatus();
}

Status SchemaCompiler::AddTyped(const SchemaPlace& place, TypeSet types,
                                Ends ends) {
  GrammarBuilder& builder = rules_.builder();
  if ((types & kNull) != 0) rules_.AddOneOf(ends.from, {"null"}, ends.to);
  if ((types & kBoolean) != 0) {
    rules_.AddOneOf(ends.from, {"true", "false"}, ends.to);
  }
  if ((types & kWholeNumber) != 0) {
    const bool integer = (types & kBrokenNumber) == 0;
    BELAY_ASSIGN_OR_RETURN(const GrammarRule rule, NumberRule(place, integer));
    builder.Call(ends.from, rule, ends.to);
  }
  if ((types & kString) != 0) {
    const GrammarNode inside = builder.Literal(ends.from, "\"");
    const GrammarNode after = builder.NewNode();
    BELAY_RETURN_IF_ERROR(
        AddString(place, TextForm::kJsonString, {inside, after}));
    builder.Bytes(after, '"', '"', ends.to);
  }
  if ((types & kArray) != 0) {
    BELAY_ASSIGN_OR_RETURN(const GrammarRule rule, ArrayRule(place));
    builder.Call(ends.from, rule, ends.to);
  }
  if ((types & kObject) != 0) {
    BELAY_ASSIGN_OR_RETURN(const GrammarRule rule, ObjectRule(place));
    builder.Call(ends.from, rule, ends.to);
  }
  return absl::OkStatus();
}

Status SchemaCompiler::AddString(const SchemaPlace& place, TextForm form,
                                 Ends ends) {
  BELAY_ASSIGN_OR_RETURN(
      const LengthRange length,
      ReadLength(place, "minLength", "maxLength", kMaxCharacters));
  const JsonValue* pattern = place.schema->Find("pattern");
  const JsonValue* format = place.schema->Find("format");
  for (const auto& [value, name] :
       {std::pair{pattern, "pattern"}, {format, "format"}}) {
    if (value != nullptr && !value->is_string()) {
      return SchemaReader::WrongValue(place, name, "a string");
    }
  }
  const auto refuse_format = [&](std::string what) {
    return MakeError(kGramPattern, {.where = place.path + "/format",
                                    .what = std::move(what),
                                    .expected = "",
                                    .got = format->text.substr(0, 80)});
  };
  if (pattern == nullptr && format == nullptr) {
    rules_.AddText(ends.from, form, length, ends.to);
    return absl::OkStatus();
  }
  if (pattern != nullptr && format != nullptr) {
    return refuse_format("beside a pattern");
  }
  std::string_view text;
  if (pattern != nullptr) {
    text = pattern->text;
  } else {
    const auto known = PatternOfFormat(format->text);
    if (!known) return refuse_format("not supported");
    text = *known;
  }
  BELAY_ASSIGN_OR_RETURN(const PatternNfa nfa,
                         CompilePattern(text, place.path));
  rules_.AddMatching(ends.from, nfa, form, length, ends.to);
  return absl::OkStatus();
}

StatusOr<GrammarRule> SchemaCompiler::NumberRule(const SchemaPlace& place,
                                                 bool integer) {
  NumberRange range;
  range.integer = integer;
  BELAY_ASSIGN_OR_RETURN(range.low,
                         ReadBound(place, "minimum", "exclusiveMinimum", 1));
  BELAY_ASSIGN_OR_RETURN(range.high,
                         ReadBound(place, "maximum", "exclusiveMaximum", -1));
  if (!range.low && !range.high) return rules_.AnyNumber(integer);
  return AddNumbers(rules_.builder(), range);
}

StatusOr<GrammarRule> SchemaCompiler::ArrayRule(const SchemaPlace& place) {
  BELAY_ASSIGN_OR_RETURN(const LengthRange length,
                         ReadLength(place, "minItems", "maxItems", kMaxItems));
  std::vector<GrammarRule> first;
  if (const JsonValue* list = place.schema->Find("prefixItems")) {
    if (!list->is_array()) {
      return SchemaReader::WrongValue(place, "prefixItems",
                                      "a list of schemas");
    }
    for (size_t i = 0; i < list->items.size(); ++i) {
      first.push_back(
          RuleOf({.schema = &list->items[i],
                  .path = place.path + "/prefixItems/" + std::to_string(i)}));
    }
  }
  const JsonValue* items = place.schema->Find("items");
  if (items != nullptr && items->is_array()) {
    return SchemaReader::WrongValue(place, "items",
                                    "a schema (a list is prefixItems)");
  }
  const GrammarRule rest =
      items == nullptr
          ? rules_.AnyValue()
          : RuleOf({.schema = items, .path = place.path + "/items"});
  return rules_.Array(first, rest, length);
}

StatusOr<SchemaCompiler::Members> SchemaCompiler::MembersOf(
    const SchemaPlace& place) const {
  Members members;
  const JsonValue* additional = place.schema->Find("additionalProperties");
  const SchemaPlace others = {
      .schema = additional != nullptr ? additional : &True(),
      .path = place.path + "/additionalProperties"};
  if (others.schema->kind != JsonValue::Kind::kBool || others.schema->boolean) {
    members.additional = others;
  }
  BELAY_ASSIGN_OR_RETURN(const JsonValue* properties,
                         ReadObject(place, "properties"));
  std::unordered_map<std::string_view, size_t> index;
  if (properties != nullptr) {
    for (const JsonMember& property : properties->members) {
      index[property.name] = members.list.size();
      members.list.push_back(
          {.name = property.name,
           .value = {.schema = &property.value,
                     .path = place.path + "/properties/" + property.name},
           .required = false});
    }
  }
  const JsonValue* required = place.schema->Find("required");
  if (required == nullptr) return members;
  if (!required->is_array()) {
    return SchemaReader::WrongValue(place, "required", "a list of names");
  }
  for (const JsonValue& name : required->items) {
    if (!name.is_string()) {
      return SchemaReader::WrongValue(place, "required", "a list of names");
    }
    const auto [it, is_new] = index.try_emplace(name.text, members.list.size());
    if (is_new) {
      // Not among the properties: valid for additionalProperties, or never.
      members.list.push_back(
          {.name = name.text, .value = others, .required = true});
    }
    members.list[it->second].required = true;
  }
  return members;
}

StatusOr<GrammarRule> SchemaCompiler::ObjectRule(const SchemaPlace& place) {
  BELAY_ASSIGN_OR_RETURN(const Members members, MembersOf(place));
  std::vector<ObjectMember> list;
  for (const Member& member : members.list) {
    list.push_back({.name = member.name,
                    .value = RuleOf(member.value),
                    .required = member.required});
  }
  std::optional<GrammarRule> additional;
  if (members.additional) additional = RuleOf(*members.additional);
  return rules_.Object(list, additional);
}

namespace {

void AddValuesInTwoForms(JsonRules& rules,
                         const std::vector<const JsonValue*>& values,
                         const SchemaCompiler::TwoForms& forms) {
  std::vector<std::string> plain;
  std::vector<std::string> json;
  for (const JsonValue* value : values) {
    // Plain text could not have a bar as an escape.
    std::string as_json = EscapeBars(DumpJson(*value));
    if (value->is_string() && as_json == DumpJson(*value)) {
      plain.push_back(value->text);
    } else {
      json.push_back(std::move(as_json));
    }
  }
  rules.AddOneOf(forms.plain_from, std::move(plain), forms.plain_to);
  rules.AddOneOf(forms.json_from, std::move(json), forms.json_to);
}

}  // namespace

Status SchemaCompiler::AddInTwoForms(const SchemaPlace& place,
                                     const TwoForms& forms, int depth) {
  if (depth > kMaxAliases) {
    return MakeError(kGramTooLarge,
                     {.where = place.path,
                      .what = "",
                      .expected = "at most 32 schemas that stand for another",
                      .got = ""});
  }
  GrammarBuilder& builder = rules_.builder();
  BELAY_ASSIGN_OR_RETURN(const SchemaShape shape, reader_.Read(place));
  switch (shape.kind) {
    case SchemaShape::Kind::kNever:
      return absl::OkStatus();
    case SchemaShape::Kind::kSame:
    case SchemaShape::Kind::kEither:
      for (const SchemaPlace& part : shape.parts) {
        BELAY_RETURN_IF_ERROR(AddInTwoForms(part, forms, depth + 1));
      }
      return absl::OkStatus();
    case SchemaShape::Kind::kValues:
      AddValuesInTwoForms(rules_, shape.values, forms);
      return absl::OkStatus();
    case SchemaShape::Kind::kTyped:
      break;
  }
  if ((shape.types & kString) != 0) {
    BELAY_RETURN_IF_ERROR(
        AddString(place, TextForm::kPlain, {forms.plain_from, forms.plain_to}));
  }
  const auto others =
      static_cast<TypeSet>(shape.types & static_cast<TypeSet>(~kString));
  const GrammarRule rule = builder.NewRule();
  builder.Call(forms.json_from, rule, forms.json_to);
  return AddTyped(place, others, {builder.start(rule), builder.end(rule)});
}

}  // namespace belay::text
