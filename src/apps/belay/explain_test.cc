// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/belay/shell/cli.h"
#include "diag/catalogue.h"

namespace belay::apps {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result Explain(std::vector<std::string> args) {
  std::ostringstream out, err;
  args.insert(args.begin(), "explain");
  const int code = RunBelay(std::move(args), {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

TEST(ExplainTest, PrintsThePageWithAnyCapitals) {
  const Result result = Explain({"CKPT-001"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, StartsWith("error CKPT-001: "));
  for (const char* section : {"\ncause\n", "\nfix\n", "\nsources\n"}) {
    EXPECT_THAT(result.out, HasSubstr(section));
  }
  EXPECT_EQ(Explain({"ckpt-001"}).out, result.out);
}

// Each 7th: every call reads the whole catalogue anew.
TEST(ExplainTest, KnowsItsIdsInBothLanguages) {
  const auto catalogue = diag::Catalogue::LoadEmbedded();
  ASSERT_TRUE(catalogue.ok());
  for (size_t i = 0; i < catalogue->entries().size(); i += 7) {
    const diag::Entry& entry = catalogue->entries()[i];
    const json en = json::parse(Explain({entry.id, "--json"}).out);
    EXPECT_EQ(en["id"], entry.id);
    EXPECT_EQ(en["fix"], entry.fix.en);
    const json zh =
        json::parse(Explain({entry.id, "--json", "--lang", "zh"}).out);
    EXPECT_EQ(zh["lang"], "zh");
    EXPECT_EQ(zh["fix"], entry.fix.zh);
  }
}

TEST(ExplainTest, WhatIsUnknownIsAFindingWithTheNearest) {
  const Result result = Explain({"507099"});
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.err, StartsWith("error ARG-008: not in the catalogue"));
  EXPECT_THAT(result.err, HasSubstr("nearest: 507057"));
  EXPECT_THAT(result.err, HasSubstr("got 507099"));
  EXPECT_EQ(result.out, "");
  const Result far = Explain({"xyzzy"});
  EXPECT_EQ(far.code, 1);
  EXPECT_THAT(far.err, testing::Not(HasSubstr("nearest")));
  EXPECT_EQ(json::parse(Explain({"xyzzy", "--json"}).out)["error"]["id"],
            "ARG-008");
}

TEST(ExplainTest, FindsByCodeInAnyForm) {
  const Result result = Explain({"507034"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(
      result.out,
      StartsWith("507034 ACL_ERROR_RT_VECTOR_CORE_TIMEOUT (runtime): "));
  EXPECT_EQ(Explain({"0x7bc9a"}).out, result.out);
  EXPECT_EQ(Explain({"acl_error_rt_vector_core_timeout"}).out, result.out);
  EXPECT_EQ(Explain({"error", "code", "is", "507034"}).out, result.out);
  EXPECT_THAT(Explain({"-8005"}).out, StartsWith("-8005 (dcmi): "));
  EXPECT_THAT(Explain({"ei0006", "--lang", "zh"}).out, StartsWith("EI0006 "));
}

TEST(ExplainTest, ASharedCodeListsAll) {
  const Result result = Explain({"9"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("9 HCCL_E_TIMEOUT (hccl): "));
  EXPECT_THAT(result.out, HasSubstr("9 DRV_ERROR_UNINIT (driver): "));
  const json several = json::parse(Explain({"9", "--json"}).out);
  EXPECT_EQ(several["found_by"], "code");
  EXPECT_EQ(several["query"], "9");
  EXPECT_EQ(several["results"].size(), 2u);
  EXPECT_FALSE(several.contains("id"));
  EXPECT_THAT(Explain({"hccl", "9"}).out,
              StartsWith("9 HCCL_E_TIMEOUT (hccl): "));
}

TEST(ExplainTest, JsonOfOneHit) {
  const json one = json::parse(Explain({"EI0006", "--json"}).out);
  EXPECT_EQ(one["kind"], "code");
  EXPECT_EQ(one["matched"], "EI0006");
  EXPECT_EQ(one["results"].size(), 1u);
  EXPECT_EQ(one["results"][0]["id"], one["id"]);
  const json wrong = json::parse(Explain({"ASCEND_MEM_SIZE", "--json"}).out);
  EXPECT_EQ(wrong["variable"]["status"], "wrong");
  EXPECT_EQ(wrong["found_by"], "name");
}

TEST(ExplainTest, ASlipIsTakenAndSaid) {
  const Result result = Explain({"CPKT-001"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, StartsWith("Taken as CKPT-001\n\nerror CKPT-001: "));
}

TEST(ExplainTest, ListsEverything) {
  const auto catalogue = diag::Catalogue::LoadEmbedded();
  ASSERT_TRUE(catalogue.ok());
  const std::string text = Explain({"--list"}).out;
  for (const diag::Entry& entry : catalogue->entries()) {
    EXPECT_THAT(text, HasSubstr(entry.id + " "));
    EXPECT_THAT(text, HasSubstr(entry.title.en + "\n"));
  }
  const json list = json::parse(Explain({"--list", "--json"}).out);
  EXPECT_EQ(list.size(), catalogue->entries().size());
  EXPECT_EQ(list[0]["id"], catalogue->entries()[0].id);
}

TEST(ExplainTest, ReadsAFolderOfTheUser) {
  namespace fs = std::filesystem;
  std::string folder = fs::temp_directory_path() / "belay_explain.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  std::ofstream(folder + "/site.json") << R"({"schema": 1, "entries": [{
    "id": "SITE-001", "area": "SITE", "kind": "pitfall", "severity": "info",
    "title": {"en": "the night job", "zh": "夜间任务"},
    "cause": {"en": "c", "zh": "因"}, "fix": {"en": "f", "zh": "解"},
    "sources": []}]})";
  EXPECT_THAT(Explain({"site-001", "--catalogue", folder}).out,
              StartsWith("info SITE-001: the night job"));
  std::ofstream(folder + "/codes.json") << R"({"schema": 1, "entries": [{
    "id": "SITE-002", "area": "SITE", "kind": "code", "severity": "error",
    "title": {"en": "our robot stopped", "zh": "机器人停机"},
    "cause": {"en": "c", "zh": "因"}, "fix": {"en": "f", "zh": "解"},
    "codes": [{"component": "robot", "code": "4711", "symbol": "R_STOP"}],
    "sources": []}]})";
  for (const char* query : {"4711", "0x1267", "r_stop", "robot stopped"}) {
    EXPECT_THAT(Explain({query, "--catalogue", folder}).out,
                HasSubstr("error SITE-002: our robot stopped"))
        << query;
  }
  std::ofstream(folder + "/worse.json") << "[";
  const Result bad = Explain({"SITE-001", "--catalogue", folder});
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.err, StartsWith("error DIAG-001: " + folder + "/worse.json"));
  EXPECT_EQ(Explain({"SITE-001", "--catalogue", folder + "/no"}).code, 3);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace belay::apps
