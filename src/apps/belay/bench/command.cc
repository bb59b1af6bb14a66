// SPDX-License-Identifier: Apache-2.0
// belay bench: how fast a model runs here, beside what memory could give.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/belay/bench/measure.h"
#include "apps/belay/commands.h"
#include "apps/belay/shell/interrupt.h"
#include "base/error_ids.h"
#include "base/file.h"

namespace belay::apps {
namespace {

using Json = nlohmann::ordered_json;

struct BenchArgs {
  ModelArgs model;
  std::vector<int64_t> prefill = {512};
  std::vector<int64_t> contexts = {0};
  std::vector<int64_t> batches = {1};
  int64_t steps = 32;
  int repetitions = 5;
  std::string csv;
};

Status CheckCounts(const char* option, const std::vector<int64_t>& values,
                   int64_t least) {
  for (const int64_t value : values) {
    if (value >= least && value <= (int64_t{1} << 20)) continue;
    return MakeError(kArgUsage, {.where = option,
                                 .what = "",
                                 .expected = fmt::format("{} .. {}", least,
                                                         int64_t{1} << 20),
                                 .got = std::to_string(value)});
  }
  return absl::OkStatus();
}

std::vector<BenchCase> CasesOf(const BenchArgs& args) {
  std::vector<BenchCase> cases;
  for (const int64_t n : args.prefill) {
    if (n == 0) continue;  // --prefill 0: none
    cases.push_back(
        {.prefill = true, .n_tokens = n, .repetitions = args.repetitions});
  }
  for (const int64_t batch : args.batches) {
    for (const int64_t context : args.contexts) {
      cases.push_back({.context = context,
                       .batch = batch,
                       .n_tokens = args.steps,
                       .repetitions = args.repetitions});
    }
  }
  return cases;
}

const char* NameOf(const BenchCase& what) {
  return what.prefill ? "prefill" : "decode";
}

// FP4 or FP8 experts beside FP8: what a speed means nothing without.
std::string_view DtypeOf(const spec::ModelConfig& config) {
  return config.expert_format == spec::ExpertFormat::kFp4 ? "fp8+fp4" : "fp8";
}

Json SpreadJson(const Spread& spread) {
  return {{"median", spread.median}, {"min", spread.min}, {"max", spread.max}};
}

Json ResultJson(const BenchResult& r) {
  return {{"test", NameOf(r.what)},
          {"context", r.what.context},
          {"batch", r.what.batch},
          {"tokens", r.what.n_tokens},
          {"repetitions", r.what.repetitions},
          {"tokens_per_second", SpreadJson(r.tokens_per_second)},
          {"bandwidth_gb_per_second", SpreadJson(r.bandwidth)},
          {"bandwidth_share", SpreadJson(r.share)},
          {"bytes_per_step", r.bytes_per_step},
          {"flops_per_token", r.flops_per_token}};
}

void PrintRow(const BenchResult& r, const Context& context) {
  context.out << fmt::format(
      "{:8} {:>8} {:>6} {:>7}  {:>9.1f}  {:>8.1f} - {:<8.1f}  {:>7.1f}  "
      "{:>6.1f} %  {:>8.1f}\n",
      NameOf(r.what), r.what.context, r.what.batch, r.what.n_tokens,
      r.tokens_per_second.median, r.tokens_per_second.min,
      r.tokens_per_second.max, r.bandwidth.median, 100 * r.share.median,
      r.tokens_per_second.median * r.flops_per_token / 1e9);
  context.out.flush();
}

std::string CsvOf(const BenchArgs& args, const LoadedModel& model,
                  const std::vector<BenchResult>& results) {
  std::string csv =
      "model,dtype,threads,test,context,batch,tokens,repetitions,tok_s_median,"
      "tok_s_min,tok_s_max,read_gb_s_median,read_share_median,bytes_per_step,"
      "flops_per_token\n";
  for (const BenchResult& r : results) {
    csv += fmt::format(
        "{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.3f},"
        "{:.4f},{:.0f},{:.0f}\n",
        args.model.folder, DtypeOf(model.config()), model.pool->n_threads(),
        NameOf(r.what), r.what.context, r.what.batch, r.what.n_tokens,
        r.what.repetitions, r.tokens_per_second.median, r.tokens_per_second.min,
        r.tokens_per_second.max, r.bandwidth.median, r.share.median,
        r.bytes_per_step, r.flops_per_token);
  }
  return csv;
}

StatusOr<ExitCode> RunBench(const BenchArgs& args, const Context& context) {
  (void)CatchInterrupts();
  BELAY_RETURN_IF_ERROR(CheckCounts("--prefill", args.prefill, 0));
  BELAY_RETURN_IF_ERROR(CheckCounts("--context", args.contexts, 0));
  BELAY_RETURN_IF_ERROR(CheckCounts("--batch", args.batches, 1));
  BELAY_RETURN_IF_ERROR(CheckCounts("--steps", {args.steps}, 1));
  BELAY_RETURN_IF_ERROR(CheckCounts("--repetitions", {args.repetitions}, 1));
  BELAY_ASSIGN_OR_RETURN(const auto model, LoadModel(args.model, context));
  BELAY_ASSIGN_OR_RETURN(const auto bandwidth,
                         Bandwidth::Create(model->pool.get()));
  if (!context.json) {
    context.out << fmt::format(
        "{}: {}, {}, {} {}\n{:8} {:>8} {:>6} {:>7}  {:>9}  {:^19}  {:>7}  "
        "{:>8}  {:>8}\n",
        args.model.folder, DtypeOf(model->config()), model->backend->name(),
        model->pool->n_threads(), context.T("threads", "线程"), "test",
        "context", "batch", "tokens", "tok/s", "min - max", "GB/s", "of it",
        "GFLOP/s");
  }
  std::vector<BenchResult> results;
  Json list = Json::array();
  for (const BenchCase& what : CasesOf(args)) {
    BELAY_ASSIGN_OR_RETURN(results.emplace_back(),
                           Measure(what, *model, *bandwidth));
    list.push_back(ResultJson(results.back()));
    if (!context.json) PrintRow(results.back(), context);
  }
  if (context.json) {
    PrintJson(context, {{"model", args.model.folder},
                        {"dtype", DtypeOf(model->config())},
                        {"backend", model->backend->name()},
                        {"numerics", args.model.numerics},
                        {"threads", model->pool->n_threads()},
                        {"weight_bytes", model->weight_bytes()},
                        {"load_seconds", model->load_seconds},
                        {"results", list}});
  }
  if (!args.csv.empty()) {
    BELAY_RETURN_IF_ERROR(
        WriteFileAtomically(args.csv, CsvOf(args, *model, results)));
  }
  return ExitCode::kOk;
}

}  // namespace

void AddBench(CLI::App& app, Context& context) {
  auto args = std::make_shared<BenchArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "bench",
       .about = context.T("Measures prefill and decode against memory's speed",
                          "测量预填充与解码速度，并与内存带宽对照"),
       .example = "belay bench --model data/demo\n"
                  "belay bench --model M --context 0,4096 --batch 1,8"},
      [args, &context] { return RunBench(*args, context); });
  AddModelOptions(*command, args->model, context);
  command
      ->add_option("--prefill", args->prefill,
                   context.T("prompt lengths (default 512; 0: none)",
                             "提示长度（默认 512；0：不测）"))
      ->delimiter(',');
  command
      ->add_option("--context", args->contexts,
                   context.T("tokens in the cache when decoding starts "
                             "(default 0)",
                             "解码开始时缓存中的词元数（默认 0）"))
      ->delimiter(',');
  command
      ->add_option("--batch", args->batches,
                   context.T("sequences that decode together (default 1)",
                             "同时解码的序列数（默认 1）"))
      ->delimiter(',');
  command->add_option("--steps", args->steps,
                      context.T("decode steps a repetition (default 32)",
                                "每次重复的解码步数（默认 32）"));
  command->add_option(
      "--repetitions", args->repetitions,
      context.T("of each test (default 5)", "每项测试的重复次数（默认 5）"));
  command->add_option("--csv", args->csv,
                      context.T("also write a CSV file", "另写一个 CSV 文件"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
