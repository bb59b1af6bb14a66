// SPDX-License-Identifier: Apache-2.0
// Holds the catalogue to tests/cases/explain: codes.tsv and variables.txt list
// what it must know, queries.jsonl what people ask and which entries they must
// find.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "diag/catalogue.h"
#include "diag/lookup.h"
#include "gtest/gtest.h"

namespace belay::diag {
namespace {

const Catalogue& Everything() {
  static const Catalogue catalogue = [] {
    auto loaded = Catalogue::LoadEmbedded();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : Catalogue();
  }();
  return catalogue;
}

// The lines of a file without comments and empty ones.
std::vector<std::string> LinesOf(const std::string& name) {
  const auto text = ReadFile("tests/cases/explain/" + name);
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<std::string> lines;
  std::istringstream stream(text.ok() ? *text : "");
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line[0] != '#') lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> Fields(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) {
    fields.push_back(field);
  }
  fields.resize(3);
  return fields;
}

using CodeKey = std::pair<std::string, std::string>;  // component, code

std::map<CodeKey, const Code*> AllCodes() {
  std::map<CodeKey, const Code*> codes;
  for (const Entry& entry : Everything().entries()) {
    for (const Code& code : entry.codes) {
      const bool is_new =
          codes.insert({{code.component, code.code}, &code}).second;
      EXPECT_TRUE(is_new) << code.component << " " << code.code << " twice, in "
                          << entry.id;
    }
  }
  return codes;
}

TEST(CompletenessTest, EveryListedCodeIsExplainedOnce) {
  const auto codes = AllCodes();
  const std::vector<std::string> lines = LinesOf("codes.tsv");
  EXPECT_GE(lines.size(), 1000u);
  for (const std::string& line : lines) {
    const std::vector<std::string> fields = Fields(line);
    const auto found = codes.find({fields[0], fields[1]});
    ASSERT_NE(found, codes.end()) << line << " is not in the catalogue";
    if (fields[2].empty()) continue;
    EXPECT_EQ(found->second->symbol, fields[2]);
  }
}

TEST(CompletenessTest, EveryListedCodeIsFoundByNumberAndSymbol) {
  for (const std::string& line : LinesOf("codes.tsv")) {
    const std::vector<std::string> fields = Fields(line);
    for (const std::string& query : {fields[1], fields[2]}) {
      if (query.empty()) continue;
      const Answer answer = LookUp(Everything(), query, 100);
      EXPECT_EQ(answer.by, FoundBy::kCode) << query;
      const bool is_there = std::any_of(
          answer.hits.begin(), answer.hits.end(), [&](const Hit& hit) {
            return hit.code != nullptr && hit.code->component == fields[0] &&
                   hit.code->code == fields[1];
          });
      EXPECT_TRUE(is_there) << line;
    }
  }
}

TEST(CompletenessTest, EveryListedVariableIsKnown) {
  const std::vector<std::string> names = LinesOf("variables.txt");
  EXPECT_GE(names.size(), 85u);
  for (const std::string& name : names) {
    const Answer answer = LookUp(Everything(), name);
    ASSERT_EQ(answer.by, FoundBy::kName) << name;
    EXPECT_TRUE(answer.hits.front().entry->variable.has_value()) << name;
  }
}

TEST(CompletenessTest, TheDoubtfulNamesOfTheArticleAreAnswered) {
  const std::pair<const char*, const char*> names[] = {
      {"ASCEND_SLOG_PRINT_TO_SCREEN", "ASCEND_SLOG_PRINT_TO_STDOUT"},
      {"ASCEND_MEM_SIZE", "PYTORCH_NPU_ALLOC_CONF"},
      {"ASCEND_DEVICE_ID", "ASCEND_RT_VISIBLE_DEVICES"},
      {"TF_CPP_MIN_LOG_LEVEL", "ASCEND_GLOBAL_LOG_LEVEL"}};
  for (const auto& [name, instead] : names) {
    const Entry& entry = *LookUp(Everything(), name).hits.front().entry;
    ASSERT_TRUE(entry.variable.has_value()) << name;
    EXPECT_EQ(entry.variable->name, name);
    EXPECT_NE(entry.variable->status, Variable::Status::kReal) << name;
    EXPECT_EQ(entry.variable->instead, instead);
  }
}

TEST(CompletenessTest, VariablesPointToVariables) {
  std::set<std::string> names;
  for (const Entry& entry : Everything().entries()) {
    if (!entry.variable) continue;
    EXPECT_TRUE(names.insert(entry.variable->name).second) << entry.id;
  }
  for (const Entry& entry : Everything().entries()) {
    if (!entry.variable) continue;
    std::vector<std::string> others = entry.variable->conflicts;
    if (!entry.variable->instead.empty()) {
      others.push_back(entry.variable->instead);
    }
    for (const std::string& other : others) {
      EXPECT_TRUE(names.contains(other)) << entry.id << " names " << other;
      EXPECT_NE(other, entry.variable->name);
    }
  }
}

TEST(CompletenessTest, RelatedEntriesExist) {
  for (const Entry& entry : Everything().entries()) {
    for (const std::string& id : entry.see) {
      EXPECT_NE(Everything().Find(id), nullptr) << entry.id << " names " << id;
      EXPECT_NE(id, entry.id);
    }
  }
}

// A floor for each area, so that a file that was dropped by mistake is missed.
TEST(CompletenessTest, EveryAreaHasItsEntries) {
  std::map<Kind, int> n_entries;
  for (const Entry& entry : Everything().entries()) ++n_entries[entry.kind];
  EXPECT_GE(n_entries[Kind::kPitfall], 60);
  EXPECT_GE(n_entries[Kind::kCode], 190);
  EXPECT_GE(n_entries[Kind::kEnv], 85);
  EXPECT_GE(n_entries[Kind::kIssue], 120);
  EXPECT_GE(n_entries[Kind::kTable], 10);
}

std::vector<std::string> IdsOf(const Answer& answer) {
  std::vector<std::string> ids;
  for (const Hit& hit : answer.hits) ids.push_back(hit.entry->id);
  return ids;
}

void Check(const std::string& ask, const std::string& by,
           const std::vector<std::string>& wanted) {
  const Answer answer = LookUp(Everything(), ask);
  EXPECT_EQ(NameOf(answer.by), by) << ask;
  std::vector<std::string> ids = IdsOf(answer);
  if (by == "words") ids.resize(std::min<size_t>(ids.size(), 3));
  if (by == "name" || by == "typo") ids.resize(std::min<size_t>(ids.size(), 1));
  if (by == "code" || by == "nothing") {
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()),
              std::set<std::string>(wanted.begin(), wanted.end()))
        << ask;
    return;
  }
  const bool is_there =
      std::find(ids.begin(), ids.end(), wanted.at(0)) != ids.end();
  EXPECT_TRUE(is_there) << ask << " wants " << wanted.at(0) << ", got "
                        << nlohmann::json(IdsOf(answer)).dump();
}

TEST(QueriesTest, FindWhatTheyMust) {
  const std::vector<std::string> lines = LinesOf("queries.jsonl");
  EXPECT_GE(lines.size(), 120u);
  for (const std::string& line : lines) {
    const auto one = nlohmann::json::parse(line);
    Check(one["ask"], one["by"], one["ids"]);
  }
}

}  // namespace
}  // namespace belay::diag
