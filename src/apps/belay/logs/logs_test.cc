// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "apps/belay/shell/cli.h"
#include "base/file.h"

namespace belay::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result Logs(std::vector<std::string> args, const std::string& input = "") {
  std::ostringstream out, err;
  std::istringstream in(input);
  args.insert(args.begin(), "logs");
  const int code =
      RunBelay(std::move(args), {.out = out, .err = err, .in = &in});
  return {code, out.str(), err.str()};
}

class LogsTest : public testing::Test {
 protected:
  LogsTest()
      : folder_(fs::temp_directory_path() /
                ("belay_logs_app_" + std::to_string(getpid()))) {
    fs::create_directories(folder_);
  }
  ~LogsTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  std::string Write(const std::string& name, const std::string& text) {
    const std::string path = (folder_ / name).string();
    EXPECT_TRUE(WriteFileAtomically(path, text).ok());
    return path;
  }
  fs::path folder_;
};

constexpr char kFault[] =
    "[ERROR] 2026-01-02-03:04:05 (PID:12, Device:1, RankID:5) ERR00100 PTA "
    "call acl api failed\n"
    "NPU function error: call aclnnMoeDistributeDispatchV2 failed, error code "
    "is 507014\n";

TEST_F(LogsTest, JsonHasWhatItPromises) {
  const std::string path = Write("a.log", kFault);
  const Result result = Logs({path, "--json"});
  EXPECT_EQ(result.code, 1);
  const json report = json::parse(result.out);
  const json& first = report["first_cause"];
  EXPECT_EQ(first["id"], "RT-039");
  EXPECT_EQ(first["role"], "first_cause");
  EXPECT_EQ(first["codes"], json::array({"507014"}));
  EXPECT_EQ(first["operator"], "aclnnMoeDistributeDispatchV2");
  EXPECT_EQ(first["file"], path);
  EXPECT_EQ(first["line"], 2);
  EXPECT_EQ(first["rank"], 5);
  EXPECT_EQ(first["device"], 1);
  EXPECT_EQ(first["time"], "2026-01-02T03:04:05");
  EXPECT_FALSE(first["cause"].get<std::string>().empty());
  EXPECT_FALSE(first["fix"].get<std::string>().empty());
  EXPECT_EQ(report["findings"][0], first);
  EXPECT_EQ(report["findings"][1]["id"], "PTA-001");
  EXPECT_EQ(report["ranks"][0]["rank"], 5);
  EXPECT_EQ(
      json::parse(
          Logs({path, "--json", "--lang", "zh"}).out)["first_cause"]["id"],
      "RT-039");
}

TEST_F(LogsTest, TextAndStandardInput) {
  const Result result = Logs({"-"}, kFault);
  EXPECT_EQ(result.code, 1);
  EXPECT_THAT(result.out, StartsWith("first cause: RT-039 "));
  EXPECT_THAT(result.out, HasSubstr("rank 5"));
  EXPECT_THAT(result.out, HasSubstr("what followed:"));
  const Result follow = Logs({"-", "--follow"}, kFault);
  EXPECT_EQ(follow.code, 1);
  EXPECT_THAT(follow.out, StartsWith("PTA-001 "));
  EXPECT_THAT(follow.out, HasSubstr("\nRT-039 "));
}

TEST_F(LogsTest, NothingKnownIsNoFinding) {
  const Result result = Logs({"-"}, "2026-01-02 03:04:05 ERROR frob jammed\n");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, StartsWith("Nothing known"));
  EXPECT_THAT(result.out, HasSubstr("| 2026-01-02 03:04:05 ERROR frob"));
  EXPECT_EQ(json::parse(Logs({"-", "--json"}, "").out)["first_cause"], nullptr);
}

TEST_F(LogsTest, TerminalIsSafe) {
  const std::string hostile =
      "\x1b[2J\x1b]0;owned\x07 NPU error code is 507014 \xc2\x9b 31m\x9b\n";
  for (const bool as_json : {false, true}) {
    std::vector<std::string> args = {"-"};
    if (as_json) args.push_back("--json");
    const std::string out = Logs(args, hostile).out;
    EXPECT_THAT(out, HasSubstr("507014"));
    EXPECT_THAT(out, Not(HasSubstr("\x1b")));
    EXPECT_THAT(out, Not(HasSubstr("\x07")));
    EXPECT_THAT(out, Not(HasSubstr("\xc2\x9b")));
  }
}

TEST_F(LogsTest, WritesAPage) {
  const std::string page = (folder_ / "report.html").string();
  const Result result =
      Logs({Write("<b>.log", std::string(kFault) + "<script>x</script> error "
                                                   "code is 507035\n"),
            "--out", page});
  EXPECT_EQ(result.code, 1);
  const std::string html = ReadFile(page).value();
  EXPECT_THAT(html, HasSubstr("RT-039"));
  EXPECT_THAT(html, Not(HasSubstr("<script>")));
  EXPECT_THAT(html, Not(HasSubstr("<b>.log")));
}

TEST_F(LogsTest, Errors) {
  EXPECT_EQ(Logs({}).code, 2);
  const Result missing = Logs({(folder_ / "no").string()});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("SYS-001"));
  // What can be read of a damaged archive counts.
  const Result damaged = Logs(
      {Write("x.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\x03 damaged", 18))});
  EXPECT_EQ(damaged.code, 0);
  EXPECT_THAT(damaged.err, HasSubstr("LOGS-001"));
}

}  // namespace
}  // namespace belay::apps
