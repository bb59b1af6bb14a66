// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/context.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "base/error_ids.h"

namespace belay::apps {

CLI::App* AddCommand(CLI::App& app, Context& context, const CommandInfo& info,
                     CommandFn run) {
  CLI::App* command = app.add_subcommand(info.name, info.about);
  command->group(context.T("Commands", "子命令"));
  command->get_help_ptr()->group(context.T("Options", "选项"));
  command->fallthrough();  // --lang and --color may follow the command
  std::string footer = context.T("Example:", "示例：");
  std::istringstream lines(info.example);
  for (std::string line; std::getline(lines, line);) footer += "\n  " + line;
  command->footer(footer);
  command->callback(
      [&context, run = std::move(run)] { context.command = run; });
  return command;
}

void AddJsonFlag(CLI::App& command, Context& context) {
  command.add_flag("--json", context.json,
                   context.T("print the result as JSON", "以 JSON 输出结果"));
}

void PrintJson(const Context& context, const nlohmann::ordered_json& json) {
  context.out << json.dump(2, ' ', /*ensure_ascii=*/false,
                           nlohmann::ordered_json::error_handler_t::replace)
              << "\n";
}

void PrintStatus(const Context& context, const Status& status) {
  context.err << diag::RenderError(status, context.catalogue, context.err_style)
              << std::flush;
}

ExitCode ExitCodeOf(const Status& error) {
  const std::string id = ErrorIdOf(error);
  if (id == kSysInterrupted.id) return ExitCode::kInterrupted;
  // A question without an answer: it was asked in the right way.
  if (id == kArgUnknownId.id) return ExitCode::kFindings;
  return id.starts_with("ARG-") ? ExitCode::kUsage : ExitCode::kFailed;
}

}  // namespace belay::apps
