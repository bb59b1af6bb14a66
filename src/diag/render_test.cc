// SPDX-License-Identifier: Apache-2.0
#include "diag/render.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error_ids.h"
#include "diag/wrap.h"

namespace belay::diag {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kFile[] = R"({"schema": 1, "entries": [{
  "id": "CKPT-001", "area": "CKPT", "kind": "error", "severity": "error",
  "title": {"en": "the file is too short", "zh": "文件过短"},
  "cause": {"en": "It ended early.", "zh": "提前结束。"},
  "fix": {"en": "Fetch it again.", "zh": "重新下载。"},
  "check": {"en": "Compare sizes.", "zh": "比较大小。"},
  "sources": ["https://example.org/a", "b"], "versions": ["1", "2"]}, {
  "id": "CKPT-009", "area": "CKPT", "kind": "error", "severity": "warning",
  "title": {"en": "unknown tensor", "zh": "未知张量"},
  "cause": {"en": "c", "zh": "因"}, "fix": {"en": "f", "zh": "解"},
  "sources": []}]})";

const Catalogue& Small() {
  static const Catalogue catalogue = [] {
    Catalogue loaded;
    EXPECT_TRUE(loaded.AddFile(kFile, "test").ok());
    return loaded;
  }();
  return catalogue;
}

Status Truncated() {
  return MakeError(kCkptTruncated, {.where = "model.safetensors",
                                    .what = "last tensor",
                                    .expected = "64 bytes",
                                    .got = "12 bytes"});
}

TEST(RenderErrorTest, English) {
  EXPECT_EQ(RenderError(Truncated(), Small(), {}),
            "error CKPT-001: model.safetensors: the file is too short (last "
            "tensor, expected 64 bytes, got 12 bytes)\n"
            "  fix: Fetch it again.\n"
            "  more: belay explain CKPT-001\n");
}

TEST(RenderErrorTest, Chinese) {
  EXPECT_EQ(RenderError(Truncated(), Small(), {.lang = Lang::kZh}),
            "错误 CKPT-001：model.safetensors：文件过短（last tensor，应为 64 "
            "bytes，实为 12 bytes）\n"
            "  处理：重新下载。\n"
            "  详情：belay explain CKPT-001\n");
}

TEST(RenderErrorTest, WithoutFactsAndAsAWarning) {
  EXPECT_THAT(RenderError(MakeError(kCkptUnknownTensor, {}), Small(), {}),
              StartsWith("warning CKPT-009: unknown tensor\n"));
}

TEST(RenderErrorTest, UnknownIdsAndForeignStatusesStillSpeak) {
  EXPECT_EQ(RenderError(MakeError(kArgThreads, {.where = "threads",
                                                .what = "",
                                                .expected = "1",
                                                .got = "0"}),
                        Small(), {}),
            "error ARG-002: ARG-002 threads: expected 1, got 0\n");
  EXPECT_EQ(RenderError(absl::InternalError("oops"), Small(), {}),
            "error: oops\n");
}

TEST(RenderErrorTest, ColourIsOnlyThereWhenAskedFor) {
  EXPECT_THAT(RenderError(Truncated(), Small(), {}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(RenderError(Truncated(), Small(), {.color = true}),
              StartsWith("\x1b[1;31merror CKPT-001\x1b[0m: model"));
}

// A file name or a header can hold anything; it must not steer the terminal.
TEST(RenderErrorTest, ControlCharactersAreWrittenOut) {
  const std::string text =
      RenderError(MakeError(kCkptTruncated, {.where = "a\x1b[2Jb",
                                             .what = "x\ny\x7f",
                                             .expected = "\xc2\x9b",
                                             .got = "ü 中"}),
                  Small(), {});
  EXPECT_THAT(text, HasSubstr("a\\x1b[2Jb"));
  EXPECT_THAT(text, HasSubstr("x\\x0ay\\x7f"));
  EXPECT_THAT(text, HasSubstr("expected \\x9b"));
  EXPECT_THAT(text, HasSubstr("got ü 中"));
}

TEST(ErrorToJsonTest, HasAllKeys) {
  EXPECT_EQ(ErrorToJson(Truncated(), Small(), Lang::kZh).dump(),
            R"({"id":"CKPT-001","severity":"error",)"
            R"("where":"model.safetensors","what":"last tensor",)"
            R"("expected":"64 bytes","got":"12 bytes","title":"文件过短",)"
            R"("fix":"重新下载。"})");
  EXPECT_EQ(ErrorToJson(absl::InternalError("oops"), Small(), Lang::kEn).dump(),
            R"({"id":"","severity":"error","where":"","what":"oops",)"
            R"("expected":"","got":"","title":"","fix":""})");
}

TEST(RenderEntryTest, EnglishPage) {
  EXPECT_EQ(RenderEntry(*Small().Find("CKPT-001"), {}),
            "error CKPT-001: the file is too short\n"
            "\ncause\n  It ended early.\n"
            "\nfix\n  Fetch it again.\n"
            "\ncheck\n  Compare sizes.\n"
            "\nversions\n  1, 2\n"
            "\nsources\n  https://example.org/a\n  b\n");
}

TEST(RenderEntryTest, ChinesePageWithoutEmptySections) {
  EXPECT_EQ(RenderEntry(*Small().Find("CKPT-009"), {.lang = Lang::kZh}),
            "警告 CKPT-009：未知张量\n\n原因\n  因\n\n处理\n  解\n");
}

Entry WithEverything() {
  Entry entry;
  entry.id = "TEST-001";
  entry.title = {"t", "题"};
  entry.cause = {"c", "因"};
  entry.fix = {"f", "解"};
  entry.fixed_in = {"CANN 9"};
  entry.codes = {{"hccl", "9", "HCCL_E_TIMEOUT", {"timeout", "超时"}},
                 {"dcmi", "-8005", "", {}}};
  entry.see = {"TEST-002"};
  entry.variable = Variable{.name = "NAME",
                            .status = Variable::Status::kWrong,
                            .reader = "",
                            .values = "0, 1",
                            .fallback = "0",
                            .allowed = {"0", "1"},
                            .range = {0, 1},
                            .instead = "RIGHT",
                            .conflicts = {"OTHER"}};
  entry.table = Table{{"a", "long"}, {{"x", ""}, {"yyy", "z"}}};
  return entry;
}

TEST(RenderEntryTest, CodesVariableAndTable) {
  EXPECT_EQ(RenderEntry(WithEverything(), {}),
            "error TEST-001: t\n"
            "\nvariable\n  NAME\n  status: wrong name: nobody reads it\n"
            "  values: 0, 1\n  default: 0\n  right name: RIGHT\n"
            "  not together with: OTHER\n"
            "\ncause\n  c\n\nfix\n  f\n"
            "\ncodes\n  9 HCCL_E_TIMEOUT (hccl): timeout\n"
            "  -8005 (dcmi): t\n"
            "\nfixed in\n  CANN 9\n\nsee also\n  TEST-002\n"
            "\ntable\n  a    long\n  x\n  yyy  z\n");
}

TEST(EntryToJsonTest, HoldsCodesVariableAndTable) {
  const auto json = EntryToJson(WithEverything(), Lang::kZh);
  EXPECT_EQ(json["codes"][0].dump(),
            R"({"component":"hccl","code":"9","symbol":"HCCL_E_TIMEOUT",)"
            R"("title":"超时"})");
  EXPECT_EQ(json["codes"][1]["title"], "题");
  EXPECT_EQ(json["variable"]["status"], "wrong");
  EXPECT_EQ(json["variable"]["range"].dump(), "[0,1]");
  EXPECT_EQ(json["table"]["rows"].dump(), R"([["x",""],["yyy","z"]])");
  const auto plain = EntryToJson(*Small().Find("CKPT-001"), Lang::kEn);
  EXPECT_TRUE(plain["variable"].is_null());
  EXPECT_TRUE(plain["table"].is_null());
}

TEST(EntryToJsonTest, IsInOneLanguage) {
  const auto json = EntryToJson(*Small().Find("CKPT-001"), Lang::kEn);
  EXPECT_EQ(json["lang"], "en");
  EXPECT_EQ(json["kind"], "error");
  EXPECT_EQ(json["cause"], "It ended early.");
  EXPECT_EQ(json["sources"].size(), 2u);
  EXPECT_EQ(json["socs"].size(), 0u);
}

TEST(RenderTest, EveryEmbeddedEntryFitsItsWidth) {
  const auto catalogue = Catalogue::LoadEmbedded();
  ASSERT_TRUE(catalogue.ok()) << catalogue.status();
  for (const Entry& entry : catalogue->entries()) {
    for (const Lang lang : {Lang::kEn, Lang::kZh}) {
      std::istringstream page(RenderEntry(entry, {.lang = lang}));
      // The first line is one line, so that grep works.
      std::string head;
      std::getline(page, head);
      EXPECT_LE(DisplayWidth(head), 100) << head;
      for (std::string line; std::getline(page, line);) {
        // A URL may be longer; the rows of a table are never broken.
        if (line.find("://") != std::string::npos) continue;
        if (line == "table" || line == "表格") break;
        // A word that is longer than a line stays whole.
        if (line.find(' ', 2) == std::string::npos) continue;
        EXPECT_LE(DisplayWidth(line), 80) << line;
      }
    }
  }
}

TEST(WrapTest, BreaksAtSpacesAndKeepsLongWords) {
  EXPECT_THAT(WrapLines("aa bb cc", 5), ElementsAre("aa bb", "cc"));
  EXPECT_THAT(WrapLines("aa bbbbbbbb cc", 5),
              ElementsAre("aa", "bbbbbbbb", "cc"));
  EXPECT_THAT(WrapLines("a\n\nb", 5), ElementsAre("a", "", "b"));
  EXPECT_THAT(WrapLines("", 5), ElementsAre(""));
}

TEST(WrapTest, ChineseCharactersTakeTwoColumns) {
  EXPECT_EQ(DisplayWidth("a中b"), 4);
  EXPECT_THAT(WrapLines("中文中文", 4), ElementsAre("中文", "中文"));
  EXPECT_THAT(WrapLines("中文 abc 中", 5), ElementsAre("中文", "abc", "中"));
}

TEST(WrapTest, PunctuationStaysWithItsCharacter) {
  EXPECT_THAT(WrapLines("中文，中", 4), ElementsAre("中", "文，", "中"));
  EXPECT_THAT(WrapLines("中（文）", 4), ElementsAre("中", "（文）"));
}

TEST(WrapTest, BytesThatAreNotUtf8PassThrough) {
  EXPECT_THAT(WrapLines("\xff\xe4\xb8", 80), ElementsAre("\xff\xe4\xb8"));
}

}  // namespace
}  // namespace belay::diag
