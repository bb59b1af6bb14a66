// SPDX-License-Identifier: Apache-2.0
// belay bench: how fast a model runs here, beside what memory could give.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/belay/bench/measure.h"
#include "apps/belay/bench/report.h"
#include "apps/belay/commands.h"
#include "apps/belay/model/token_args.h"
#include "apps/belay/shell/interrupt.h"
#include "base/error_ids.h"
#include "base/file.h"
#include "kernels/simd_target.h"

namespace belay::apps {
namespace {

struct BenchArgs {
  ModelArgs model;
  std::vector<int64_t> prefill = {512};
  std::vector<int64_t> contexts = {0};
  std::vector<int64_t> batches = {1};
  int64_t steps = 32;
  int repetitions = 5;
  std::string tokens_file;
  std::string csv;
  std::string html;
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

// FP4 or FP8 experts beside FP8: what a speed means nothing without.
std::string DtypeOf(const LoadedModel& model) {
  if (model.gguf != nullptr) return "gguf";
  const spec::ModelConfig& config = model.config();
  return config.expert_format == spec::ExpertFormat::kFp4 ? "fp8+fp4" : "fp8";
}

std::string NumericsOf(const ModelArgs& args) {
  if (args.activations == "official") return args.numerics;
  return args.numerics + ", " + args.activations + " activations";
}

BenchSubject SubjectOf(const BenchArgs& args, const LoadedModel& model) {
  const bool simd = model.backend->name() == "cpu";
  return {.model = args.model.folder,
          .dtype = DtypeOf(model),
          .backend = std::string(model.backend->name()),
          .numerics = NumericsOf(args.model),
          .simd_target = simd ? std::string(kernels::SimdTarget()) : "scalar",
          .threads = model.pool->n_threads(),
          .weight_bytes = model.weight_bytes(),
          .load_seconds = model.load_seconds};
}

Status Check(const BenchArgs& args) {
  BELAY_RETURN_IF_ERROR(CheckCounts("--prefill", args.prefill, 0));
  BELAY_RETURN_IF_ERROR(CheckCounts("--context", args.contexts, 0));
  BELAY_RETURN_IF_ERROR(CheckCounts("--batch", args.batches, 1));
  BELAY_RETURN_IF_ERROR(CheckCounts("--steps", {args.steps}, 1));
  return CheckCounts("--repetitions", {args.repetitions}, 1);
}

Status Write(const BenchArgs& args, const BenchSubject& subject,
             const std::vector<BenchResult>& results) {
  if (!args.csv.empty()) {
    BELAY_RETURN_IF_ERROR(
        WriteFileAtomically(args.csv, ToCsv(subject, results)));
  }
  if (args.html.empty()) return absl::OkStatus();
  return WriteFileAtomically(args.html, ToHtml(subject, results));
}

StatusOr<ExitCode> RunBench(const BenchArgs& args, const Context& context) {
  (void)CatchInterrupts();
  BELAY_RETURN_IF_ERROR(Check(args));
  std::vector<int32_t> tokens;
  if (!args.tokens_file.empty()) {
    BELAY_ASSIGN_OR_RETURN(tokens, ReadTokensFile(args.tokens_file));
  }
  BELAY_ASSIGN_OR_RETURN(const auto model, LoadModel(args.model, context));
  BELAY_ASSIGN_OR_RETURN(const auto bandwidth,
                         Bandwidth::Create(model->pool.get()));
  const BenchSubject subject = SubjectOf(args, *model);
  if (!context.json) {
    context.out << TableHead(subject, context.T("threads", "线程"));
  }
  std::vector<BenchResult> results;
  for (BenchCase what : CasesOf(args)) {
    what.tokens = tokens;
    BELAY_ASSIGN_OR_RETURN(results.emplace_back(),
                           Measure(what, *model, *bandwidth));
    if (context.json) continue;
    context.out << TableRow(results.back());
    context.out.flush();
  }
  if (context.json) PrintJson(context, ToJson(subject, results));
  BELAY_RETURN_IF_ERROR(Write(args, subject, results));
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
  command->add_option(
      "--tokens-file", args->tokens_file,
      context.T("prompts of these token ids, again and again (a JSON array; "
                "default: random ones)",
                "以这些词元 id 循环作为提示（JSON 数组；默认：随机）"));
  command->add_option(
      "--out", args->html,
      context.T("also write a page with curves (HTML, needs nothing else)",
                "另写一个带曲线的独立 HTML 页面"));
  command->add_option("--csv", args->csv,
                      context.T("also write a CSV file", "另写一个 CSV 文件"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
