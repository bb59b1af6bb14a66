// SPDX-License-Identifier: Apache-2.0
// `belay sim`: programs with cannsim in the place of CANN.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/belay/sim/sim.h"
#include "apps/belay/sim/toolkit.h"
#include "base/error_ids.h"

namespace belay::apps {
namespace {

struct SimArgs {
  SimOptions options;
  std::vector<std::string> program;
};

// In single quotes, whatever the value holds.
std::string Quoted(const std::string& value) {
  std::string text = "'";
  for (const char c : value) {
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return text + "'";
}

StatusOr<ExitCode> PrintEnvironment(const SimArgs& args,
                                    const Context& context) {
  BELAY_ASSIGN_OR_RETURN(const SimVariables variables,
                         SimEnvironment(args.options));
  if (context.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    for (const auto& [name, value] : variables) json[name] = value;
    PrintJson(context, json);
    return ExitCode::kOk;
  }
  for (const auto& [name, value] : variables) {
    context.out << fmt::format("export {}={}\n", name, Quoted(value));
  }
  return ExitCode::kOk;
}

// Becomes the program: its exit code, its signals and its terminal are then
// the user's, as if it had been started without us.
StatusOr<ExitCode> RunProgram(const SimArgs& args, const Context& context) {
  BELAY_ASSIGN_OR_RETURN(const SimVariables variables,
                         SimEnvironment(args.options));
  for (const auto& [name, value] : variables) {
    setenv(name.c_str(), value.c_str(), 1);
  }
  context.out.flush();
  std::vector<char*> argv;
  std::vector<std::string> words = args.program;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  return MakeError(kSysUnreadable, {.where = args.program[0],
                                    .what = std::strerror(errno),
                                    .expected = "",
                                    .got = ""});
}

// What is to go wrong, and what is to be written down.
void AddWishes(CLI::App& command, SimArgs& args, const Context& context) {
  command
      .add_option("--fault", args.options.faults,
                  context.T("what goes wrong: a statement, or a file of them; "
                            "repeatable",
                            "注入的故障：一条语句或语句文件；可重复"))
      ->allow_extra_args(false);
  command
      .add_option("--quirk", args.options.quirks,
                  context.T("a way in which some version misbehaves; \"all\"; "
                            "repeatable",
                            "某些版本的怪癖；可用 all；可重复"))
      ->allow_extra_args(false);
  command.add_option("--report", args.options.report,
                     context.T("file for counts and simulated times at the end "
                               "(JSON if .json, \"-\" for stderr)",
                               "结束时写出计数与模拟耗时的文件"
                               "（.json 为 JSON，“-” 为 stderr）"));
  command.add_option("--log", args.options.log,
                     context.T("folder for logs in CANN's form (default "
                               "~/ascend/log)",
                               "CANN 格式日志的目录（默认 ~/ascend/log）"));
  command
      .add_option("--workspace", args.options.workspace,
                  context.T("bytes of workspace that every operator asks for",
                            "每个算子要求的 workspace 字节数"))
      ->check(CLI::Range(0, 1 << 30));
  command.add_flag(
      "--pace", args.options.pace,
      context.T("let simulated time take real time", "按模拟耗时真实等待"));
}

void AddSimOptions(CLI::App& command, SimArgs& args, Context& context) {
  command.add_option("--profile", args.options.profile,
                     context.T("device to simulate: a name or a JSON file "
                               "(default Ascend910B3)",
                               "要模拟的设备：名称或 JSON 文件"
                               "（默认 Ascend910B3）"));
  command
      .add_option("--devices", args.options.n_devices,
                  context.T("how many (default: the profile's)",
                            "设备个数（默认由设备档案决定）"))
      ->check(CLI::Range(0, 64));
  command.add_flag("--strict", args.options.strict,
                   context.T("report misuse that hardware forgives",
                             "报告硬件会容忍的误用"));
  command.add_flag("--strict-exit", args.options.strict_exit,
                   context.T("the same, and exit code 1 when there was any",
                             "同上，且发现误用时退出码为 1"));
  AddWishes(command, args, context);
  command.add_option("--root", args.options.root,
                     context.T("folder of cannsim (default: beside belay)",
                               "cannsim 目录（默认在 belay 旁）"));
  AddJsonFlag(command, context);
}

}  // namespace

void AddSim(CLI::App& app, Context& context) {
  CLI::App* sim = app.add_subcommand(
      "sim", context.T("Runs Ascend programs with no NPU, on cannsim",
                       "无需 NPU，在 cannsim 上运行昇腾程序"));
  sim->group(context.T("Commands", "子命令"));
  sim->get_help_ptr()->group(context.T("Options", "选项"));
  sim->fallthrough();
  sim->require_subcommand(1);
  sim->footer(std::string(context.T("Example:", "示例：")) +
              "\n  belay sim run --profile Ascend950PR_9589 -- npu-smi info");
  auto args = std::make_shared<SimArgs>();
  CLI::App* env = AddCommand(
      *sim, context,
      {.name = "env",
       .about = context.T("Prints the exports for a shell",
                          "打印供 shell 使用的 export 语句"),
       .example = "eval \"$(belay sim env --profile Ascend910_9391)\""},
      [args, &context] { return PrintEnvironment(*args, context); });
  AddSimOptions(*env, *args, context);
  CLI::App* run = AddCommand(
      *sim, context,
      {.name = "run",
       .about = context.T("Runs a program", "运行程序"),
       .example = "belay sim run --strict -- ./my_acl_program --its-option"},
      [args, &context] { return RunProgram(*args, context); });
  AddSimOptions(*run, *args, context);
  run->add_option("program", args->program,
                  context.T("program and its arguments, after --",
                            "程序及其参数，放在 -- 之后"))
      ->required();
}

}  // namespace belay::apps
