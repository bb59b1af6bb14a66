// SPDX-License-Identifier: Apache-2.0
#include "diag/lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace belay::diag {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kFile[] = R"({"schema": 1, "entries": [
  {"id": "RT-001", "area": "RT", "kind": "code", "severity": "error",
   "title": {"en": "device memory is full", "zh": "设备内存不足"},
   "cause": {"en": "Weights and caches do not fit.", "zh": "权重与缓存放不下。"},
   "fix": {"en": "Lower the batch.", "zh": "减小批次。"}, "sources": ["s"],
   "names": ["halMemAlloc"], "keywords": ["out of memory"],
   "codes": [
     {"component": "runtime", "code": "207001", "symbol": "ACL_ERROR_RT_MEMORY"},
     {"component": "dcmi", "code": "-8005"},
     {"component": "driver", "code": "9"},
     {"component": "event", "code": "0x80e18400"}]},
  {"id": "HCCL-001", "area": "HCCL", "kind": "code", "severity": "error",
   "title": {"en": "links timed out", "zh": "建链超时"},
   "cause": {"en": "A rank is dead.", "zh": "有 rank 已死。"},
   "fix": {"en": "Find it.", "zh": "找到它。"}, "sources": ["s"],
   "codes": [{"component": "hccl", "code": "9", "symbol": "HCCL_E_TIMEOUT"},
             {"component": "cann", "code": "EI9999"},
             {"component": "cann", "code": "EI0006"}]},
  {"id": "ENV-001", "area": "ENV", "kind": "env", "severity": "info",
   "title": {"en": "time limit for links", "zh": "建链时限"},
   "cause": {"en": "c", "zh": "因"}, "fix": {"en": "f", "zh": "解"},
   "sources": ["s"],
   "variable": {"name": "HCCL_CONNECT_TIMEOUT", "status": "real"}}]})";

const Catalogue& Small() {
  static const Catalogue catalogue = [] {
    Catalogue loaded;
    EXPECT_TRUE(loaded.AddFile(kFile, "test").ok());
    return loaded;
  }();
  return catalogue;
}

Answer Ask(std::string_view query) { return LookUp(Small(), query); }

std::vector<std::string> CodesOf(const Answer& answer) {
  std::vector<std::string> codes;
  for (const Hit& hit : answer.hits) {
    codes.push_back(hit.code != nullptr ? hit.code->code : hit.entry->id);
  }
  return codes;
}

TEST(LookUpTest, FindsIds) {
  const Answer answer = Ask("rt-001");
  EXPECT_EQ(answer.by, FoundBy::kId);
  EXPECT_TRUE(answer.is_clear);
  EXPECT_THAT(CodesOf(answer), ElementsAre("RT-001"));
}

TEST(LookUpTest, ComparesCodesAsNumbers) {
  for (const char* query :
       {"207001", "0x32899", "0x00032899", " 207001. ", "error code is 207001",
        "(207001)", "runtime result = 207001[FUNC:x]"}) {
    EXPECT_THAT(CodesOf(Ask(query)), ElementsAre("207001")) << query;
    EXPECT_EQ(Ask(query).by, FoundBy::kCode) << query;
  }
  for (const char* query : {"-8005", "4294959291", "0xFFFFE0BB"}) {
    EXPECT_THAT(CodesOf(Ask(query)), ElementsAre("-8005")) << query;
  }
  EXPECT_THAT(CodesOf(Ask("0x80E18400")), ElementsAre("0x80e18400"));
  EXPECT_THAT(CodesOf(Ask("2162263040")), ElementsAre("0x80e18400"));
}

TEST(LookUpTest, ASharedNumberFindsAllAndAComponentChooses) {
  const Answer both = Ask("9");
  EXPECT_EQ(both.hits.size(), 2u);
  EXPECT_FALSE(both.is_clear);
  EXPECT_EQ(Ask("hccl 9").hits.at(0).entry->id, "HCCL-001");
  EXPECT_EQ(Ask("drvRetCode=9").hits.at(0).entry->id, "RT-001");
  EXPECT_EQ(Ask("drvRetCode=9").hits.size(), 1u);
}

TEST(LookUpTest, SmallNumbersAmongWordsAreNoCodes) {
  EXPECT_NE(Ask("links timed out after 9 s").by, FoundBy::kCode);
}

TEST(LookUpTest, FindsSymbolsAndECodesWithAnyCapitals) {
  EXPECT_THAT(CodesOf(Ask("hccl_e_timeout")), ElementsAre("9"));
  EXPECT_THAT(CodesOf(Ask("ei0006")), ElementsAre("EI0006"));
  EXPECT_THAT(CodesOf(Ask("EI0006: [PID: 486] Getting socket times out")),
              ElementsAre("EI0006"));
}

TEST(LookUpTest, CatchAllCodesComeLast) {
  EXPECT_THAT(CodesOf(Ask("EI9999: Inner Error! result = 207001")),
              ElementsAre("207001", "EI9999"));
}

TEST(LookUpTest, FindsVariablesWithTheirValues) {
  for (const char* query : {"HCCL_CONNECT_TIMEOUT", "hccl_connect_timeout=120",
                            "export HCCL_CONNECT_TIMEOUT=120"}) {
    EXPECT_EQ(Ask(query).by, FoundBy::kName) << query;
    EXPECT_EQ(Ask(query).hits.at(0).entry->id, "ENV-001") << query;
  }
  EXPECT_EQ(Ask("halmemalloc").hits.at(0).entry->id, "RT-001");
}

TEST(LookUpTest, ForgivesASlipInALetterButNotInADigit) {
  const Answer slip = Ask("HCCL_CONECT_TIMEOUT");
  EXPECT_EQ(slip.by, FoundBy::kTypo);
  EXPECT_EQ(slip.hits.at(0).entry->id, "ENV-001");
  EXPECT_EQ(Ask("TR-001").hits.at(0).entry->id, "RT-001");
  for (const char* query : {"RT-002", "EI0007", "207002", "0x80e18401"}) {
    EXPECT_EQ(Ask(query).by, FoundBy::kNothing) << query;
  }
}

TEST(LookUpTest, SearchesWordsInBothLanguages) {
  for (const char* query :
       {"out of memory", "memory full", "设备内存", "the caches do not fit"}) {
    EXPECT_EQ(Ask(query).by, FoundBy::kWords) << query;
    EXPECT_EQ(Ask(query).hits.at(0).entry->id, "RT-001") << query;
  }
  EXPECT_EQ(Ask("建链超时").hits.at(0).entry->id, "HCCL-001");
  EXPECT_EQ(Ask("limits for a link").hits.at(0).entry->id, "ENV-001");
}

TEST(LookUpTest, SaysWhenItDoesNotKnow) {
  for (const char* query : {"", " ", "?", "a lovely day at the sea", "天气很好",
                            "\xff\xfe", "\xe4", "\xe4\xb8"}) {
    EXPECT_EQ(Ask(query).by, FoundBy::kNothing) << query;
    EXPECT_THAT(Ask(query).hits, IsEmpty()) << query;
  }
  EXPECT_THAT(Ask("207002").nearest, ElementsAre("207001"));
  EXPECT_THAT(Ask("EI0007").nearest, testing::Contains("EI0006"));
  EXPECT_THAT(Ask("207901").nearest, ElementsAre("207001"));
}

TEST(LookUpTest, LongAndOddQueriesAreSafe) {
  EXPECT_THAT(Ask(std::string(1 << 20, 'x')).hits, IsEmpty());
  std::string odd;
  for (int i = 0; i < 4000; ++i) odd += static_cast<char>(i * 7 + i / 256);
  Ask(odd);
  std::string han;
  for (int i = 0; i < 3000; ++i) han += "存";
  Ask(han);
}

TEST(LookUpTest, KeepsTheLimit) {
  EXPECT_EQ(LookUp(Small(), "9", 1).hits.size(), 1u);
}

}  // namespace
}  // namespace belay::diag
