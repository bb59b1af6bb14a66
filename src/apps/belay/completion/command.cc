// SPDX-License-Identifier: Apache-2.0
// `belay completion bash|zsh`.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "apps/belay/commands.h"
#include "apps/belay/completion/scripts.h"

namespace belay::apps {

void AddCompletion(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      AddCommand(app, context,
                 {.name = "completion",
                  .about = context.T("Prints a completion script for a shell",
                                     "输出 shell 补全脚本"),
                  .example = "source <(belay completion bash)"},
                 [shell, &app, &context]() -> StatusOr<ExitCode> {
                   context.out << (*shell == "zsh" ? ZshCompletion(app)
                                                   : BashCompletion(app));
                   return ExitCode::kOk;
                 });
  command->add_option("shell", *shell, context.T("bash or zsh", "bash 或 zsh"))
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
}

}  // namespace belay::apps
