// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/usage_error.h"

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error_ids.h"

namespace belay::apps {
namespace {

// "belay explain": the deepest command that was recognised.
std::string CommandPath(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* command : app.get_subcommands()) {
    path += " " + CommandPath(*command);
  }
  return path;
}

std::string Joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

// What the parser's kinds of refusal are called; its own words, which name the
// option and the value, follow.
const char* KindIn(CLI::ExitCodes kind, const Context& context) {
  switch (kind) {
    case CLI::ExitCodes::ArgumentMismatch:
      return context.T("wrong number of values", "值的个数不对");
    case CLI::ExitCodes::ConversionError:
      return context.T("the value is of the wrong kind", "值的类型不对");
    case CLI::ExitCodes::ValidationError:
      return context.T("the value is not allowed", "值不在允许范围内");
    case CLI::ExitCodes::ExcludesError:
      return context.T("options that exclude each other", "选项互斥");
    case CLI::ExitCodes::RequiresError:
      return context.T("an option needs another", "缺少所依赖的选项");
    default:
      return context.T("not understood", "无法解析");
  }
}

ErrorFacts FactsOf(const CLI::ParseError& error, const CLI::App& app,
                   const Context& context) {
  const std::string words = error.what();
  const auto kind = static_cast<CLI::ExitCodes>(error.get_exit_code());
  ErrorFacts facts;
  // With an unknown command the parser complains first that there is none.
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  const bool no_command = words == "A subcommand is required";
  if (kind == CLI::ExitCodes::ExtrasError || (no_command && !unknown.empty())) {
    facts.what = no_command && !unknown[0].starts_with("-")
                     ? context.T("unknown command", "未知的子命令")
                     : context.T("unknown argument", "无法识别的参数");
    facts.got = no_command ? unknown[0] : Joined(unknown);
    return facts;
  }
  if (no_command) {
    facts.what = context.T("a command is missing", "缺少子命令");
    return facts;
  }
  constexpr std::string_view kIsRequired = " is required";
  if (kind == CLI::ExitCodes::RequiredError && words.ends_with(kIsRequired)) {
    facts.what = context.T("missing", "缺少必需的选项");
    facts.expected = words.substr(0, words.size() - kIsRequired.size());
    return facts;
  }
  facts.what = KindIn(kind, context);
  facts.what += context.T(": ", "：") + words;
  return facts;
}

}  // namespace

Status UsageError(const CLI::ParseError& error, const CLI::App& app,
                  const Context& context) {
  ErrorFacts facts = FactsOf(error, app, context);
  facts.where = CommandPath(app);
  return MakeError(kArgUsage, std::move(facts));
}

}  // namespace belay::apps
