// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "base/error_ids.h"

namespace belay {
namespace {

ErrorFacts AllFacts() {
  return {.where = "model.safetensors",
          .what = "header",
          .expected = "8 bytes",
          .got = "3 bytes"};
}

TEST(ErrorTest, CarriesIdCodeAndFacts) {
  const Status status = MakeError(kCkptTruncated, AllFacts());
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(ErrorIdOf(status), "CKPT-001");
  const ErrorFacts facts = ErrorFactsOf(status);
  EXPECT_EQ(facts.where, "model.safetensors");
  EXPECT_EQ(facts.what, "header");
  EXPECT_EQ(facts.expected, "8 bytes");
  EXPECT_EQ(facts.got, "3 bytes");
  EXPECT_EQ(status.message(),
            "CKPT-001 model.safetensors: header, expected 8 bytes, got 3 "
            "bytes");
}

TEST(ErrorTest, LeavesOutWhatIsNotKnown) {
  EXPECT_EQ(MakeError(kArgEmptyPrompt, {}).message(), "ARG-004");
  EXPECT_EQ(MakeError(kArgThreads,
                      {.where = "", .what = "", .expected = "1", .got = "0"})
                .message(),
            "ARG-002: expected 1, got 0");
  const ErrorFacts facts = ErrorFactsOf(MakeError(kArgEmptyPrompt, {}));
  EXPECT_EQ(facts.where + facts.what + facts.expected + facts.got, "");
}

TEST(ErrorTest, StatusesFromElsewhereHaveNoIdAndKeepTheirMessage) {
  const Status status = absl::InternalError("oops");
  EXPECT_EQ(ErrorIdOf(status), "");
  EXPECT_EQ(ErrorFactsOf(status).what, "oops");
  EXPECT_EQ(ErrorIdOf(absl::OkStatus()), "");
  EXPECT_EQ(ErrorFactsOf(absl::OkStatus()).what, "");
}

TEST(ErrorTest, ContextGoesInFrontAndTheRestStays) {
  Status status = MakeError(kCkptWrongShape, AllFacts());
  status = WithContext(status, "shard 1");
  status = WithContext(status, "dir");
  EXPECT_EQ(ErrorIdOf(status), kCkptWrongShape.id);
  EXPECT_EQ(status.code(), kCkptWrongShape.code);
  const ErrorFacts facts = ErrorFactsOf(status);
  EXPECT_EQ(facts.where, "dir: shard 1: model.safetensors");
  EXPECT_EQ(facts.expected, "8 bytes");
  EXPECT_EQ(
      ErrorFactsOf(WithContext(MakeError(kArgEmptyPrompt, {}), "run")).where,
      "run");
}

TEST(ErrorTest, ContextOfOtherStatuses) {
  EXPECT_TRUE(WithContext(absl::OkStatus(), "x").ok());
  const Status status = WithContext(absl::InternalError("oops"), "x");
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(status.message(), "x: oops");
}

Status FailIf(bool fail) {
  return fail ? MakeError(kSysInterrupted, {}) : absl::OkStatus();
}
StatusOr<int> SevenUnless(bool fail) {
  BELAY_RETURN_IF_ERROR(FailIf(fail));
  return 7;
}
StatusOr<int> NextOf(bool fail) {
  BELAY_ASSIGN_OR_RETURN(const int seven, SevenUnless(fail));
  return seven + 1;
}

TEST(ErrorTest, MacrosPassErrorsOnAndValuesThrough) {
  EXPECT_EQ(NextOf(false).value(), 8);
  EXPECT_EQ(ErrorIdOf(NextOf(true).status()), kSysInterrupted.id);
}

TEST(ErrorIdsTest, AreUniqueAndWellFormedAndNeverOk) {
  std::set<std::string> seen;
  const std::regex form("[A-Z]+-[0-9]{3}");
  const auto check = [&](const ErrorId& id) {
    EXPECT_TRUE(seen.insert(id.id).second) << id.id << " is used twice";
    EXPECT_TRUE(std::regex_match(id.id, form)) << id.id;
    EXPECT_NE(id.code, absl::StatusCode::kOk) << id.id;
  };
#define BELAY_CHECK_ID(name, text, code) check(name);
  BELAY_ERROR_IDS(BELAY_CHECK_ID)
#undef BELAY_CHECK_ID
  EXPECT_GE(seen.size(), 30u);
}

TEST(CheckDeathTest, SaysWhereAndAborts) {
  BELAY_CHECK(1 + 1 == 2);
  const bool no = false;
  EXPECT_DEATH(BELAY_CHECK(no), "internal error: .*error_test.cc:[0-9]+: no");
}

}  // namespace
}  // namespace belay
