// SPDX-License-Identifier: Apache-2.0
#include "diag/catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error_ids.h"
#include "base/error_ids_cann.h"
#include "base/error_ids_toolkit.h"
#include "base/file.h"
#include "diag/catalogue_parse.h"
#include "diag/embedded.h"

namespace belay::diag {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const Catalogue& Embedded() {
  static const Catalogue catalogue = [] {
    auto loaded = Catalogue::LoadEmbedded();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : Catalogue();
  }();
  return catalogue;
}

std::vector<ErrorId> CodeIds() {
  std::vector<ErrorId> ids;
#define BELAY_ADD_ID(name, text, code) ids.push_back(name);
  BELAY_ERROR_IDS(BELAY_ADD_ID)
  BELAY_TOOLKIT_ERROR_IDS(BELAY_ADD_ID)
  BELAY_CANN_ERROR_IDS(BELAY_ADD_ID)
#undef BELAY_ADD_ID
  return ids;
}

// A Han character: U+4E00 to U+9FFF are 0xe4..0xe9 in UTF-8.
bool HasChinese(const std::string& text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<uint8_t>(c);
    return byte >= 0xe4 && byte <= 0xe9;
  });
}

TEST(EmbeddedTest, IsEveryFileOfTheFolderByteForByte) {
  const fs::path root = "data/catalogue";
  std::set<std::string> on_disk;
  for (const auto& item : fs::recursive_directory_iterator(root)) {
    const std::string name = fs::relative(item.path(), root).string();
    if (item.path().extension() == ".json" && name != "schema.json") {
      on_disk.insert(name);
    }
  }
  std::set<std::string> embedded;
  for (const CatalogueFile& file : EmbeddedCatalogueFiles()) {
    embedded.insert(std::string(file.name));
    EXPECT_EQ(ReadFile((root / file.name).string()).value(), file.text);
  }
  EXPECT_EQ(embedded, on_disk);
}

TEST(EmbeddedTest, EveryIdOfTheCodeHasAnEntry) {
  for (const ErrorId& id : CodeIds()) {
    const Entry* entry = Embedded().Find(id.id);
    ASSERT_NE(entry, nullptr) << id.id << " has no text in data/catalogue";
    EXPECT_EQ(entry->kind, Kind::kError) << id.id;
  }
}

TEST(EmbeddedTest, EveryErrorEntryIsKnownToTheCode) {
  std::set<std::string> known;
  for (const ErrorId& id : CodeIds()) known.insert(id.id);
  for (const Entry& entry : Embedded().entries()) {
    if (entry.kind == Kind::kError) {
      EXPECT_TRUE(known.contains(entry.id)) << entry.id << " is never emitted";
    }
  }
}

TEST(EmbeddedTest, TextsAreWhatTheyShouldBe) {
  for (const Entry& entry : Embedded().entries()) {
    for (const Text* text :
         {&entry.title, &entry.cause, &entry.fix, &entry.check}) {
      if (text == &entry.check && text->empty()) continue;
      EXPECT_FALSE(HasChinese(text->en)) << entry.id << ": " << text->en;
      EXPECT_TRUE(HasChinese(text->zh)) << entry.id << ": " << text->zh;
    }
    // Titles stand in the middle of a line: "error X-001: where: title (...)".
    for (const std::string& title : {entry.title.en, entry.title.zh}) {
      EXPECT_EQ(title.find('\n'), std::string::npos) << title;
      EXPECT_NE(title.back(), '.') << title;
      EXPECT_FALSE(title.ends_with("。")) << title;
    }
    EXPECT_FALSE(std::isupper(static_cast<unsigned char>(entry.title.en[0])) &&
                 std::islower(static_cast<unsigned char>(entry.title.en[1])))
        << entry.title.en;
    EXPECT_THAT(entry.sources, testing::Not(IsEmpty())) << entry.id;
  }
}

TEST(EmbeddedTest, AFileHoldsItsAreaInOrder) {
  for (const CatalogueFile& file : EmbeddedCatalogueFiles()) {
    const std::string folder(file.name.substr(0, file.name.find('/') + 1));
    const auto entries = ParseCatalogueFile(file.text, "x");
    ASSERT_TRUE(entries.ok());
    std::string last;
    for (const Entry& entry : *entries) {
      std::string name = folder + entry.area + ".json";
      std::transform(name.begin(), name.end(), name.begin(), [](char c) {
        return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      });
      EXPECT_EQ(file.name, name);
      EXPECT_LT(last, entry.id);
      last = entry.id;
    }
  }
}

// What a folder is for.
TEST(EmbeddedTest, AFolderHoldsItsKind) {
  const std::map<std::string, Kind> kinds = {
      {"errors", Kind::kError}, {"pitfalls", Kind::kPitfall},
      {"codes", Kind::kCode},   {"env", Kind::kEnv},
      {"issues", Kind::kIssue}, {"versions", Kind::kTable}};
  for (const CatalogueFile& file : EmbeddedCatalogueFiles()) {
    const std::string folder(file.name.substr(0, file.name.find('/')));
    ASSERT_TRUE(kinds.contains(folder)) << file.name;
    const auto entries = ParseCatalogueFile(file.text, "x");
    ASSERT_TRUE(entries.ok()) << entries.status();
    for (const Entry& entry : *entries) {
      EXPECT_EQ(entry.kind, kinds.at(folder)) << entry.id;
    }
  }
}

TEST(EmbeddedTest, TheErrorsCanBeLoadedAlone) {
  const auto errors = Catalogue::LoadEmbedded(Part::kErrors);
  ASSERT_TRUE(errors.ok()) << errors.status();
  EXPECT_NE(errors->Find("CKPT-001"), nullptr);
  for (const Entry& entry : errors->entries()) {
    EXPECT_EQ(entry.kind, Kind::kError) << entry.id;
  }
}

// The parser and schema.json must not drift apart: same fields, same required.
json GoodCode();
json GoodVariable();
json GoodTable();

TEST(SchemaTest, NamesTheFieldsOfTheParts) {
  const json schema =
      json::parse(ReadFile("data/catalogue/schema.json").value());
  const std::pair<const char*, json> parts[] = {{"code", GoodCode()},
                                                {"variable", GoodVariable()},
                                                {"table", GoodTable()}};
  for (const auto& [name, good] : parts) {
    std::set<std::string> fields, known;
    for (const auto& item : schema["$defs"][name]["properties"].items()) {
      fields.insert(item.key());
    }
    for (const auto& item : good.items()) known.insert(item.key());
    EXPECT_EQ(fields, known) << name;
  }
}

TEST(SchemaTest, NamesTheFieldsThatTheParserKnows) {
  const json schema =
      json::parse(ReadFile("data/catalogue/schema.json").value());
  const json& entry = schema["$defs"]["entry"];
  std::set<std::string> fields, required;
  for (const auto& [name, rule] : entry["properties"].items()) {
    fields.insert(name);
  }
  for (const auto& name : entry["required"]) required.insert(name);
  EXPECT_EQ(fields,
            (std::set<std::string>{
                "id", "area", "kind", "severity", "title", "cause", "fix",
                "check", "sources", "versions", "socs", "fixed_in", "codes",
                "names", "keywords", "see", "variable", "table"}));
  EXPECT_EQ(required,
            (std::set<std::string>{"id", "area", "kind", "severity", "title",
                                   "cause", "fix", "sources"}));
}

json Text(const std::string& en) { return {{"en", en}, {"zh", "文"}}; }

json GoodEntry(const std::string& id = "TEST-001") {
  return {{"id", id},
          {"area", "TEST"},
          {"kind", "pitfall"},
          {"severity", "warning"},
          {"title", Text("t")},
          {"cause", Text("c")},
          {"fix", Text("f")},
          {"check", Text("k")},
          {"sources", json::array({"s"})},
          {"versions", json::array({"v"})},
          {"socs", json::array({"a", "b"})}};
}

std::string FileOf(const json& entries) {
  return json{{"schema", 1}, {"entries", entries}}.dump();
}

TEST(ParseTest, ReadsEveryField) {
  const auto entries =
      ParseCatalogueFile(FileOf(json::array({GoodEntry()})), "x");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 1u);
  const Entry& entry = entries->front();
  EXPECT_EQ(entry.id, "TEST-001");
  EXPECT_EQ(entry.area, "TEST");
  EXPECT_EQ(entry.kind, Kind::kPitfall);
  EXPECT_EQ(entry.severity, Severity::kWarning);
  EXPECT_EQ(entry.title.in(Lang::kEn), "t");
  EXPECT_EQ(entry.title.in(Lang::kZh), "文");
  EXPECT_EQ(entry.cause.en + entry.fix.en + entry.check.en, "cfk");
  EXPECT_THAT(entry.sources, ElementsAre("s"));
  EXPECT_THAT(entry.versions, ElementsAre("v"));
  EXPECT_THAT(entry.socs, ElementsAre("a", "b"));
}

TEST(ParseTest, OptionalFieldsMayBeMissingAndRequiredOnesNot) {
  const json good = GoodEntry();
  for (const auto& [name, value] : good.items()) {
    json entry = GoodEntry();
    entry.erase(name);
    const bool optional =
        name == "check" || name == "versions" || name == "socs";
    const Status status =
        ParseCatalogueFile(FileOf(json::array({entry})), "f.json").status();
    EXPECT_EQ(status.ok(), optional) << name;
    if (!optional) {
      EXPECT_EQ(ErrorIdOf(status), kDiagBadCatalogue.id);
      EXPECT_EQ(ErrorFactsOf(status).where, "f.json.entries[0]." + name);
    }
  }
}

TEST(ParseTest, WrongFieldsAreNamed) {
  const struct {
    const char* field;
    json value;
  } cases[] = {
      {"id", "TEST-1"},
      {"id", "test-001"},
      {"id", "OTHER-001"},
      {"id", "TEST-00A"},
      {"id", 7},
      {"area", "te"},
      {"area", ""},
      {"kind", "bug"},
      {"severity", "fatal"},
      {"title", "text"},
      {"fix", {{"en", "x"}}},
      {"cause", Text("")},
      {"sources", "one"},
      {"sources", json::array({1})},
      {"socs", json::array({""})},
      {"check", nullptr},
      {"versions", {{"a", 1}}},
      {"title", {{"en", "x"}, {"zh", "文"}, {"de", "x"}}},
      {"tpyo", "x"},
  };
  for (const auto& c : cases) {
    json entry = GoodEntry();
    entry[c.field] = c.value;
    const Status status =
        ParseCatalogueFile(FileOf(json::array({entry})), "f").status();
    EXPECT_EQ(ErrorIdOf(status), kDiagBadCatalogue.id)
        << c.field << " " << c.value;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.field));
  }
}

json GoodCode() {
  return {{"component", "hccl"},
          {"code", "9"},
          {"symbol", "S"},
          {"title", Text("t")}};
}

json GoodVariable() {
  return {{"name", "N"},       {"status", "wrong"},
          {"reader", "r"},     {"values", "v"},
          {"default", "d"},    {"allowed", json::array({"0", "1"})},
          {"range", {0, 7}},   {"instead", "I"},
          {"conflicts", {"C"}}};
}

json GoodTable() {
  return {
      {"columns", json::array({"a", "b"})},
      {"rows", json::array({json::array({"1", ""}), json::array({"2", "3"})})}};
}

// An entry of a kind that asks for the field `name`.
json EntryWith(const std::string& kind, const std::string& name,
               const json& value) {
  json entry = GoodEntry();
  entry["kind"] = kind;
  entry[name] = value;
  return entry;
}

TEST(ParseTest, ReadsCodesVariablesAndTables) {
  json code = EntryWith("code", "codes", json::array({GoodCode()}));
  code["fixed_in"] = {"CANN 9"};
  code["names"] = {"n"};
  code["keywords"] = {"k"};
  code["see"] = {"TEST-002"};
  const auto codes = ParseCatalogueFile(FileOf(json::array({code})), "x");
  ASSERT_TRUE(codes.ok()) << codes.status();
  const Entry& first = codes->front();
  ASSERT_EQ(first.codes.size(), 1u);
  EXPECT_EQ(first.codes[0].component + first.codes[0].code +
                first.codes[0].symbol + first.codes[0].title.en,
            "hccl9St");
  EXPECT_THAT(first.fixed_in, ElementsAre("CANN 9"));
  EXPECT_THAT(first.names, ElementsAre("n"));
  EXPECT_THAT(first.keywords, ElementsAre("k"));
  EXPECT_THAT(first.see, ElementsAre("TEST-002"));
  const auto variables = ParseCatalogueFile(
      FileOf(json::array({EntryWith("env", "variable", GoodVariable())})), "x");
  ASSERT_TRUE(variables.ok()) << variables.status();
  const Variable& variable = *variables->front().variable;
  EXPECT_EQ(variable.status, Variable::Status::kWrong);
  EXPECT_EQ(variable.name + variable.reader + variable.values +
                variable.fallback + variable.instead,
            "NrvdI");
  EXPECT_THAT(variable.allowed, ElementsAre("0", "1"));
  EXPECT_THAT(variable.range, ElementsAre(0, 7));
  EXPECT_THAT(variable.conflicts, ElementsAre("C"));
  const auto tables = ParseCatalogueFile(
      FileOf(json::array({EntryWith("table", "table", GoodTable())})), "x");
  ASSERT_TRUE(tables.ok()) << tables.status();
  EXPECT_THAT(tables->front().table->rows[1], ElementsAre("2", "3"));
}

TEST(ParseTest, AKindHasItsFieldAndNoOther) {
  const std::vector<json> wrong = {
      EntryWith("code", "names", {"n"}),
      EntryWith("env", "names", {"n"}),
      EntryWith("table", "names", {"n"}),
      EntryWith("pitfall", "codes", json::array({GoodCode()})),
      EntryWith("issue", "variable", GoodVariable()),
      EntryWith("code", "table", GoodTable())};
  for (const json& entry : wrong) {
    EXPECT_EQ(
        ErrorIdOf(
            ParseCatalogueFile(FileOf(json::array({entry})), "f").status()),
        kDiagBadCatalogue.id)
        << entry;
  }
}

TEST(ParseTest, WrongPartsAreNamed) {
  const auto with = [](json object, const char* field, const json& value) {
    object[field] = value;
    return object;
  };
  const std::pair<json, const char*> wrong[] = {
      {EntryWith("code", "codes", json::array({with(GoodCode(), "code", "")})),
       "code"},
      {EntryWith("code", "codes", json::array({with(GoodCode(), "tpyo", "x")})),
       "tpyo"},
      {EntryWith("code", "codes", json::array({7})), "codes[0]"},
      {EntryWith("code", "codes", "9"), "codes"},
      {EntryWith("env", "variable", with(GoodVariable(), "status", "odd")),
       "status"},
      {EntryWith("env", "variable", with(GoodVariable(), "range", {7, 0})),
       "range"},
      {EntryWith("env", "variable",
                 with(GoodVariable(), "range", json::array({7}))),
       "range"},
      {EntryWith("env", "variable", "N"), "variable"},
      {EntryWith("table", "table",
                 with(GoodTable(), "rows", json::array({json::array({"1"})}))),
       "rows[0]"},
      {EntryWith(
           "table", "table",
           with(GoodTable(), "rows", json::array({json::array({"1", 2})}))),
       "rows[0]"},
      {EntryWith("table", "table", with(GoodTable(), "rows", 1)), "rows"}};
  for (const auto& [entry, field] : wrong) {
    const Status status =
        ParseCatalogueFile(FileOf(json::array({entry})), "f").status();
    EXPECT_EQ(ErrorIdOf(status), kDiagBadCatalogue.id) << entry;
    EXPECT_THAT(std::string(status.message()), HasSubstr(field));
  }
}

TEST(ParseTest, WrongFilesAreStatuses) {
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("7"),
        std::string("{}"), std::string(R"({"schema": 2, "entries": []})"),
        std::string(R"({"schema": 1})"),
        std::string(R"({"schema": 1, "entries": {}})"),
        std::string(R"({"schema": 1, "entries": [], "more": 1})"),
        std::string(R"({"schema": 1, "entries": [3]})"),
        std::string("\xff\xfe\0", 3), std::string(100000, '[')}) {
    EXPECT_EQ(ErrorIdOf(ParseCatalogueFile(text, "f").status()),
              kDiagBadCatalogue.id)
        << text.substr(0, 60);
  }
}

TEST(CatalogueTest, FindsWithAnyCapitals) {
  EXPECT_EQ(Embedded().Find("ckpt-001"), Embedded().Find("CKPT-001"));
  EXPECT_NE(Embedded().Find("Ckpt-001"), nullptr);
  EXPECT_EQ(Embedded().Find("CKPT-000"), nullptr);
  EXPECT_EQ(Embedded().Find(""), nullptr);
}

TEST(CatalogueTest, NearestHelpsWithTypingErrors) {
  EXPECT_EQ(Embedded().Nearest("CPKT-001", 3).front(), "CKPT-001");
  EXPECT_EQ(Embedded().Nearest("ckpt-01", 1), Embedded().Nearest("CKPT-01", 1));
  EXPECT_LE(Embedded().Nearest("CKPT-099", 3).size(), 3u);
  EXPECT_THAT(Embedded().Nearest("something else", 3), IsEmpty());
  EXPECT_THAT(Embedded().Nearest(std::string(1 << 20, 'x'), 3), IsEmpty());
}

TEST(CatalogueTest, IdsAreThereOnce) {
  Catalogue catalogue;
  ASSERT_TRUE(
      catalogue
          .AddFile(FileOf(json::array({GoodEntry("TEST-002"), GoodEntry()})),
                   "a")
          .ok());
  EXPECT_EQ(catalogue.entries()[0].id, "TEST-001");  // sorted
  for (const json& entries :
       {json::array({GoodEntry("TEST-003"), GoodEntry("TEST-001")}),
        json::array({GoodEntry("TEST-003"), GoodEntry("TEST-003")})}) {
    const Status status = catalogue.AddFile(FileOf(entries), "b");
    EXPECT_EQ(ErrorIdOf(status), kDiagBadCatalogue.id);
    EXPECT_EQ(catalogue.entries().size(), 2u);
  }
}

TEST(CatalogueTest, AddsAFolderOfTheUser) {
  std::string folder = fs::temp_directory_path() / "belay_catalogue.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/b.json")
      << FileOf(json::array({GoodEntry("TEST-002")}));
  std::ofstream(folder + "/a.json")
      << FileOf(json::array({GoodEntry("TEST-001")}));
  std::ofstream(folder + "/notes.txt") << "not ours";
  auto catalogue = Catalogue::LoadEmbedded();
  ASSERT_TRUE(catalogue.ok());
  EXPECT_TRUE(catalogue->AddFolder(folder).ok());
  EXPECT_NE(catalogue->Find("TEST-002"), nullptr);
  EXPECT_NE(catalogue->Find("CKPT-001"), nullptr);
  std::ofstream(folder + "/c.json") << "{";
  Catalogue other;
  const Status status = other.AddFolder(folder);
  EXPECT_EQ(ErrorIdOf(status), kDiagBadCatalogue.id);
  EXPECT_EQ(ErrorFactsOf(status).where, folder + "/c.json");
  EXPECT_EQ(ErrorIdOf(other.AddFolder(folder + "/none")), kSysUnreadable.id);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace belay::diag
