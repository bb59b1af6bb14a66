// SPDX-License-Identifier: Apache-2.0
// Runs tests/cases/doctor: recorded machines, good and broken, with exactly the
// ids that must be found.
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "diag/catalogue.h"
#include "gtest/gtest.h"
#include "toolkit/doctor/doctor.h"
#include "toolkit/doctor/machine/recorded.h"
#include "toolkit/doctor/report/report.h"

namespace belay::doctor {
namespace {

using nlohmann::json;

const diag::Catalogue& Known() {
  static const diag::Catalogue catalogue =
      diag::Catalogue::LoadEmbedded().value();
  return catalogue;
}

const json& Base(const std::string& name) {
  static std::map<std::string, json> machines;
  const auto found = machines.find(name);
  if (found != machines.end()) return found->second;
  const auto text = ReadFile("tests/cases/doctor/machines/" + name + ".json");
  EXPECT_TRUE(text.ok()) << text.status();
  return machines.emplace(name, json::parse(text.ok() ? *text : "{}"))
      .first->second;
}

// A machine with its patch.
StatusOr<std::unique_ptr<Machine>> MachineOf(const json& one) {
  json machine = Base(one["machine"]);
  machine.merge_patch(one["patch"]);
  return ParseMachine(machine.dump(), "case");
}

std::vector<json> Cases() {
  const auto text = ReadFile("tests/cases/doctor/cases.jsonl");
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<json> cases;
  std::istringstream stream(text.ok() ? *text : "");
  for (std::string line; std::getline(stream, line);) {
    cases.push_back(json::parse(line));
  }
  return cases;
}

std::vector<std::string> IdsOf(const Verdict& verdict) {
  std::vector<std::string> ids;
  for (const Finding& finding : verdict.findings) ids.push_back(finding.id);
  std::sort(ids.begin(), ids.end());
  return ids;
}

TEST(DoctorCasesTest, ExactlyTheExpectedFindings) {
  const auto cases = Cases();
  EXPECT_GE(cases.size(), 130u);
  for (const json& one : cases) {
    SCOPED_TRACE(one["name"].get<std::string>());
    const auto recorded = MachineOf(one);
    ASSERT_TRUE(recorded.ok()) << recorded.status();
    Options options;
    options.model = one["model"];
    std::unique_ptr<Machine> peer;
    if (one.contains("peer")) {
      peer = MachineOf(one["peer"]).value();
      options.peers = {{"the other", peer.get()}};
    }
    Facts host;
    if (one.contains("against")) {
      host = ReadFacts(*MachineOf(one["against"]).value());
      options.against = &host;
    }
    const Verdict verdict = Examine(**recorded, Known(), options);
    auto expected = one["expect"].get<std::vector<std::string>>();
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(IdsOf(verdict), expected) << VerdictToText(verdict, Known(), {});
    // What a recording of the machine says is the same.
    Recorder recorder(**recorded);
    Examine(recorder, Known(), options);
    const auto again = ParseMachine(recorder.ToJson(), "recording");
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(IdsOf(Examine(**again, Known(), options)), expected);
  }
}

// A check without a case is a guess.
TEST(DoctorCasesTest, EveryPitfallOfTheAreaHasACase) {
  std::set<std::string> seen;
  for (const json& one : Cases()) {
    for (const std::string id : one["expect"]) seen.insert(id);
  }
  for (const diag::Entry& entry : Known().entries()) {
    if (entry.area == "DOCT" && entry.kind == diag::Kind::kPitfall) {
      EXPECT_TRUE(seen.contains(entry.id)) << entry.id;
    }
  }
  for (const std::string& id : seen) {
    EXPECT_NE(Known().Find(id), nullptr) << id;
  }
}

}  // namespace
}  // namespace belay::doctor
