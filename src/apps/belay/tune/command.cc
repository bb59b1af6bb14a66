// SPDX-License-Identifier: Apache-2.0
// `belay tune`: the command line of toolkit/tune.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "apps/belay/doctor/machine.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/tune/tune.h"
#include "base/error_ids.h"
#include "base/thread_pool.h"
#include "toolkit/tune/apply.h"
#include "toolkit/tune/measure.h"
#include "toolkit/tune/plan.h"
#include "toolkit/tune/writer.h"

namespace belay::apps {
namespace {

using nlohmann::ordered_json;

constexpr int kCommandTimeoutMs = 1500;
// Beyond every cache of a core, below what a small container has.
constexpr size_t kCopyBytes = size_t{64} << 20;
constexpr int kMaxCopyThreads = 64;

struct TuneArgs {
  bool apply = false, revert = false, no_measure = false;
  std::string record = "/var/lib/belay/tune.json";
  std::string root;
  int n_runs = 3;
  std::vector<std::string> command;
};

ordered_json PlanToJson(const tune::Plan& plan,
                        const diag::Catalogue& catalogue, diag::Lang lang) {
  ordered_json json;
  json["settings"] = ordered_json::array();
  for (const tune::Setting& one : plan.settings) {
    json["settings"].push_back({{"topic", tune::NameOf(one.topic)},
                                {"path", one.path},
                                {"now", one.now},
                                {"proposed", one.wanted}});
  }
  json["bindings"] = ordered_json::array();
  for (const tune::Binding& one : plan.bindings) {
    json["bindings"].push_back(
        {{"npu", one.npu >= 0 ? ordered_json(one.npu) : ordered_json()},
         {"address", one.address},
         {"node", one.node},
         {"cpus", doctor::FormatCpuList(one.cpus)},
         {"command", tune::CommandOf(one)}});
  }
  json["variable"] = tune::AffinityVariable(plan.bindings);
  json["advice"] = ordered_json::array();
  for (const tune::Advice& one : plan.advice) {
    const diag::Entry* entry = catalogue.Find(one.id);
    json["advice"].push_back(
        {{"id", one.id},
         {"title", entry != nullptr ? entry->title.in(lang) : ""},
         {"evidence", one.evidence},
         {"command", one.command}});
  }
  return json;
}

// Hundreds of CPUs have one policy each: those with the same change are one
// line.
void PrintSettings(const tune::Plan& plan, const Context& context) {
  for (size_t i = 0; i < plan.settings.size();) {
    const tune::Setting& one = plan.settings[i];
    size_t end = i + 1;
    while (end < plan.settings.size() &&
           plan.settings[end].topic == one.topic &&
           plan.settings[end].now == one.now &&
           plan.settings[end].wanted == one.wanted) {
      ++end;
    }
    context.out << fmt::format("  {:<15} {} -> {}  {}", tune::NameOf(one.topic),
                               diag::EscapeControls(one.now), one.wanted,
                               diag::EscapeControls(one.path));
    if (end > i + 1) {
      context.out << fmt::format(
          "{}{}{}", context.T(" and ", " 等 "),
          context.lang == diag::Lang::kZh ? end - i : end - i - 1,
          context.T(" more", " 处"));
    }
    context.out << "\n";
    i = end;
  }
}

void PrintPlan(const tune::Plan& plan, const diag::Catalogue& catalogue,
               const Context& context) {
  if (plan.settings.empty()) {
    context.out << context.T("No setting of this host needs a change.\n",
                             "本机设置无需更改。\n");
  } else {
    context.out << context.T("settings:\n", "设置：\n");
    PrintSettings(plan, context);
  }
  if (!plan.bindings.empty()) {
    context.out << context.T("start each rank with:\n",
                             "各 rank 的启动方式：\n");
    for (const tune::Binding& one : plan.bindings) {
      context.out << fmt::format(
          "  NPU {:<4} {}  {} ...\n",
          one.npu >= 0 ? fmt::format("{}", one.npu) : "?",
          diag::EscapeControls(one.address), tune::CommandOf(one));
    }
    const std::string variable = tune::AffinityVariable(plan.bindings);
    if (!variable.empty()) {
      context.out << context.T("or, with torch_npu: export ",
                               "或用 torch_npu：export ")
                  << variable << "\n";
    }
  }
  for (const tune::Advice& one : plan.advice) {
    const diag::Entry* entry = catalogue.Find(one.id);
    context.out << one.id << " "
                << (entry != nullptr ? entry->title.in(context.lang) : "")
                << ": " << diag::EscapeControls(one.evidence) << "\n  "
                << diag::EscapeControls(one.command) << "\n";
  }
}

std::string Runs(const std::vector<double>& runs) {
  std::string text;
  for (const double run : runs) {
    text += fmt::format("{}{:.4g}", text.empty() ? "" : " ", run);
  }
  return text;
}

ordered_json ResultsToJson(const std::vector<tune::TopicResult>& results) {
  ordered_json json = ordered_json::array();
  for (const tune::TopicResult& one : results) {
    ordered_json refusals = ordered_json::array();
    for (const tune::Refusal& refusal : one.refusals) {
      refusals.push_back({{"path", refusal.path}, {"why", refusal.why}});
    }
    json.push_back({{"topic", tune::NameOf(one.topic)},
                    {"changed", one.n_changed},
                    {"before", one.before},
                    {"after", one.after},
                    {"kept", one.is_kept},
                    {"refused", refusals}});
  }
  return json;
}

void PrintResults(const std::vector<tune::TopicResult>& results,
                  const TuneArgs& args, const char* unit,
                  const Context& context) {
  bool keeps_any = false;
  for (const tune::TopicResult& one : results) {
    context.out << fmt::format("{:<15} ", tune::NameOf(one.topic));
    if (!one.before.empty() && !one.after.empty()) {
      context.out << fmt::format("{} -> {} {}, ", Runs(one.before),
                                 Runs(one.after), unit);
    }
    keeps_any |= one.is_kept;
    context.out << (one.is_kept         ? context.T("kept", "保留")
                    : one.n_changed > 0 ? context.T("does not help, taken back",
                                                    "没有改善，已恢复")
                                        : context.T("refused", "被拒绝"))
                << "\n";
    for (size_t i = 0; i < one.refusals.size() && i < 3; ++i) {
      context.out << "  " << diag::EscapeControls(one.refusals[i].path) << ": "
                  << diag::EscapeControls(one.refusals[i].why) << "\n";
    }
    if (one.refusals.size() > 3) {
      context.out << fmt::format("  {} {}\n", one.refusals.size() - 3,
                                 context.T("more", "处另有拒绝"));
    }
  }
  if (keeps_any) {
    context.out << context.T("old values: ", "旧值记录：") << args.record
                << "; belay tune --revert\n";
  }
}

tune::MeasureFn MeasureOf(const TuneArgs& args) {
  if (args.no_measure) return nullptr;
  if (!args.command.empty()) {
    return [&args] { return tune::MeasureCommand(args.command, args.n_runs); };
  }
  const int n_threads = std::min(DefaultThreads(), kMaxCopyThreads);
  return [&args, n_threads] {
    return tune::MeasureBandwidth(args.n_runs, n_threads, kCopyBytes);
  };
}

StatusOr<ExitCode> ApplyPlan(const tune::Plan& plan, tune::Target target,
                             const TuneArgs& args, ordered_json json,
                             const Context& context) {
  std::error_code error;  // Apply() tells what is wrong with the place
  std::filesystem::create_directories(
      std::filesystem::path(args.record).parent_path(), error);
  tune::ApplyOptions options;
  options.record = args.record;
  options.measure = MeasureOf(args);
  options.stop = &CatchInterrupts();
  BELAY_ASSIGN_OR_RETURN(const auto results,
                         tune::Apply(plan, target, options));
  const char* unit = args.command.empty() ? "GB/s" : "1/s";
  if (context.json) {
    json["results"] = ResultsToJson(results);
    json["unit"] = unit;
    json["record"] = args.record;
    PrintJson(context, json);
  } else {
    PrintResults(results, args, unit, context);
  }
  const bool refused =
      std::any_of(results.begin(), results.end(),
                  [](const auto& one) { return !one.refusals.empty(); });
  return refused ? ExitCode::kFindings : ExitCode::kOk;
}

StatusOr<ExitCode> RevertAll(tune::Target target, const TuneArgs& args,
                             const Context& context) {
  BELAY_ASSIGN_OR_RETURN(const tune::RevertResult result,
                         tune::Revert(target, args.record));
  if (context.json) {
    ordered_json restored = ordered_json::array();
    for (const tune::Setting& one : result.restored) {
      restored.push_back(
          {{"path", one.path}, {"was", one.wanted}, {"now", one.now}});
    }
    PrintJson(context, {{"restored", restored},
                        {"unchanged", result.n_unchanged},
                        {"stale", result.is_stale}});
    return ExitCode::kOk;
  }
  if (result.is_stale) {
    context.out << context.T(
        "The machine was started anew since: its own settings are in effect.\n",
        "此后机器已重启，现为系统自身设置。\n");
    return ExitCode::kOk;
  }
  for (const tune::Setting& one : result.restored) {
    context.out << fmt::format("  {} -> {}  {}\n",
                               diag::EscapeControls(one.wanted), one.now,
                               one.path);
  }
  context.out << fmt::format("{} {}\n", result.restored.size(),
                             context.T("settings restored", "项设置已恢复"));
  return ExitCode::kOk;
}

StatusOr<ExitCode> Tune(const TuneArgs& args, const Context& context) {
  const auto machine = ThisMachine(kCommandTimeoutMs, args.root);
  const auto writer = tune::NewLiveWriter(args.root);
  const tune::Target target{*machine, *writer};
  if (args.revert) return RevertAll(target, args, context);
  if (!args.apply && !args.command.empty()) {
    return MakeError(kArgUsage, {.where = args.command[0],
                                 .what = "",
                                 .expected = "--apply, which measures it",
                                 .got = "a command"});
  }
  // The context's own catalogue holds the errors only.
  BELAY_ASSIGN_OR_RETURN(const diag::Catalogue catalogue,
                         diag::Catalogue::LoadEmbedded());
  const doctor::Facts facts = doctor::ReadFacts(*machine);
  const tune::Plan plan =
      tune::MakePlan(*machine, facts, doctor::ReadHost(*machine, facts));
  ordered_json json;
  if (context.json) json = PlanToJson(plan, catalogue, context.lang);
  if (!context.json) PrintPlan(plan, catalogue, context);
  if (args.apply) {
    return ApplyPlan(plan, target, args, std::move(json), context);
  }
  if (context.json) PrintJson(context, json);
  return plan.settings.empty() && plan.advice.empty() ? ExitCode::kOk
                                                      : ExitCode::kFindings;
}

}  // namespace

void AddTune(CLI::App& app, Context& context) {
  auto args = std::make_shared<TuneArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "tune",
       .about = context.T("Proposes settings of the host for its NPUs",
                          "为 NPU 建议主机设置"),
       .example = "belay tune\nsudo belay tune --apply\n"
                  "sudo belay tune --apply -- ./measure.sh\n"
                  "sudo belay tune --revert"},
      [args, &context] { return Tune(*args, context); });
  auto* apply = command->add_flag(
      "--apply", args->apply,
      context.T("write the settings, measure, keep those that help",
                "写入设置并实测，只保留有改善的"));
  command
      ->add_flag(
          "--revert", args->revert,
          context.T("restore what --apply has changed", "恢复 --apply 的改动"))
      ->excludes(apply);
  command->add_flag("--no-measure", args->no_measure,
                    context.T("keep all settings that the kernel takes",
                              "不测量，保留内核接受的全部设置"));
  command
      ->add_option("--runs", args->n_runs,
                   context.T("runs before and after each group (default 3)",
                             "每组前后各测量的次数（默认 3）"))
      ->check(CLI::Range(1, 1000));
  command->add_option(
      "--record", args->record,
      context.T("file of the old values (default /var/lib/belay/tune.json)",
                "旧值记录文件（默认 /var/lib/belay/tune.json）"));
  command->add_option(
      "--root", args->root,
      context.T("folder before /sys and /proc: the host's in a container",
                "/sys 与 /proc 之前的目录：容器内宿主机的挂载点"));
  command->add_option("command", args->command,
                      context.T("what shall become faster, behind -- (default: "
                                "copying memory)",
                                "-- 之后为要加速的命令（默认：内存拷贝）"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
