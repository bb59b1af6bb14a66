// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/cli.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "apps/belay/commands.h"
#include "apps/belay/shell/usage_error.h"
#include "base/error_ids.h"

namespace belay::apps {
namespace {

struct GlobalOptions {
  std::string lang;
  std::string color = "auto";
};

// Help and parse errors need some options before anything is parsed. The value
// of `--name value` or `--name=value`, the last one; "" for a lone `--name`.
std::optional<std::string> Peek(const std::vector<std::string>& args,
                                const std::string& name) {
  std::optional<std::string> value;
  for (size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    if (args[i] == name) {
      value = i + 1 < args.size() ? args[i + 1] : "";
    } else if (args[i].starts_with(name + "=")) {
      value = args[i].substr(name.size() + 1);
    }
  }
  return value;
}

Context MakeContext(const std::vector<std::string>& args,
                    const Environment& environment,
                    const diag::Catalogue& catalogue) {
  const diag::Lang lang = diag::ParseLang(Peek(args, "--lang").value_or(""))
                              .value_or(environment.lang);
  const std::string color = Peek(args, "--color").value_or("auto");
  const auto style = [&](bool is_tty) {
    return diag::RenderOptions{
        .lang = lang,
        .color = color == "always" ||
                 (color != "never" && is_tty && !environment.no_color),
        .width = environment.columns};
  };
  return {.out = environment.out,
          .err = environment.err,
          .catalogue = catalogue,
          .lang = lang,
          .json = Peek(args, "--json").has_value(),
          .err_is_tty = environment.err_is_tty,
          .out_style = style(environment.out_is_tty),
          .err_style = style(environment.err_is_tty),
          .command = nullptr,
          .in = environment.in};
}

void TranslateLabels(CLI::App& app) {
  auto formatter = std::make_shared<CLI::Formatter>();
  for (const auto& [en, zh] : {std::pair{"Usage", "用法"},
                               {"OPTIONS", "选项"},
                               {"Positionals", "位置参数"},
                               {"SUBCOMMAND", "子命令"},
                               {"REQUIRED", "必需"},
                               {"Needs", "依赖"},
                               {"Excludes", "互斥"}}) {
    formatter->label(en, zh);
  }
  app.formatter(std::move(formatter));
}

void AddGlobalOptions(CLI::App& app, const Context& context,
                      GlobalOptions& options) {
  if (context.lang == diag::Lang::kZh) TranslateLabels(app);
  app.option_defaults()->group(context.T("Options", "选项"));
  app.set_help_flag("-h,--help", context.T("print this help", "显示本帮助"))
      ->group(context.T("Options", "选项"));
  app.set_version_flag("--version", "belay " BELAY_VERSION,
                       context.T("print the version", "显示版本"));
  app.add_option("--lang", options.lang,
                 context.T("language of messages (default: the locale's)",
                           "消息语言（默认取自 locale）"))
      ->check(CLI::IsMember({"en", "zh"}));
  app.add_option("--color", options.color,
                 context.T("colours (default: auto, on a terminal)",
                           "颜色（默认 auto，仅在终端中启用）"))
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.require_subcommand(1);
  app.footer(context.T(
      "belay COMMAND --help shows the options of a command and an example.\n"
      "Exit codes: 0 fine, 1 findings, 2 usage, 3 failed, 130 interrupted.\n\n"
      "Example:\n  belay explain CKPT-001",
      "belay 子命令 --help 显示该命令的选项和示例。\n"
      "退出码：0 正常，1 有发现，2 用法错误，3 失败，130 被中断。\n\n"
      "示例：\n  belay explain CKPT-001"));
}

// Runs the parser. Help and version are results: they are printed, and no
// command is set.
Status Parse(CLI::App& app, Context& context, std::vector<std::string> args) {
  std::reverse(args.begin(), args.end());  // CLI11 takes them from the back
  try {
    app.parse(std::move(args));
  } catch (const CLI::CallForHelp&) {
    context.out << app.help();
  } catch (const CLI::CallForAllHelp&) {
    context.out << app.help("", CLI::AppFormatMode::All);
  } catch (const CLI::CallForVersion& version) {
    context.out << version.what() << "\n";
  } catch (const CLI::ParseError& error) {
    context.command = nullptr;
    return UsageError(error, app, context);
  }
  return absl::OkStatus();
}

StatusOr<ExitCode> RunCommand(Context& context, std::vector<std::string> args) {
  CLI::App app(context.T("DeepSeek-V4 on Ascend NPUs and CPUs",
                         "在昇腾 NPU 和 CPU 上运行 DeepSeek-V4"),
               "belay");
  GlobalOptions options;
  AddGlobalOptions(app, context, options);
  AddCommands(app, context);
  BELAY_RETURN_IF_ERROR(Parse(app, context, std::move(args)));
  ExitCode code = ExitCode::kOk;
  if (context.command) {
    BELAY_ASSIGN_OR_RETURN(code, context.command());
  }
  // A result that did not reach its file is no success.
  if (!context.out.flush()) {
    return MakeError(
        kSysWriteFailed,
        {.where = "standard output", .what = "", .expected = "", .got = ""});
  }
  return code;
}

}  // namespace

int RunBelay(std::vector<std::string> args, const Environment& environment) {
  const StatusOr<diag::Catalogue> catalogue =
      diag::Catalogue::LoadEmbedded(diag::Part::kErrors);
  BELAY_CHECK(catalogue.ok());  // held by a test of diag
  Context context = MakeContext(args, environment, *catalogue);
  const StatusOr<ExitCode> code = RunCommand(context, std::move(args));
  if (code.ok()) return static_cast<int>(*code);
  PrintStatus(context, code.status());
  if (context.json) {
    nlohmann::ordered_json json;
    json["error"] =
        diag::ErrorToJson(code.status(), context.catalogue, context.lang);
    PrintJson(context, json);
    context.out.flush();
  }
  return static_cast<int>(ExitCodeOf(code.status()));
}

}  // namespace belay::apps
