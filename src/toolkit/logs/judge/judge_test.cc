// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "diag/catalogue.h"
#include "toolkit/logs/judge/clocks.h"
#include "toolkit/logs/judge/diagnosis.h"
#include "toolkit/logs/judge/scanner.h"

namespace belay::logs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const Knowledge& Known() {
  static const diag::Catalogue catalogue =
      diag::Catalogue::LoadEmbedded().value();
  static const Knowledge knowledge(catalogue);
  return knowledge;
}

FileFacts Scan(const std::string& name, const std::string& text,
               size_t piece = std::string::npos) {
  Scanner scanner(Known(), name);
  for (size_t at = 0; at < text.size(); at += piece) {
    scanner.Feed(std::string_view(text).substr(at, piece));
    if (piece == std::string::npos) break;
  }
  scanner.End();
  return scanner.TakeFacts();
}

TEST(ScannerTest, PiecesDoNotMatter) {
  const std::string text =
      "[INFO] RUNTIME(5,):2026-01-01-00:00:00.000.001 [a.cc:1]5 F:hello\r\n"
      "[ERROR] RUNTIME(5,):2026-01-01-00:00:01.000.001 [a.cc:1]5 F:"
      "ErrCode=507035, desc=[vector core exception]\r\n"
      "        kernel_name=MoeFoo_ND_BF16 failed\n"
      "no newline at the end: error code is 507014";
  const FileFacts whole = Scan("a", text);
  ASSERT_EQ(whole.events.size(), 3u);
  EXPECT_EQ(whole.n_lines, 4u);
  EXPECT_EQ(whole.events[0].line, 2u);
  EXPECT_EQ(whole.events[0].pid, 5);
  EXPECT_EQ(whole.blocks[0].op, "MoeFoo");
  for (const size_t piece : {1, 2, 7, 64}) {
    const FileFacts parts = Scan("a", text, piece);
    ASSERT_EQ(parts.events.size(), whole.events.size());
    EXPECT_EQ(parts.n_lines, whole.n_lines);
    for (size_t i = 0; i < parts.events.size(); ++i) {
      EXPECT_EQ(parts.events[i].line, whole.events[i].line);
      EXPECT_EQ(parts.events[i].text, whole.events[i].text);
    }
  }
}

TEST(ScannerTest, LongLinesAreCutAndCounted) {
  std::string text(200000, 'x');
  text += " error code is 507014\nRuntimeError: error code is 507035\n";
  const FileFacts facts = Scan("a", text, 1000);
  EXPECT_EQ(facts.n_lines, 2u);
  EXPECT_EQ(facts.n_cut_lines, 1u);
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_EQ(facts.events[0].line, 2u);
}

TEST(ScannerTest, RepeatedErrorsAreCountedNotKept) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "NPU x, error code is 507014\n";
  const FileFacts facts = Scan("a", text);
  EXPECT_EQ(facts.events.size(), kMaxEventsOfEntry);
  EXPECT_EQ(facts.counts.begin()->second, 1000u);
  EXPECT_EQ(Diagnose({facts}, Known().catalogue).findings[0].count, 1000u);
}

TEST(ScannerTest, HostileBytesAreMadeReadable) {
  const std::string text =
      std::string("error code is 507014 \x1b[2J\x9b\xff", 26) +
      std::string(1, '\0') + "tail\n";
  const FileFacts facts = Scan("a", text);
  ASSERT_EQ(facts.events.size(), 1u);
  EXPECT_THAT(facts.events[0].text, HasSubstr("\xef\xbf\xbd"));
  EXPECT_THAT(facts.events[0].text, HasSubstr("tail"));
}

TEST(FactsTest, NamesAndOperators) {
  FileFacts facts;
  facts.name = "collect/node1/rank_12/plog/plog-4123_20260101.log";
  FactsFromName(facts);
  EXPECT_EQ(facts.rank, 12);
  EXPECT_EQ(facts.pid, 4123);
  FileFacts of_device;
  of_device.name = "log/debug/device-3/device-24052_20261201042036.log";
  FactsFromName(of_device);
  EXPECT_EQ(of_device.device, 3);
  EXPECT_EQ(of_device.pid, 24052);
  EXPECT_EQ(OperatorIn("call aclnnMoeFooV2 failed"), "aclnnMoeFooV2");
  EXPECT_EQ(OperatorIn("fault kernel_name=MoeFooV2_ND_BF16"), "MoeFooV2");
  EXPECT_EQ(OperatorIn("OpName:[Sparse_0] x"), "Sparse");
  EXPECT_EQ(OperatorIn("Failed to execute operator Moe_4507."), "Moe");
  EXPECT_EQ(OperatorIn("nothing"), "");
  EXPECT_THAT(BlamedIn("from remote rank: [24]. base"), ElementsAre(24));
  EXPECT_THAT(BlamedIn("connect agent[1,3,5,]"), ElementsAre(1, 3, 5));
  EXPECT_TRUE(BlamedIn("remote rank: [unknown]").empty());
}

// A line between those of a rank is of that rank.
TEST(DiagnosisTest, LinesWithoutARankTakeTheIncidents) {
  const Diagnosis d = Diagnose(
      {Scan("a",
            "[ERROR] 2026-01-02-03:04:05 (PID:12, Device:1, RankID:5) ERR00100 "
            "PTA call acl api failed\n"
            "[Error]: The vector core execution is abnormal.\n"
            "        fault, error code is 507035\n")},
      Known().catalogue);
  ASSERT_TRUE(d.has_first);
  EXPECT_EQ(d.findings[0].entry->id, "RT-047");
  EXPECT_EQ(d.findings[0].place.rank, 5);
  EXPECT_EQ(d.findings[0].place.device, 1);
}

// 16 ranks: one faults, the others wait for it and say so two minutes later.
// The clock of every fourth rank is an hour ahead or behind.
std::vector<FileFacts> SixteenRanks(int culprit, bool with_common_lines) {
  std::vector<FileFacts> files;
  for (int rank = 0; rank < 16; ++rank) {
    const int hour = rank % 4 != 3 ? 10 : rank % 8 == 3 ? 9 : 11;
    std::string text;
    const auto at = [&](int minute, int second) {
      return fmt::format("2026-03-01-{:02}:{:02}:{:02}.{:03}.000", hour, minute,
                         second, rank);
    };
    for (int step = 0; step < 10 && with_common_lines; ++step) {
      text += fmt::format("[INFO] APP({},python):{} step {} done\n",
                          4000 + rank, at(0, step), step);
    }
    if (rank == culprit) {
      text += fmt::format(
          "[ERROR] RUNTIME({0},python):{1} [x.cc:1]{0} Sync:ErrCode=507015, "
          "desc=[aicore exception], InnerCode=0x715005e\n",
          4000 + rank, at(10, 5));
    } else {
      text += fmt::format(
          "EI0002: [PID: {}] {} The wait execution of the Notify register "
          "times out. Reason: no record from remote rank: [{}].\n",
          4000 + rank, at(12, 5),
          with_common_lines ? (rank + 1) % 16 : culprit);
    }
    files.push_back(Scan(fmt::format("run/rank_{}/app.log", rank), text));
  }
  return files;
}

TEST(DiagnosisTest, FindsTheFirstOfSixteenRanksWithSkewedClocks) {
  for (const int culprit : {0, 3, 6, 7, 15}) {
    for (const bool with_common_lines : {true, false}) {
      SCOPED_TRACE(fmt::format("{} {}", culprit, with_common_lines));
      const Diagnosis d =
          Diagnose(SixteenRanks(culprit, with_common_lines), Known().catalogue);
      ASSERT_TRUE(d.has_first);
      EXPECT_EQ(d.findings[0].entry->id, "RT-040");
      EXPECT_EQ(d.findings[0].place.rank, culprit);
      EXPECT_EQ(d.ranks.size(), 16u);
      if (with_common_lines) {
        EXPECT_THAT(d.findings[0].place.time,
                    testing::StartsWith("2026-03-01T10:10:05"));
      }
    }
  }
}

// Two ranks fault; by their clocks the wrong one was first.
TEST(DiagnosisTest, CorrectedClocksOrderFaults) {
  std::vector<FileFacts> files = SixteenRanks(5, true);
  std::string text;
  for (int step = 0; step < 10; ++step) {
    text += fmt::format(
        "[INFO] APP(9,python):2026-03-01-09:00:{:02}.000.000 step {} done\n",
        step, step);
  }
  text +=
      "[ERROR] RUNTIME(9,python):2026-03-01-09:11:00.000.000 [x.cc:1]9 S:"
      "ErrCode=507034, desc=[vector core timeout]\n";
  files[3] = Scan("run/rank_3/app.log", text);  // an hour behind
  const auto offsets = FindClockOffsets(files);
  EXPECT_NEAR(static_cast<double>(offsets[3].us), -3.6e9, 1e6);
  EXPECT_EQ(offsets[0].n_common, 0);
  const Diagnosis d = Diagnose(files, Known().catalogue);
  EXPECT_EQ(d.findings[0].entry->id, "RT-040");
  EXPECT_EQ(d.findings[0].place.rank, 5);
}

TEST(DiagnosisTest, OnlyWaitsIsSaid) {
  const Diagnosis d = Diagnose(
      {Scan("rank_0.log",
            "EI0002: [PID: 1] 2026-01-01-00:00:00.000.001 The wait execution "
            "of the Notify register times out, remote rank: [7].\n")},
      Known().catalogue);
  ASSERT_TRUE(d.has_first);
  EXPECT_TRUE(d.only_waits);
  ASSERT_EQ(d.blamed.size(), 1u);
  EXPECT_EQ(d.blamed[0].first, 7);
}

TEST(DiagnosisTest, TellsWhatItDoesNotKnow) {
  const Diagnosis d =
      Diagnose({Scan("a.log",
                     "2026-01-01 00:00:00 ERROR the frobnicator has jammed\n"
                     "Traceback (most recent call last):\n"
                     "  File \"a.py\", line 1, in <module>\n"
                     "    jam()\n"
                     "frob.JamError: jammed\n"
                     "Segmentation fault (core dumped)\n")},
               Known().catalogue);
  EXPECT_FALSE(d.has_first);
  EXPECT_TRUE(d.findings.empty());
  ASSERT_EQ(d.suspicious.size(), 3u);
  EXPECT_THAT(d.suspicious[0].first.text, HasSubstr("Segmentation"));
  EXPECT_THAT(d.suspicious[1].first.text, HasSubstr("JamError"));
}

TEST(DiagnosisTest, KnownIssuesNeedTheirOperator) {
  const auto known = [](const std::string& text) {
    std::vector<std::string> ids;
    const Diagnosis d = Diagnose({Scan("a.log", text)}, Known().catalogue);
    for (const diag::Entry* issue : d.findings[0].known) {
      ids.push_back(issue->id);
    }
    return ids;
  };
  EXPECT_THAT(known("call aclnnMoeDistributeDispatchV2 failed, error code is "
                    "507014"),
              testing::Contains("ISSUE-101"));
  EXPECT_THAT(known("call aclnnMatmul failed, error code is 507014"),
              testing::Not(testing::Contains("ISSUE-101")));
}

TEST(DiagnosisTest, TimesWithoutYearTakeThatOfTheOthers) {
  const Diagnosis d = Diagnose(
      {Scan("a.log",
            "(Worker_TP1 pid=7) ERROR 08-12 10:00:05 [a.py:1] aclrtFoo "
            "failed, error code is 507035\n"),
       Scan("b.log",
            "[ERROR] HCCL(8,x):2026-08-12-10:00:01.000.000 [y.cc:1] [8]error "
            "cqe status:12\n")},
      Known().catalogue);
  EXPECT_EQ(d.findings[0].entry->id, "HCCL-010");
  EXPECT_EQ(d.findings[1].place.time, "2026-08-12T10:00:05");
}

}  // namespace
}  // namespace belay::logs
