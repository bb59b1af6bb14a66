// SPDX-License-Identifier: Apache-2.0
// `belay loadtest`: the command line of toolkit/loadtest.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/belay/commands.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/shell/lines.h"
#include "apps/belay/shell/progress.h"
#include "base/error_ids.h"
#include "base/file.h"
#include "toolkit/loadtest/prompts.h"
#include "toolkit/loadtest/report.h"
#include "toolkit/loadtest/runner.h"
#include "toolkit/loadtest/summary.h"

namespace belay::apps {
namespace {

namespace lt = loadtest;

struct LoadTestArgs {
  lt::Plan plan;
  std::string concurrency;
  double rate = 0;
  std::string prompts;
  std::string shape;
  std::string slo;
  std::string api_key_file;
  std::string out;
};

Status Clash(const char* one, const char* other) {
  return MakeError(kArgUsage, {.where = one,
                               .what = "",
                               .expected = "not both",
                               .got = fmt::format("{} {}", one, other)});
}

StatusOr<lt::Plan> PlanFrom(const LoadTestArgs& args, const Context& context) {
  lt::Plan plan = args.plan;
  if (args.rate > 0) {
    if (!args.concurrency.empty()) return Clash("--rate", "--concurrency");
    plan.levels = {{.concurrency = 0, .rate = args.rate}};
  } else {
    const std::string& list = args.concurrency;
    BELAY_ASSIGN_OR_RETURN(plan.levels,
                           lt::ParseConcurrency(list.empty() ? "1" : list));
  }
  if (!args.slo.empty()) {
    BELAY_ASSIGN_OR_RETURN(plan.slo, lt::ParseSlo(args.slo));
  }
  if (!args.prompts.empty()) {
    if (!args.shape.empty()) return Clash("--prompts", "--shape");
    BELAY_ASSIGN_OR_RETURN(const std::string text,
                           ReadFileOrInput(context, args.prompts));
    BELAY_ASSIGN_OR_RETURN(plan.prompts, lt::ParsePrompts(text, args.prompts));
  } else if (!args.shape.empty()) {
    BELAY_ASSIGN_OR_RETURN(const lt::Shape shape, lt::ParseShape(args.shape));
    // More prompts than are under way, so that no two are alike at once.
    plan.prompts = lt::MakePrompts(shape, 256, plan.seed);
    plan.max_tokens = shape.n_answer;
    plan.ignore_eos = true;
  } else {
    plan.prompts = lt::DefaultPrompts();
  }
  if (!args.api_key_file.empty()) {
    BELAY_ASSIGN_OR_RETURN(const std::string text,
                           ReadFileOrInput(context, args.api_key_file));
    plan.api_key = text.substr(0, text.find_first_of("\r\n"));
  }
  return plan;
}

std::string ProgressLine(const lt::LoadProgress& p, const Context& context) {
  constexpr int kCells = 20;
  const double share =
      p.n_planned == 0 ? 0
                       : std::min(1.0, static_cast<double>(p.n_done) /
                                           static_cast<double>(p.n_planned));
  const int n = static_cast<int>(share * kCells);
  std::string line = fmt::format(
      "{} [{}{}] {}/{}{}, {} {}", lt::NameOf(p.level),
      std::string(static_cast<size_t>(n), '='),
      std::string(static_cast<size_t>(kCells - n), ' '), p.n_done, p.n_planned,
      p.warming_up ? context.T(" warm-up", " 预热") : "", p.n_under_way,
      context.T("under way", "进行中"));
  if (p.n_failed > 0) {
    line += fmt::format(", {} {}", p.n_failed, context.T("failed", "失败"));
  }
  return line;
}

void PrintTable(const lt::LoadReport& report, const Context& context) {
  context.out << fmt::format(
      "{:<12} {:>6} {:>6} {:>9} {:>9} | TTFT ms {:>8} {:>8} {:>8} | "
      "TPOT ms {:>7} {:>7} {:>7}\n",
      context.T("level", "档位"), context.T("ok", "成功"),
      context.T("fail", "失败"), "tok/s", "good/s", "P50", "P90", "P99", "P50",
      "P90", "P99");
  for (const lt::LevelResult& level : report.levels) {
    const auto& t = level.ttft_s;
    const auto& d = level.tpot_s;
    context.out << fmt::format(
        "{:<12} {:>6} {:>6} {:>9.1f} {:>9.2f} |         {:>8.1f} {:>8.1f} "
        "{:>8.1f} |         {:>7.1f} {:>7.1f} {:>7.1f}\n",
        lt::NameOf(level.level), level.n_ok, level.samples.size() - level.n_ok,
        level.output_tokens_per_s, level.good_per_s, 1000 * t.p50, 1000 * t.p90,
        1000 * t.p99, 1000 * d.p50, 1000 * d.p90, 1000 * d.p99);
    for (const auto& [kind, n] : level.errors) {
      context.out << fmt::format("  {} x {}\n", n, kind);
    }
  }
}

StatusOr<ExitCode> LoadTest(const LoadTestArgs& args, const Context& context) {
  BELAY_ASSIGN_OR_RETURN(const lt::Plan plan, PlanFrom(args, context));
  lt::RunHooks hooks;
  const std::atomic<bool>& interrupted = CatchInterrupts();
  hooks.stop = &interrupted;
  Progress progress(context);
  hooks.progress = [&](const lt::LoadProgress& p) {
    progress.Update(ProgressLine(p, context));
  };
  BELAY_ASSIGN_OR_RETURN(const lt::LoadReport report, lt::RunLoad(plan, hooks));
  progress.Clear();
  if (context.json) {
    PrintJson(context,
              lt::ReportToJson(report, context.catalogue, context.lang));
  } else {
    PrintTable(report, context);
  }
  for (const Status& finding : report.findings) PrintStatus(context, finding);
  if (!args.out.empty()) {
    BELAY_RETURN_IF_ERROR(WriteFileAtomically(
        args.out, lt::ReportToHtml(report, context.catalogue, context.lang)));
  }
  if (interrupted) {
    return MakeError(
        kSysInterrupted,
        {.where = "belay loadtest", .what = "", .expected = "", .got = ""});
  }
  return report.findings.empty() ? ExitCode::kOk : ExitCode::kFindings;
}

void AddLoadOptions(CLI::App& command, LoadTestArgs& args,
                    const Context& context) {
  command
      .add_option("--url", args.plan.url,
                  context.T("address of the server", "服务器地址"))
      ->required();
  command.add_option("--concurrency", args.concurrency,
                     context.T("closed loop: requests at once, as 1,4,16 "
                               "(default 1)",
                               "闭环：并发请求数，如 1,4,16（默认 1）"));
  command
      .add_option("--requests", args.plan.n_requests,
                  context.T("requests of each closed level (default 32)",
                            "每个闭环档位的请求数（默认 32）"))
      ->check(CLI::Range(1, 10000000));
  command
      .add_option("--rate", args.rate,
                  context.T("open loop: requests a second, Poisson",
                            "开环：每秒请求数（泊松到达）"))
      ->check(CLI::Range(0.001, 1e5));
  command
      .add_option("--seconds", args.plan.seconds,
                  context.T("length of the open loop (default 30)",
                            "开环持续秒数（默认 30）"))
      ->check(CLI::Range(0.1, 1e6));
  command
      .add_option("--warmup", args.plan.n_warmup,
                  context.T("requests before each level, not counted "
                            "(default: as many as at once)",
                            "每档预热请求数，不计入（默认等于并发数）"))
      ->check(CLI::Range(0, 1000000));
  command
      .add_option("--timeout", args.plan.timeout_s,
                  context.T("seconds for one request (default 600)",
                            "单个请求的时限，秒（默认 600）"))
      ->check(CLI::Range(0.1, 1e6));
}

void AddPromptOptions(CLI::App& command, LoadTestArgs& args, Context& context) {
  command.add_option("--prompts", args.prompts,
                     context.T("file with a prompt in JSON on each line",
                               "每行一个 JSON 提示的文件"));
  command.add_option("--shape", args.shape,
                     context.T("made-up prompts: PROMPT:ANSWER in tokens, as "
                               "512:128",
                               "生成的提示：提示:回答 词元数，如 512:128"));
  command
      .add_option(
          "--max-tokens", args.plan.max_tokens,
          context.T("longest answer (default 128)", "最长回答（默认 128）"))
      ->check(CLI::Range(1, 1 << 30));
  command
      .add_option("--temp", args.plan.temperature,
                  context.T("temperature (default 0: answers to one prompt "
                            "must agree)",
                            "温度（默认 0：同一提示的回答必须一致）"))
      ->check(CLI::Range(0.0, 2.0));
  command.add_option("--seed", args.plan.seed,
                     context.T("of arrivals and made-up prompts (default 1)",
                               "到达时刻与生成提示的种子（默认 1）"));
  command.add_option("--model", args.plan.model,
                     context.T("model to ask for (default: the first)",
                               "请求的模型（默认第一个）"));
  command.add_option("--api-key-file", args.api_key_file,
                     context.T("file with the key", "密钥文件"));
  command.add_option("--slo", args.slo,
                     context.T("goal, as ttft_ms=500,tpot_ms=50,share=0.9",
                               "目标，如 ttft_ms=500,tpot_ms=50,share=0.9"));
  command.add_option(
      "--out", args.out,
      context.T("HTML report with curves", "带曲线的 HTML 报告"));
  AddJsonFlag(command, context);
}

}  // namespace

void AddLoadTest(CLI::App& app, Context& context) {
  auto args = std::make_shared<LoadTestArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "loadtest",
       .about = context.T("Loads a server and checks speed and text",
                          "对服务器加压，检查速度与文本"),
       .example = "belay loadtest --url http://127.0.0.1:8000 --concurrency "
                  "1,4,16 --out report.html"},
      [args, &context] { return LoadTest(*args, context); });
  AddLoadOptions(*command, *args, context);
  AddPromptOptions(*command, *args, context);
}

}  // namespace belay::apps
