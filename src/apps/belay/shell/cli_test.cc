// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/cli.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error_ids.h"

namespace belay::apps {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result Belay(std::vector<std::string> args, diag::Lang lang = diag::Lang::kEn) {
  std::ostringstream out, err;
  const int code =
      RunBelay(std::move(args), {.out = out, .err = err, .lang = lang});
  return {code, out.str(), err.str()};
}

TEST(CliTest, VersionAndHelpAreResults) {
  const Result version = Belay({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, testing::ContainsRegex("^belay [0-9]+\\.[0-9]+"));
  const Result help = Belay({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out, HasSubstr("explain"));
  EXPECT_THAT(help.err, IsEmpty());
}

// Every command's help ends with an example that names the command.
TEST(CliTest, EveryHelpEndsWithAnExample) {
  std::istringstream help(Belay({"--help"}).out);
  std::vector<std::string> commands;
  bool in_commands = false;
  for (std::string line; std::getline(help, line);) {
    if (line.empty()) in_commands = false;
    if (in_commands && line.starts_with("  ") && line[2] != ' ') {
      commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    }
    if (line == "Commands:") in_commands = true;
  }
  EXPECT_THAT(commands, testing::Contains("explain"));
  for (const std::string& command : commands) {
    for (const diag::Lang lang : {diag::Lang::kEn, diag::Lang::kZh}) {
      const Result result = Belay({command, "--help"}, lang);
      EXPECT_EQ(result.code, 0) << command;
      const size_t example =
          result.out.rfind(lang == diag::Lang::kEn ? "Example:" : "示例：");
      ASSERT_NE(example, std::string::npos) << result.out;
      EXPECT_THAT(result.out.substr(example), HasSubstr("belay " + command));
    }
  }
}

TEST(CliTest, ChineseHelpHasNoEnglishHeadings) {
  for (const auto& args : {std::vector<std::string>{"--help"},
                           std::vector<std::string>{"explain", "--help"}}) {
    const std::string help = Belay(args, diag::Lang::kZh).out;
    for (const char* word : {"Usage", "Options", "OPTIONS", "Positionals",
                             "Commands", "Example"}) {
      EXPECT_THAT(help, Not(HasSubstr(word)));
    }
  }
}

TEST(CliTest, UsageErrorsAreArg001InBothLanguages) {
  const struct {
    std::vector<std::string> args;
    const char *where, *en, *zh;
  } cases[] = {
      {{}, "belay", "a command is missing", "缺少子命令"},
      {{"frobnicate"},
       "belay",
       "unknown command, got frobnicate",
       "未知的子命令，实为 frobnicate"},
      {{"--foo"},
       "belay",
       "unknown argument, got --foo",
       "无法识别的参数，实为 --foo"},
      {{"explain", "--foo"},
       "belay explain",
       "unknown argument, got --foo",
       "无法识别的参数，实为 --foo"},
      {{"explain", "--catalogue"},
       "belay explain",
       "wrong number of values",
       "值的个数不对"},
      {{"--color", "red", "explain", "ARG-001"},
       "belay",
       "the value is not allowed",
       "值不在允许范围内"},
      {{"explain", "A-1", "--lang", "de"},
       "belay",
       "the value is not allowed",
       "值不在允许范围内"},
      {{"explain"},
       "belay explain",
       "either an id, a code or words, or --list",
       "请给出编号、错误码或文字"},
      {{"explain", "ARG-001", "--list"},
       "belay explain",
       "either an id, a code or words, or --list",
       "请给出编号、错误码或文字"},
  };
  for (const auto& c : cases) {
    const Result en = Belay(c.args);
    EXPECT_EQ(en.code, 2);
    EXPECT_THAT(en.err, StartsWith("error ARG-001: " + std::string(c.where)));
    EXPECT_THAT(en.err, HasSubstr(c.en));
    EXPECT_THAT(en.out, IsEmpty());
    const Result zh = Belay(c.args, diag::Lang::kZh);
    EXPECT_EQ(zh.code, 2);
    EXPECT_THAT(zh.err, StartsWith("错误 ARG-001：" + std::string(c.where)));
    EXPECT_THAT(zh.err, HasSubstr(c.zh));
  }
}

TEST(CliTest, LanguageOfTheOptionBeatsTheLocale) {
  for (const auto& args :
       {std::vector<std::string>{"--lang", "zh", "explain", "ARG-001"},
        std::vector<std::string>{"explain", "ARG-001", "--lang=zh"}}) {
    EXPECT_THAT(Belay(args).out, StartsWith("错误 ARG-001"));
  }
  EXPECT_THAT(
      Belay({"explain", "ARG-001", "--lang", "en"}, diag::Lang::kZh).out,
      StartsWith("error ARG-001"));
}

TEST(CliTest, WithJsonErrorsAreOnStdoutToo) {
  const std::pair<std::vector<std::string>, int> cases[] = {
      {{"explain", "NO-001", "--json"}, 1},
      {{"explain", "--json", "--foo"}, 2}};
  for (const auto& [args, code] : cases) {
    const Result result = Belay(args);
    EXPECT_EQ(result.code, code);
    EXPECT_THAT(result.err, StartsWith("error ARG-0"));
    const json parsed = json::parse(result.out);
    EXPECT_THAT(parsed["error"]["id"].get<std::string>(), StartsWith("ARG-0"));
    EXPECT_EQ(parsed.size(), 1u);
  }
}

TEST(CliTest, ColourFollowsOptionTerminalAndEnvironment) {
  const auto is_coloured = [](const char* option, bool tty, bool no_color) {
    std::ostringstream out, err;
    RunBelay({"explain", "ARG-001", "--color", option},
             {.out = out, .err = err, .out_is_tty = tty, .no_color = no_color});
    return out.str().find('\x1b') != std::string::npos;
  };
  EXPECT_FALSE(is_coloured("auto", false, false));
  EXPECT_TRUE(is_coloured("auto", true, false));
  EXPECT_FALSE(is_coloured("auto", true, true));
  EXPECT_FALSE(is_coloured("never", true, false));
  EXPECT_TRUE(is_coloured("always", false, true));
}

TEST(CliTest, AResultThatCannotBeWrittenIsAnError) {
  std::ostringstream out, err;
  out.setstate(std::ios::badbit);
  EXPECT_EQ(RunBelay({"explain", "ARG-001"}, {.out = out, .err = err}), 3);
  EXPECT_THAT(err.str(), StartsWith("error SYS-002: standard output"));
}

TEST(ExitCodeTest, FollowsTheArea) {
  EXPECT_EQ(ExitCodeOf(MakeError(kArgThreads, {})), ExitCode::kUsage);
  EXPECT_EQ(ExitCodeOf(MakeError(kArgUnknownId, {})), ExitCode::kFindings);
  EXPECT_EQ(ExitCodeOf(MakeError(kConfMalformed, {})), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(MakeError(kCkptTruncated, {})), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(absl::InternalError("x")), ExitCode::kFailed);
  EXPECT_EQ(ExitCodeOf(MakeError(kSysInterrupted, {})), ExitCode::kInterrupted);
}

}  // namespace
}  // namespace belay::apps
