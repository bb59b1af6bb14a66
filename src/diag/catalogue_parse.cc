// SPDX-License-Identifier: Apache-2.0
#include "diag/catalogue_parse.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <nlohmann/json.hpp>
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
  BELAY_RETURN_IF_ERROR(
      fields.GetEnum("kind", {"error", "pitfall"}, entry.kind));
  BELAY_RETURN_IF_ERROR(
      fields.GetEnum("severity", {"error", "warning", "info"}, entry.severity));
  BELAY_RETURN_IF_ERROR(fields.GetText("title", true, entry.title));
  BELAY_RETURN_IF_ERROR(fields.GetText("cause", true, entry.cause));
  BELAY_RETURN_IF_ERROR(fields.GetText("fix", true, entry.fix));
  BELAY_RETURN_IF_ERROR(fields.GetText("check", false, entry.check));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("sources", true, entry.sources));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("versions", false, entry.versions));
  BELAY_RETURN_IF_ERROR(fields.GetStrings("socs", false, entry.socs));
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
