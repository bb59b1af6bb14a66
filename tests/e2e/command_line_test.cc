// SPDX-License-Identifier: Apache-2.0
// What only a real process shows: exit codes, environment, redirections.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace belay {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Result {
  int code;  // the exit code, or -1 when a signal ended it
  std::string out;
};

// Runs a line of sh in which $B is the program.
Result Shell(const std::string& line) {
  const std::string command =
      "unset LC_ALL LC_MESSAGES LANG; B='" BELAY_PROGRAM "'; " + line;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  std::string out;
  char piece[4096];
  while (const size_t n = fread(piece, 1, sizeof(piece), pipe)) {
    out.append(piece, n);
  }
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

TEST(CommandLineTest, ExitCodes) {
  EXPECT_EQ(Shell("$B --version").code, 0);
  EXPECT_EQ(Shell("$B explain CKPT-001").code, 0);
  EXPECT_EQ(Shell("$B 2>/dev/null").code, 2);
  EXPECT_EQ(Shell("$B explain NO-001 2>/dev/null").code, 1);
  EXPECT_EQ(Shell("$B explain CKPT-001 --catalogue /no 2>/dev/null").code, 3);
}

TEST(CommandLineTest, ResultsAreOnStdoutAndErrorsOnStderr) {
  EXPECT_EQ(Shell("$B explain NO-001 2>/dev/null").out, "");
  EXPECT_EQ(Shell("$B explain CKPT-001 2>&1 >/dev/null").out, "");
  EXPECT_THAT(Shell("$B explain NO-001 2>&1 >/dev/null").out,
              StartsWith("error ARG-008: "));
  const auto json =
      nlohmann::json::parse(Shell("$B explain NO-001 --json 2>/dev/null").out);
  EXPECT_EQ(json["error"]["id"], "ARG-008");
}

TEST(CommandLineTest, TheLocaleChoosesTheLanguage) {
  EXPECT_THAT(Shell("$B explain ARG-001").out, StartsWith("error"));
  EXPECT_THAT(Shell("LANG=zh_CN.UTF-8 $B explain ARG-001").out,
              StartsWith("错误"));
  EXPECT_THAT(Shell("LC_ALL=C LANG=zh_CN.UTF-8 $B explain ARG-001").out,
              StartsWith("error"));
  EXPECT_THAT(Shell("LC_MESSAGES=zh_CN.UTF-8 $B explain ARG-001").out,
              StartsWith("错误"));
  EXPECT_THAT(Shell("LANG=zh_CN.UTF-8 $B explain ARG-001 --lang en").out,
              StartsWith("error"));
}

TEST(CommandLineTest, NoColourInAPipe) {
  EXPECT_THAT(Shell("$B explain ARG-001").out, Not(HasSubstr("\x1b")));
  EXPECT_THAT(Shell("$B explain ARG-001 --color always").out,
              HasSubstr("\x1b"));
}

TEST(CommandLineTest, AFullDiskIsAnError) {
  const Result full = Shell("$B explain --list 2>&1 >/dev/full");
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.out, StartsWith("error SYS-002: standard output"));
  EXPECT_EQ(Shell("$B explain --list 2>/dev/null >&-").code, 3);
}

TEST(CommandLineTest, StrangeArgumentsAreErrorsNotCrashes) {
  const std::pair<const char*, int> cases[] = {
      {"''", 2},
      {"explain ''", 2},
      {"explain '\xff\xfe'", 1},
      {"explain -- --list", 1},
      {"explain \"$(head -c 100000 /dev/zero | tr '\\0' x)\"", 1},
      {"--lang", 2},
      {"--lang= explain ARG-001", 2},
      {"--json", 2},
      {"explain --json --json --lang", 2}};
  for (const auto& [args, code] : cases) {
    EXPECT_EQ(Shell(std::string("$B ") + args + " >/dev/null 2>&1").code, code)
        << args;
  }
  // What a terminal would obey is written out.
  EXPECT_THAT(Shell("$B explain \"$(printf 'a\\033[2Jb')\" 2>&1").out,
              HasSubstr("a\\x1b[2Jb"));
}

// The catalogue is in the binary.
TEST(CommandLineTest, WorksWhereverItIsCopiedTo) {
  namespace fs = std::filesystem;
  std::string folder = fs::temp_directory_path() / "belay_e2e.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const Result result = Shell("cp \"$B\" " + folder + "/b && cd / && exec " +
                              folder + "/b explain CKPT-001");
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, StartsWith("error CKPT-001"));
  fs::remove_all(folder);
}

}  // namespace
}  // namespace belay
