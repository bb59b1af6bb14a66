// SPDX-License-Identifier: Apache-2.0
// Runs tests/cases/logs: texts and what must be found in them, innocent logs in
// which nothing may be found.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "diag/catalogue.h"
#include "gtest/gtest.h"
#include "toolkit/logs/judge/diagnosis.h"
#include "toolkit/logs/judge/scanner.h"
#include "toolkit/logs/parse/rules.h"

namespace belay::logs {
namespace {

using nlohmann::json;

const Knowledge& Known() {
  static const diag::Catalogue catalogue = [] {
    auto loaded = diag::Catalogue::LoadEmbedded();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : diag::Catalogue();
  }();
  static const Knowledge knowledge(catalogue);
  return knowledge;
}

FileFacts Scan(const std::string& name, const std::string& text) {
  Scanner scanner(Known(), name);
  scanner.Feed(text);
  scanner.End();
  return scanner.TakeFacts();
}

std::vector<json> Cases(const std::string& file) {
  const auto text = ReadFile("tests/cases/logs/" + file);
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<json> cases;
  std::istringstream stream(text.ok() ? *text : "");
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) cases.push_back(json::parse(line));
  }
  return cases;
}

std::string Told(const Diagnosis& diagnosis) {
  std::string text;
  for (const Finding& finding : diagnosis.findings) {
    text += finding.entry->id + " " + std::string(NameOf(finding.role)) + " " +
            std::to_string(finding.place.line) + ":";
    for (const auto& code : finding.codes) text += " " + code;
    text += "\n";
  }
  return text;
}

// Everything that the answer says about the first cause and the reports like
// it.
std::string Words(const Finding& finding) {
  std::string words =
      finding.entry->title.en + finding.entry->cause.en + finding.entry->fix.en;
  for (const diag::Entry* issue : finding.known) {
    words += issue->title.en + issue->cause.en + issue->fix.en;
  }
  return words;
}

// Its codes, and what the answer must say.
void CheckWords(const json& one, const Diagnosis& d) {
  std::set<std::string> codes;
  for (const Finding& finding : d.findings) {
    codes.insert(finding.codes.begin(), finding.codes.end());
  }
  for (const std::string code : one["codes"]) {
    EXPECT_TRUE(codes.contains(code)) << code << " in\n" << Told(d);
  }
  const std::string words = Words(d.findings[0]);
  if (!one.contains("says")) return;
  for (const json& choices : one["says"]) {
    EXPECT_TRUE(std::any_of(choices.begin(), choices.end(),
                            [&](const std::string& choice) {
                              return words.find(choice) != std::string::npos;
                            }))
        << choices << " in\n"
        << words;
  }
}

void Check(const json& one) {
  SCOPED_TRACE(one["name"].get<std::string>());
  const Diagnosis d =
      Diagnose({Scan("case.log", one["text"])}, Known().catalogue);
  ASSERT_TRUE(d.has_first);
  EXPECT_EQ(d.findings[0].entry->id, one["first"]) << Told(d);
  CheckWords(one, d);
}

TEST(LogCasesTest, PublicReports) {
  const auto cases = Cases("reports.jsonl");
  EXPECT_EQ(cases.size(), 61u);
  for (const json& one : cases) Check(one);
}

TEST(LogCasesTest, OtherKinds) {
  for (const json& one : Cases("kinds.jsonl")) Check(one);
}

// The same troubles in other words, orders, files, versions and languages: what
// may be named first, and nothing where `first` is empty.
TEST(LogCasesTest, Variations) {
  const auto cases = Cases("variations.jsonl");
  EXPECT_GE(cases.size(), 50u);
  for (const json& one : cases) {
    SCOPED_TRACE(one["name"].get<std::string>());
    std::vector<FileFacts> files;
    if (one.contains("files")) {
      for (const auto& [name, text] : one["files"].items()) {
        files.push_back(Scan(name, text));
      }
    } else {
      files.push_back(Scan("case.log", one["text"]));
    }
    const Diagnosis d = Diagnose(files, Known().catalogue);
    const auto first = one["first"].get<std::vector<std::string>>();
    ASSERT_EQ(d.has_first, !first.empty()) << Told(d);
    if (first.empty()) continue;
    EXPECT_NE(std::find(first.begin(), first.end(), d.findings[0].entry->id),
              first.end())
        << Told(d);
    if (one.contains("rank")) {
      EXPECT_EQ(d.findings[0].place.rank, one["rank"].get<int>()) << Told(d);
    }
    CheckWords(one, d);
  }
}

TEST(LogCasesTest, InnocentLogs) {
  size_t n = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("tests/cases/logs/innocent")) {
    const auto text = ReadFile(entry.path().string());
    ASSERT_TRUE(text.ok());
    const Diagnosis d = Diagnose(
        {Scan(entry.path().filename().string(), *text)}, Known().catalogue);
    EXPECT_TRUE(d.findings.empty()) << entry.path() << "\n" << Told(d);
    EXPECT_FALSE(d.has_first);
    ++n;
  }
  EXPECT_GE(n, 40u);
}

// A rule without a case is a guess.
TEST(LogCasesTest, EveryRuleIsOfTheCatalogueAndHasACase) {
  std::set<std::string> in_cases;
  RuleSet rules;
  RuleSet::Found found;
  std::set<const Rule*> hit;
  for (const char* file : {"reports.jsonl", "kinds.jsonl", "rules.jsonl"}) {
    for (const json& one : Cases(file)) {
      std::istringstream lines(one["text"].get<std::string>());
      for (std::string line; std::getline(lines, line);) {
        rules.Find(line, found);
        hit.insert(found.rules.begin(), found.rules.end());
      }
    }
  }
  for (const Rule& rule : Rules()) {
    EXPECT_NE(Known().catalogue.Find(rule.id), nullptr) << rule.id;
    EXPECT_TRUE(hit.contains(&rule)) << rule.id << " " << rule.all[0];
  }
}

TEST(LogCasesTest, RulesFindTheirEntry) {
  for (const json& one : Cases("rules.jsonl")) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const Diagnosis d = Diagnose(
        {Scan("case.log", "ascend npu-smi\n" + one["text"].get<std::string>())},
        Known().catalogue);
    const std::string id = one["first"];
    EXPECT_TRUE(std::any_of(
        d.findings.begin(), d.findings.end(),
        [&](const Finding& finding) { return finding.entry->id == id; }))
        << id << " in\n"
        << Told(d);
  }
}

}  // namespace
}  // namespace belay::logs
