// SPDX-License-Identifier: Apache-2.0
// SchemaReader::AreDisjoint: may a value be valid for two schemas at once?
#include <algorithm>
#include <cstdlib>

#include "text/grammar/schema/shape.h"

namespace belay::text {
namespace {

constexpr int kMaxDepth = 16;  // of $ref and anyOf, one inside the other

// Equal as JSON Schema means it: 1 and 1.0 are.
bool IsSameValue(const JsonValue& a, const JsonValue& b) {
  if (a.kind == JsonValue::Kind::kNumber && b.kind == a.kind) {
    return std::strtod(a.text.c_str(), nullptr) ==
           std::strtod(b.text.c_str(), nullptr);
  }
  if (a.kind != b.kind || a.boolean != b.boolean || a.text != b.text ||
      a.items.size() != b.items.size() ||
      a.members.size() != b.members.size()) {
    return false;
  }
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!IsSameValue(a.items[i], b.items[i])) return false;
  }
  return std::all_of(
      a.members.begin(), a.members.end(), [&](const JsonMember& member) {
        const JsonValue* other = b.Find(member.name);
        return other != nullptr && IsSameValue(member.value, *other);
      });
}

}  // namespace

bool SchemaReader::Flatten(const SchemaPlace& place, int depth,
                           Flat* flat) const {
  if (depth > kMaxDepth || flat->typed.size() > 64 ||
      flat->values.size() > 1000) {
    return false;
  }
  // oneOf is looked at by its parts: read it as anyOf, or this would not end.
  const JsonValue* one_of =
      place.schema->is_object() ? place.schema->Find("oneOf") : nullptr;
  if (one_of != nullptr) {
    return std::all_of(one_of->items.begin(), one_of->items.end(),
                       [&](const JsonValue& part) {
                         return Flatten({&part, place.path}, depth + 1, flat);
                       });
  }
  const StatusOr<SchemaShape> shape = Read(place);
  if (!shape.ok()) return false;
  switch (shape->kind) {
    case SchemaShape::Kind::kNever:
      return true;
    case SchemaShape::Kind::kValues:
      flat->values.insert(flat->values.end(), shape->values.begin(),
                          shape->values.end());
      return true;
    case SchemaShape::Kind::kTyped:
      flat->typed.push_back(place);
      return true;
    case SchemaShape::Kind::kSame:
    case SchemaShape::Kind::kEither:
      return std::all_of(shape->parts.begin(), shape->parts.end(),
                         [&](const SchemaPlace& part) {
                           return Flatten(part, depth + 1, flat);
                         });
  }
  return false;
}

// Objects differ when a member that both must have cannot be the same, or when
// one must have a member that the other cannot.
bool SchemaReader::ObjectsDiffer(const JsonValue& names,
                                 const SchemaPlace& at_a,
                                 const SchemaPlace& at_b) const {
  const JsonValue* a_properties = at_a.schema->Find("properties");
  const JsonValue* b_properties = at_b.schema->Find("properties");
  const JsonValue* b_additional = at_b.schema->Find("additionalProperties");
  const bool b_is_closed = b_additional != nullptr &&
                           b_additional->kind == JsonValue::Kind::kBool &&
                           !b_additional->boolean;
  if (names.items.size() > 1000) return false;
  for (const JsonValue& name : names.items) {
    const JsonValue* in_b =
        b_properties != nullptr ? b_properties->Find(name.text) : nullptr;
    if (in_b == nullptr) {
      if (b_is_closed) return true;
      continue;
    }
    const JsonValue* in_a =
        a_properties != nullptr ? a_properties->Find(name.text) : nullptr;
    // Values that are fixed on both sides; a member that is missing in b would
    // do no harm only when b requires it, too.
    const JsonValue* b_required = at_b.schema->Find("required");
    const bool both_require =
        b_required != nullptr &&
        std::any_of(b_required->items.begin(), b_required->items.end(),
                    [&](const JsonValue& n) { return n.text == name.text; });
    if (in_a == nullptr || !both_require) continue;
    Flat a;
    Flat b;
    if (Flatten({in_a, at_a.path}, kMaxDepth / 2, &a) &&
        Flatten({in_b, at_b.path}, kMaxDepth / 2, &b) && a.typed.empty() &&
        b.typed.empty() && HasNoCommonValue(a, b)) {
      return true;
    }
  }
  return false;
}

bool SchemaReader::HasNoCommonValue(const Flat& a, const Flat& b) const {
  const auto differ_in_type = [&](const Flat& one, const Flat& other) {
    for (const SchemaPlace& typed : one.typed) {
      const TypeSet types = Read(typed)->types;
      for (const JsonValue* value : other.values) {
        if ((types & TypeOf(*value)) != 0) return false;
      }
    }
    return true;
  };
  if (!differ_in_type(a, b) || !differ_in_type(b, a)) return false;
  for (const JsonValue* x : a.values) {
    for (const JsonValue* y : b.values) {
      if (IsSameValue(*x, *y)) return false;
    }
  }
  for (const SchemaPlace& x : a.typed) {
    for (const SchemaPlace& y : b.typed) {
      const auto common = static_cast<TypeSet>(Read(x)->types & Read(y)->types);
      if (common == 0) continue;
      if (common != kObject) return false;
      const JsonValue* x_names = x.schema->Find("required");
      const JsonValue* y_names = y.schema->Find("required");
      if (!(x_names != nullptr && ObjectsDiffer(*x_names, x, y)) &&
          !(y_names != nullptr && ObjectsDiffer(*y_names, y, x))) {
        return false;
      }
    }
  }
  return true;
}

bool SchemaReader::AreDisjoint(const SchemaPlace& a,
                               const SchemaPlace& b) const {
  Flat flat_a;
  Flat flat_b;
  return Flatten(a, 0, &flat_a) && Flatten(b, 0, &flat_b) &&
         HasNoCommonValue(flat_a, flat_b);
}

}  // namespace belay::text
