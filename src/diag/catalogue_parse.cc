// SPDX-License-Identifier: Apache-2.0
#include "diag/catalogue_parse.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error_ids.h"

namespace belay::diag {
namespace {

using nlohmann::json;

Status Bad(const std::string& where, std::string expected, std::string got) {
  return MakeError(kDiagBadCatalogue, {.where = where,
                                       .what = "",
                                       .expected = std::move(expected),
                                       .got = std::move(got)});
}

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// ^[A-Z][A-Z0-9]*$
bool IsArea(std::string_view text) {
  return !text.empty() && IsUpper(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsUpper(c) || IsDigit(c); });
}

// The area, a hyphen and three digits.
bool IsIdOf(std::string_view id, std::string_view area) {
  return id.size() == area.size() + 4 && id.substr(0, area.size()) == area &&
         id[area.size()] == '-' && std::all_of(id.end() - 3, id.end(), IsDigit);
}

// Reads the fields of one object and remembers which it was asked for, so that
// a misspelt one does not go unnoticed.
class Fields {
 public:
  Fields(const json& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  const json* Get(const char* name) {
    known_.emplace_back(name);
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }

  Status GetString(const char* name, std::string& value) {
    const json* field = Get(name);
    if (field == nullptr || !field->is_string() ||
        field->get_ref<const std::string&>().empty()) {
      return Bad(At(name), "a text that is not empty", Got(field));
    }
    value = field->get<std::string>();
    return absl::OkStatus();
  }

  Status GetText(const char* name, bool required, Text& value) {
    const json* field = Get(name);
    if (field == nullptr && !required) return absl::OkStatus();
    if (field == nullptr || !field->is_object()) {
      return Bad(At(name), "an object with en and zh", Got(field));
    }
    Fields languages(*field, At(name));
    BELAY_RETURN_IF_ERROR(languages.GetString("en", value.en));
    BELAY_RETURN_IF_ERROR(languages.GetString("zh", value.zh));
    return languages.CheckNoOthers();
  }

  Status GetStrings(const char* name, bool required,
                    std::vector<std::string>& values) {
    const json* field = Get(name);
    if (field == nullptr && !required) return absl::OkStatus();
    if (field == nullptr || !field->is_array()) {
      return Bad(At(name), "an array of texts", Got(field));
    }
    for (const json& item : *field) {
      if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
        return Bad(At(name), "texts that are not empty", Got(&item));
      }
      values.push_back(item.get<std::string>());
    }
    return absl::OkStatus();
  }

  // A text that may be missing, but not be empty.
  Status GetOptional(const char* name, std::string& value) {
    if (Get(name) == nullptr) return absl::OkStatus();
    return GetString(name, value);
  }

  // Nothing, or the smallest and the largest value.
  Status GetRange(const char* name, std::vector<int64_t>& range) {
    const json* field = Get(name);
    if (field == nullptr) return absl::OkStatus();
    const bool good = field->is_array() && field->size() == 2 &&
                      (*field)[0].is_number_integer() &&
                      (*field)[1].is_number_integer();
    if (!good) return Bad(At(name), "two whole numbers", Got(field));
    range = {(*field)[0].get<int64_t>(), (*field)[1].get<int64_t>()};
    if (range[0] > range[1]) {
      return Bad(At(name), "the smaller first", std::to_string(range[0]));
    }
    return absl::OkStatus();
  }

  // Reads each object of the list `name` with `read`.
  template <typename Item>
  Status GetList(const char* name, StatusOr<Item> (*read)(Fields&),
                 std::vector<Item>& items) {
    const json* field = Get(name);
    if (field == nullptr) return absl::OkStatus();
    if (!field->is_array()) return Bad(At(name), "an array", Got(field));
    for (const json& object : *field) {
      const std::string at =
          At(name) + "[" + std::to_string(items.size()) + "]";
      if (!object.is_object()) return Bad(at, "an object", object.type_name());
      Fields fields(object, at);
      BELAY_ASSIGN_OR_RETURN(Item item, read(fields));
      BELAY_RETURN_IF_ERROR(fields.CheckNoOthers());
      items.push_back(std::move(item));
    }
    return absl::OkStatus();
  }

  // Reads the object `name`, if it is there, with `read`.
  template <typename Item>
  Status GetObject(const char* name, StatusOr<Item> (*read)(Fields&),
                   std::optional<Item>& item) {
    const json* field = Get(name);
    if (field == nullptr) return absl::OkStatus();
    if (!field->is_object()) return Bad(At(name), "an object", Got(field));
    Fields fields(*field, At(name));
    BELAY_ASSIGN_OR_RETURN(item, read(fields));
    return fields.CheckNoOthers();
  }

  // One of `names`; its index goes to `value`, an enum that counts them.
  template <typename Enum, size_t kCount>
  Status GetEnum(const char* name, const char* const (&names)[kCount],
                 Enum& value) {
    std::string text;
    BELAY_RETURN_IF_ERROR(GetString(name, text));
    std::string all;
    for (size_t i = 0; i < kCount; ++i) {
      if (text == names[i]) {
        value = static_cast<Enum>(i);
        return absl::OkStatus();
      }
      all += all.empty() ? "" : ", ";
      all += names[i];
    }
    return Bad(At(name), "one of " + all, text);
  }

  Status CheckNoOthers() const {
    for (const auto& [name, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), name) == known_.end()) {
        return Bad(where_, "only the fields of the schema", name);
      }
    }
    return absl::OkStatus();
  }

  std::string At(const char* name) const { return where_ + "." + name; }

 private:
  static std::string Got(const json* field) {
    if (field == nullptr) return "nothing";
    if (field->is_string()) return "an empty text";
    return field->type_name();
  }

  const json& object_;
  std::string where_;
  std::vector<std::string> known_;
};

StatusOr<Code> ReadCode(Fields& fields) {
  Code code;
  BELAY_RETURN_IF_ERROR(fields.GetString("component", code.component));
  BELAY_RETURN_IF_ERROR(fields.GetString("code", code.code));
  BELAY_RETURN_IF_ERROR(fields.GetOptional("symbol", code.symbol));
  BELAY_RETURN_IF_ERROR(fields.GetText("title", false, code.title));
  return code;
}

StatusOr<Variable> ReadVariable(Fields& fields) {
  Variable variable;
  BELAY_RETURN_IF_ERROR(fields.GetString("name", variable.name));
  BELAY_RETURN_IF_ERROR(fields.GetEnum(
      "status", {"real", "limited", "deprecated", "foreign", "wrong"},
      variable.status));
  BELAY_RETURN_IF_ERROR(fields.GetOptional("reader", variable.reader));
  BELAY_RETURN_IF_ERROR(fields.GetOptional("values", variable.values));
  BELAY_RETURN_IF_ERROR(fields.GetOptional("default", variable.fallback));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("allowed", false, variable.allowed));
  BELAY_RETURN_IF_ERROR(fields.GetRange("range", variable.range));
  BELAY_RETURN_IF_ERROR(fields.GetOptional("instead", variable.instead));
  BELAY_RETURN_IF_ERROR(
      fields.GetStrings("conflicts", false, variable.conflicts));
  return variable;
}

StatusOr<Table> ReadTable(Fields& fields) {
  Table table;
  BELAY_RETURN_IF_ERROR(fields.GetStrings("columns", true, table.columns));
  const json* rows = fields.Get("rows");
  if (rows == nullptr || !rows->is_array()) {
    return Bad(fields.At("rows"), "an array of rows", "something else");
  }
  for (const json& row : *rows) {
    const bool good = row.is_array() && row.size() == table.columns.size() &&
                      std::all_of(row.begin(), row.end(), [](const json& cell) {
                        return cell.is_string();
                      });
    if (!good) {
      return Bad(
          fields.At("rows") + "[" + std::to_string(table.rows.size()) + "]",
          "one text a column", "another row");
    }
    table.rows.push_back(row.get<std::vector<std::string>>());
  }
  return table;
}

// What the kind asks for: codes explain codes, variables are variables.
Status CheckKind(const Entry& entry, const Fields& fields) {
  const struct {
    const char* field;
    Kind kind;
    bool is_there;
  } rules[] = {{"codes", Kind::kCode, !entry.codes.empty()},
               {"variable", Kind::kEnv, entry.variable.has_value()},
               {"table", Kind::kTable, entry.table.has_value()}};
  for (const auto& rule : rules) {
    const bool wanted = entry.kind == rule.kind;
    if (wanted == rule.is_there) continue;
    return Bad(fields.At(rule.field),
               wanted ? "to be there for this kind" : "not for this kind",
               std::string(NameOf(entry.kind)));
  }
  return absl::OkStatus();
}

StatusOr<Entry> ParseEntry(const json& object, const std::string& where) {
  if (!object.is_object()) return Bad(where, "an object", object.type_name());
  Fields fields(object, where);
  Entry entry;
  BELAY_RETURN_IF_ERROR(fields.GetString("id", entry.id));
  BELAY_RETURN_IF_ERROR(fields.GetString("area", entry.area));
  if (!IsArea(entry.area)) {
    return Bad(fields.At("area"), "capitals and digits", entry.area);
  }
  if (!IsIdOf(entry.id, entry.area)) {
    return Bad(fields.At("id"), entry.area + "-NNN", entry.id);
  }
  BELAY_RETURN_IF_ERROR(fields.GetEnum(
      "kind", {"error", "pitfall", "code", "env", "issue", "table"},
      entry.kind));
  BELAY_RETURN_IF_ERROR(
      fields.GetEnum("severity", {"error", "warning", "info"}, entry.severity));
  BELAY_RETURN_IF_ERROR(fields.GetText("title", true, entry.title));
  BELAY_RETURN_IF_ERROR(fields.GetText("cause", true, entry.cause));
  BELAY_RETURN_IF_ERROR(fields.GetText("fix", true, entry.fix));
  BELAY_RETURN_IF_ERROR(fields.GetText("check", false, entry.check));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("sources", true, entry.sources));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("versions", false, entry.versions));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("socs", false, entry.socs));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("fixed_in", false, entry.fixed_in));
  BELAY_RETURN_IF_ERROR(fields.GetList("codes", ReadCode, entry.codes));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("names", false, entry.names));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("keywords", false, entry.keywords));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("see", false, entry.see));
  BELAY_RETURN_IF_ERROR(
      fields.GetObject("variable", ReadVariable, entry.variable));
  BELAY_RETURN_IF_ERROR(fields.GetObject("table", ReadTable, entry.table));
  BELAY_RETURN_IF_ERROR(CheckKind(entry, fields));
  BELAY_RETURN_IF_ERROR(fields.CheckNoOthers());
  return entry;
}

}  // namespace

StatusOr<std::vector<Entry>> ParseCatalogueFile(std::string_view text,
                                                const std::string& where) {
  const json file = json::parse(text.begin(), text.end(), nullptr,
                                /*allow_exceptions=*/false);
  if (!file.is_object()) return Bad(where, "a JSON object", "something else");
  Fields fields(file, where);
  const json* schema = fields.Get("schema");
  if (schema == nullptr || *schema != 1) {
    return Bad(fields.At("schema"), "1",
               schema == nullptr ? "nothing" : "another value");
  }
  const json* list = fields.Get("entries");
  if (list == nullptr || !list->is_array()) {
    return Bad(fields.At("entries"), "an array",
               list == nullptr ? "nothing" : list->type_name());
  }
  BELAY_RETURN_IF_ERROR(fields.CheckNoOthers());
  std::vector<Entry> entries;
  for (const json& object : *list) {
    const std::string at =
        fields.At("entries") + "[" + std::to_string(entries.size()) + "]";
    BELAY_ASSIGN_OR_RETURN(Entry entry, ParseEntry(object, at));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace belay::diag
