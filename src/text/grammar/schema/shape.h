// SPDX-License-Identifier: Apache-2.0
// What kind of schema a schema is, with its keywords looked through once.
#ifndef BELAY_TEXT_GRAMMAR_SCHEMA_SHAPE_H_
#define BELAY_TEXT_GRAMMAR_SCHEMA_SHAPE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/chat/json.h"

namespace belay::text {

// Sets of JSON types. Numbers are two: a schema's "number" is both.
using TypeSet = uint8_t;
inline constexpr TypeSet kNull = 1;
inline constexpr TypeSet kBoolean = 2;
inline constexpr TypeSet kWholeNumber = 4;
inline constexpr TypeSet kBrokenNumber = 8;
inline constexpr TypeSet kString = 16;
inline constexpr TypeSet kArray = 32;
inline constexpr TypeSet kObject = 64;
inline constexpr TypeSet kAllTypes = 127;

TypeSet TypeOf(const JsonValue& value);

// A schema with its place in the document ("#/properties/a").
struct SchemaPlace {
  const JsonValue* schema = nullptr;
  std::string path;
};

struct SchemaShape {
  enum class Kind {
    kNever,   // false
    kSame,    // what parts[0] says: $ref, or allOf of one
    kEither,  // one of parts
    kValues,  // one of values
    kTyped,   // by type and the keywords of the types
  };
  Kind kind = Kind::kTyped;
  std::vector<SchemaPlace> parts;
  std::vector<const JsonValue*> values;
  TypeSet types = kAllTypes;
  // kTyped: no keyword says anything about the value.
  bool is_free = true;
};

class SchemaReader {
 public:
  explicit SchemaReader(const JsonValue& document) : document_(document) {}

  // Errors: those of CompileJsonSchema but GRAM-004 and 005.
  StatusOr<SchemaShape> Read(const SchemaPlace& place) const;

  // True when it can be seen that no value is valid for both.
  bool AreDisjoint(const SchemaPlace& a, const SchemaPlace& b) const;

  // The count that a keyword gives, or nothing. Error: GRAM-001.
  static StatusOr<std::optional<uint32_t>> Count(const SchemaPlace& place,
                                                 std::string_view keyword);
  // GRAM-001 for a keyword.
  static Status WrongValue(const SchemaPlace& place, std::string_view keyword,
                           std::string expected);

 private:
  struct Flat {
    std::vector<SchemaPlace> typed;
    std::vector<const JsonValue*> values;
  };

  StatusOr<SchemaPlace> Follow(const SchemaPlace& place,
                               std::string_view ref) const;
  Status ReadAlternatives(const SchemaPlace& place, std::string_view keyword,
                          SchemaShape* shape) const;
  // All leaves below a schema; false when they cannot be told.
  bool Flatten(const SchemaPlace& place, int depth, Flat* flat) const;
  bool HasNoCommonValue(const Flat& a, const Flat& b) const;
  bool ObjectsDiffer(const JsonValue& a, const SchemaPlace& at_a,
                     const SchemaPlace& at_b) const;

  const JsonValue& document_;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_SCHEMA_SHAPE_H_
