// SPDX-License-Identifier: Apache-2.0
#include "toolkit/tune/journal.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/error_ids_toolkit.h"

namespace belay::tune {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kStates[] = {"planned", "applied", "kept", "undone"};
constexpr size_t kMaxChanges = 100000;
// Lists of CPUs are the longest values.
constexpr size_t kMaxValue = 4096;

Status NotAJournal(const std::string& where, const std::string& what) {
  return MakeError(kTuneBadRecord,
                   {.where = where, .what = what, .expected = "", .got = ""});
}

std::string TextOf(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

bool IsValue(const std::string& text) {
  return !text.empty() && text.size() <= kMaxValue &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c <= '~'; });
}

StatusOr<Change> ChangeFrom(const json& item, const std::string& where) {
  if (!item.is_object()) return NotAJournal(where, "a change is no object");
  Change change;
  Setting& setting = change.setting;
  setting.path = TextOf(item, "path");
  setting.now = TextOf(item, "old");
  setting.wanted = TextOf(item, "new");
  if (!IsTunable(setting.path)) {
    return NotAJournal(where, setting.path + " is no setting");
  }
  if (!IsValue(setting.now) || !IsValue(setting.wanted)) {
    return NotAJournal(where, setting.path + " has no such value");
  }
  const std::string topic = TextOf(item, "topic");
  const auto* of = std::find_if(std::begin(kTopics), std::end(kTopics),
                                [&](Topic t) { return NameOf(t) == topic; });
  const std::string state = TextOf(item, "state");
  const auto* is = std::find(std::begin(kStates), std::end(kStates), state);
  if (of == std::end(kTopics) || is == std::end(kStates)) {
    return NotAJournal(where, "topic or state is unknown");
  }
  setting.topic = *of;
  change.state = static_cast<ChangeState>(is - std::begin(kStates));
  return change;
}

}  // namespace

std::string_view NameOf(ChangeState state) {
  return kStates[static_cast<size_t>(state)];
}

bool Journal::is_open() const {
  return std::any_of(changes.begin(), changes.end(), [](const Change& change) {
    return change.state != ChangeState::kUndone;
  });
}

std::string JournalToJson(const Journal& journal) {
  ordered_json out = {{"format", 1}, {"boot", journal.boot}};
  out["changes"] = ordered_json::array();
  for (const Change& change : journal.changes) {
    out["changes"].push_back({{"topic", NameOf(change.setting.topic)},
                              {"path", change.setting.path},
                              {"old", change.setting.now},
                              {"new", change.setting.wanted},
                              {"state", NameOf(change.state)}});
  }
  return out.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

StatusOr<Journal> ParseJournal(std::string_view text,
                               const std::string& where) {
  const json in = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!in.is_object() || !in.contains("format") || in["format"] != 1 ||
      !in.contains("changes") || !in["changes"].is_array() ||
      in["changes"].size() > kMaxChanges) {
    return NotAJournal(where, "is not JSON with \"format\": 1 and changes");
  }
  Journal journal;
  journal.boot = TextOf(in, "boot");
  for (const json& item : in["changes"]) {
    BELAY_ASSIGN_OR_RETURN(Change change, ChangeFrom(item, where));
    journal.changes.push_back(std::move(change));
  }
  return journal;
}

}  // namespace belay::tune
