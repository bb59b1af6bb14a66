// SPDX-License-Identifier: Apache-2.0
// The completion scripts in the shells that they are for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

namespace belay {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string Output(const std::string& shell, const std::string& script) {
  const std::string command = "PATH=$(dirname '" BELAY_PROGRAM "'):$PATH; " +
                              shell + " -c '" + script + "' 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "popen failed";
  std::string out;
  char piece[4096];
  while (const size_t n = fread(piece, 1, sizeof(piece), pipe)) {
    out.append(piece, n);
  }
  pclose(pipe);
  return out;
}

// What bash offers behind these words.
std::string Bash(const std::string& words) {
  return Output("bash --norc",
                "source <(belay completion bash); COMP_WORDS=(" + words +
                    "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _belay; "
                    "printf \"%s\\n\" \"${COMPREPLY[@]}\"");
}

TEST(CompletionTest, BashKnowsCommandsOptionsAndChoices) {
  EXPECT_THAT(Bash("belay loa"), HasSubstr("loadtest"));
  EXPECT_THAT(Bash("belay loa"), Not(HasSubstr("explain")));
  EXPECT_THAT(Bash("belay loadtest --conc"), HasSubstr("--concurrency"));
  EXPECT_THAT(Bash("belay loadtest --conc"), Not(HasSubstr("--shape")));
  EXPECT_EQ(Bash("belay --lang z"), "zh\n");
  EXPECT_EQ(Bash("belay run --thinking o"), "off\non\n");
  EXPECT_THAT(Bash("belay run --model data/de"), HasSubstr("data/demo"));
  EXPECT_EQ(Bash("belay completion z"), "zsh\n");
}

TEST(CompletionTest, EveryCommandOfTheHelpIsThere) {
  const std::string script = Output("sh", "belay completion bash");
  const std::string help = Output("sh", "belay --help");
  for (const char* command :
       {"run", "chat", "inspect", "loadtest", "explain"}) {
    EXPECT_THAT(help, HasSubstr(command));
    EXPECT_THAT(script, HasSubstr(std::string(command) + ") command="));
  }
}

TEST(CompletionTest, ZshTakesTheScript) {
  if (Output("sh", "command -v zsh").empty()) GTEST_SKIP() << "no zsh here";
  EXPECT_EQ(Output("zsh -f",
                   "autoload -Uz compinit; compinit -u -D; "
                   "source <(belay completion zsh); print $_comps[belay]"),
            "_belay\n");
  EXPECT_EQ(Output("sh",
                   "belay completion zsh > /tmp/_belay_$$; zsh -n "
                   "/tmp/_belay_$$; rm /tmp/_belay_$$"),
            "");
}

}  // namespace
}  // namespace belay
