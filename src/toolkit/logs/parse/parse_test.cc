// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "diag/catalogue.h"
#include "toolkit/logs/parse/codes.h"
#include "toolkit/logs/parse/line_head.h"
#include "toolkit/logs/parse/matcher.h"
#include "toolkit/logs/parse/rules.h"
#include "toolkit/logs/parse/time_stamp.h"

namespace belay::logs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string Time(std::string_view text) {
  const auto parsed = ParseTime(text);
  return parsed ? FormatTime(parsed->time) : "none";
}

TEST(TimeStampTest, ReadsWhatLogsWrite) {
  EXPECT_EQ(Time("2026-06-02-04:45:20.827.387 x"),
            "2026-06-02T04:45:20.827387");
  EXPECT_EQ(Time("2025-11-13 19:10:42.153018+08:00 -"),
            "2025-11-13T19:10:42.153018");
  EXPECT_EQ(Time("2025-10-11T15:09:34Z"), "2025-10-11T15:09:34");
  EXPECT_EQ(Time("2025/10/11 15:09:34 [error]"), "2025-10-11T15:09:34");
  EXPECT_EQ(Time("20251012 10:00:00.123456 12"), "2025-10-12T10:00:00.123456");
  EXPECT_EQ(Time("08-12 10:00:00 [core.py:1]"), "08-12T10:00:00");
  EXPECT_EQ(Time("Aug  1 08:38:31 host"), "08-01T08:38:31");
  EXPECT_EQ(Time("Aug 12 08:38:31 host"), "08-12T08:38:31");
  EXPECT_EQ(Time("0812 10:00:00.123456 1"), "08-12T10:00:00.123456");
  EXPECT_EQ(Time("2025-10-11 15:09:34,123 x"), "2025-10-11T15:09:34.123000");
}

TEST(TimeStampTest, RefusesWhatIsNone) {
  for (const char* text :
       {"", "2026-06-02", "2026-13-02-04:45:20", "2026-06-02-24:45:20",
        "2026-06-02-04:61:20", "99-99 10:00:00", "1234567890123456",
        "Foo  1 08:38:31", "2026-06-02-04:4", "0000-00-00 00:00:00"}) {
    EXPECT_EQ(Time(text), "none") << text;
  }
}

TEST(TimeStampTest, DaysAndYears) {
  EXPECT_EQ(ParseTime("1970-01-01 00:00:00")->time.us, 0);
  EXPECT_EQ(ParseTime("2024-02-29 00:00:01")->time.us, 1709164801000000);
  EXPECT_EQ(YearOf(ParseTime("2024-12-31 23:59:59")->time.us), 2024);
  const auto parsed = ParseTime("Aug  1 08:38:31 ");
  EXPECT_EQ(FormatTime({WithYear(parsed->time.us, 2026), true}),
            "2026-08-01T08:38:31");
}

struct HeadCase {
  const char* line;
  Level level;
  const char* time;
  int pid, rank, device;
  const char* message;
};

TEST(LineHeadTest, Formats) {
  const HeadCase cases[] = {
      {"[ERROR] RUNTIME(2723298,):2026-06-02-04:45:20.827.387 [a.cc:65]27 F:x",
       Level::kError, "2026-06-02T04:45:20.827387", 2723298, -1, -1,
       "[a.cc:65]27 F:x"},
      {"[WARNING] HCCL(26056,aicpu_scheduler):2025-12-30-15:08:28.046.768 [x]",
       Level::kWarning, "2025-12-30T15:08:28.046768", 26056, -1, -1, "[x]"},
      {"[ERROR] 2025-09-17-04:55:13 (PID:553, Device:4, RankID:12) ERR00100 P",
       Level::kError, "2025-09-17T04:55:13", 553, 12, 4, "ERR00100 P"},
      {"EL0004: [PID: 553] 2025-09-17-04:55:13.065.712 Failed", Level::kError,
       "2025-09-17T04:55:13.065712", 553, -1, -1,
       "EL0004: [PID: 553] 2025-09-17-04:55:13.065.712 Failed"},
      {"[PID: 1035] 2026-09-16-11:00:43.191.752 Execution_Error(EZ1008): x",
       Level::kNone, "2026-09-16T11:00:43.191752", 1035, -1, -1,
       "Execution_Error(EZ1008): x"},
      {"(Worker_TP3 pid=12) ERROR 08-12 10:00:00 [core.py:12] boom",
       Level::kError, "08-12T10:00:00", 12, 3, -1, "[core.py:12] boom"},
      {"[2025-08-12 10:00:00 TP5] Scheduler hit", Level::kNone,
       "2025-08-12T10:00:00", -1, 5, -1, "Scheduler hit"},
      {"[2025-08-12 10:00:00,123] [22] [33] [llm] [ERROR] [a.cpp:1] : x",
       Level::kError, "2025-08-12T10:00:00.123000", 22, -1, -1,
       "[a.cpp:1] : x"},
      {"E20250812 10:00:00.123456 123 file.cpp:12] x", Level::kError,
       "2025-08-12T10:00:00.123456", -1, -1, -1, "123 file.cpp:12] x"},
      {"[rank7]: RuntimeError: x", Level::kNone, "", -1, 7, -1,
       "RuntimeError: x"},
      {"2025-11-13 19:10:42.153018+08:00 - a.b - ERROR - Failed", Level::kError,
       "2025-11-13T19:10:42.153018", -1, -1, -1, "Failed"},
      {"Error Code : A4025021", Level::kNone, "", -1, -1, -1,
       "Error Code : A4025021"},
      {"plain words", Level::kNone, "", -1, -1, -1, "plain words"},
      {"", Level::kNone, "", -1, -1, -1, ""}};
  for (const HeadCase& c : cases) {
    SCOPED_TRACE(c.line);
    const LineHead head = ParseHead(c.line);
    EXPECT_EQ(head.level, c.level);
    EXPECT_EQ(head.time ? FormatTime(*head.time) : "", c.time);
    EXPECT_EQ(head.pid, c.pid);
    EXPECT_EQ(head.rank, c.rank);
    EXPECT_EQ(head.device, c.device);
    EXPECT_EQ(std::string_view(c.line).substr(head.n_chars), c.message);
  }
}

TEST(LineHeadTest, KernelLines) {
  const LineHead syslog = ParseHead(
      "Aug  1 08:38:31 node kernel: [ 1197.584409] [ascend] [ERROR] [m] x");
  EXPECT_TRUE(syslog.is_kernel);
  EXPECT_EQ(syslog.level, Level::kError);
  EXPECT_TRUE(syslog.time.has_value());
  const LineHead plain = ParseHead("[12345.678901] ascend: device 0");
  EXPECT_TRUE(plain.is_kernel);
  EXPECT_FALSE(plain.time.has_value());
  const LineHead dated = ParseHead("[Fri Aug  1 08:38:31 2025] [ascend] x");
  ASSERT_TRUE(dated.time.has_value());
  EXPECT_EQ(FormatTime(*dated.time), "2025-08-01T08:38:31");
}

TEST(MatcherTest, FindsOverlappingTextsInAnyCase) {
  const std::string_view patterns[] = {"abc", "bc", "c", "xabcd", "zz", "b c"};
  const Matcher matcher(patterns);
  PatternSet found;
  EXPECT_TRUE(matcher.Find("..XABCd", found));
  EXPECT_TRUE(found.test(0) && found.test(1) && found.test(2) && found.test(3));
  EXPECT_FALSE(found.test(4) || found.test(5));
  found.reset();
  EXPECT_FALSE(matcher.Find("ab ab z\xff\x01", found));
  EXPECT_TRUE(found.none());
}

std::vector<std::string> Codes(const CodeIndex& index, std::string_view line,
                               std::string_view module = "") {
  std::vector<std::string> codes;
  for (const FoundCode& code : index.Find(line, module)) {
    codes.push_back(code.text);
  }
  return codes;
}

TEST(CodesTest, OnlyWhereWordsSaySo) {
  const auto catalogue = diag::Catalogue::LoadEmbedded();
  ASSERT_TRUE(catalogue.ok());
  const CodeIndex index(*catalogue);
  EXPECT_THAT(Codes(index, "SetDevice(id), error code is 507033"),
              ElementsAre("507033"));
  EXPECT_THAT(Codes(index, "runtime result = 107001."), ElementsAre("107001"));
  EXPECT_THAT(Codes(index, "x:ErrCode=507035, InnerCode=0x715005e"),
              ElementsAre("507035", "0x715005e"));
  EXPECT_THAT(Codes(index, "errno[361001] OpName:[Foo_0]"),
              ElementsAre("361001"));
  EXPECT_THAT(Codes(index, "errNo[0x0000000005000009] x"), ElementsAre("9"));
  EXPECT_THAT(Codes(index, "HcclCommPrepare fail, ret: 0x9"), ElementsAre("9"));
  EXPECT_THAT(Codes(index, "foo failed, ret[15].", "HCCL"), ElementsAre("15"));
  EXPECT_THAT(Codes(index, "halMemAlloc failed, drvRetCode=6"),
              ElementsAre("6"));
  EXPECT_THAT(Codes(index, "dcmi initialize failed. ret is -8005"),
              ElementsAre("-8005"));
  EXPECT_THAT(Codes(index, "EZ9999[PID: 1] x (EZ9999): y"),
              ElementsAre("EZ9999"));
  EXPECT_THAT(Codes(index, "event id=0x81AF8000, severity=2"),
              ElementsAre("0x81af8000"));
  EXPECT_THAT(Codes(index, "ERR00100 PTA call acl api failed"),
              ElementsAre("ERR00100"));
  EXPECT_THAT(Codes(index, "ret: ACL_ERROR_RT_AICORE_TIMEOUT"),
              ElementsAre("ACL_ERROR_RT_AICORE_TIMEOUT"));
  for (const char* line :
       {"step 507014 done", "507015 samples, 0 failed", "failed 500000 times",
        "port[60000] closed, return[11]", "see EI0006 in the manual", "errno 2",
        "exit code 9", "hash ee9999", "-8005", "retry 107001/200000",
        "error code = 0", "rank 9"}) {
    EXPECT_THAT(Codes(index, line), IsEmpty()) << line;
  }
}

TEST(RulesTest, NeedsAllTextsAndNoneOfTheOthers) {
  const RuleSet rules;
  RuleSet::Found found;
  rules.Find("topo exchange server get socket timeout! timeout[120 s]", found);
  ASSERT_EQ(found.rules.size(), 1u);
  EXPECT_EQ(found.rules[0]->id, "ESTR-050");
  rules.Find("all is well", found);
  EXPECT_FALSE(found.any());
}

}  // namespace
}  // namespace belay::logs
