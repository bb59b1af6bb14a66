// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <memory>
#include <random>
#include <string>

#include "apps/belay/commands.h"
#include "apps/belay/model/token_args.h"
#include "apps/belay/run/run.h"
#include "base/error_ids.h"

namespace belay::apps {
namespace {

// What the system says is free for new memory; 0 when it does not say.
size_t AvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  size_t kib = 0;
  std::string unit;
  while (file >> key >> kib) {
    std::getline(file, unit);
    if (key == "MemAvailable:") return kib * 1024;
  }
  return 0;
}

void AddOptions(CLI::App& command, RunArgs& args, Context& context) {
  AddModelOptions(command, args.model, context);
  command.add_option(
      "--tokens", args.tokens,
      context.T("prompt as token ids: 5,7,9", "以词元 id 给出提示：5,7,9"));
  command.add_option("--tokens-file", args.tokens_file,
                     context.T("file with a JSON array of token ids",
                               "含词元 id JSON 数组的文件"));
  command.add_option("--max-tokens", args.max_tokens,
                     context.T("tokens to generate (default 128)",
                               "最多生成的词元数（默认 128）"));
  command.add_option(
      "--temp", args.sampling.temperature,
      context.T("temperature (default 0: greedy)", "温度（默认 0：贪心）"));
  command.add_option("--top-k", args.sampling.top_k,
                     context.T("keep the K likeliest (0: all)",
                               "只保留概率最高的 K 个（0：全部）"));
  command.add_option("--top-p", args.sampling.top_p,
                     context.T("keep the likeliest that sum to P",
                               "只保留累计概率达到 P 的词元"));
  command.add_option("--min-p", args.sampling.min_p,
                     context.T("drop those below P times the likeliest",
                               "丢弃低于最高概率 P 倍的词元"));
  command
      .add_option("--seed", args.sampling.seed,
                  context.T("seed; the same seed gives the same tokens",
                            "随机种子；相同种子得到相同词元"))
      ->each([&args](const std::string&) { args.seed_given = true; });
  command.add_flag(
      "--ignore-eos", args.ignore_eos,
      context.T("go on after the end token", "遇到结束词元也继续"));
  command.add_flag("--speculative", args.speculative,
                   context.T("draft with the MTP head; same tokens, faster",
                             "用 MTP 头起草；词元相同，速度更快"));
  command.add_option(
      "--max-context", args.max_context,
      context.T("positions to plan for (default: what is needed)",
                "规划的上下文长度（默认：按需）"));
  command.add_option("--tokens-per-step", args.tokens_per_step,
                     context.T("prompt tokens a step (default 512)",
                               "每步处理的提示词元数（默认 512）"));
  command.add_option("--memory", args.memory_gib,
                     context.T("GiB for caches and activations (default: what "
                               "is free)",
                               "缓存与激活可用的 GiB（默认：可用内存）"));
  command.add_flag(
      "--explain", args.explain,
      context.T("show how each operator would run", "显示每个算子将如何执行"));
  AddJsonFlag(command, context);
}

}  // namespace

StatusOr<engine::Request> RequestFrom(const RunArgs& args) {
  engine::Request request;
  if (args.max_tokens < 1) {
    return MakeError(kArgUsage, {.where = "--max-tokens",
                                 .what = "",
                                 .expected = ">= 1",
                                 .got = std::to_string(args.max_tokens)});
  }
  if (!args.explain) {
    BELAY_ASSIGN_OR_RETURN(request.prompt,
                           TokensFrom(args.tokens, args.tokens_file));
  }
  request.max_tokens = args.max_tokens;
  request.sampling = args.sampling;
  if (!args.seed_given && args.sampling.temperature > 0) {
    request.sampling.seed = std::random_device{}();
  }
  return request;
}

StatusOr<engine::EngineOptions> OptionsFrom(const RunArgs& args,
                                            const engine::Request& request,
                                            const spec::ModelConfig& config) {
  const int64_t needed =
      static_cast<int64_t>(request.prompt.size()) + request.max_tokens;
  const int64_t limit =
      args.max_context > 0 ? args.max_context : config.max_positions;
  if (needed > limit) {
    return MakeError(
        kEngContextTooLong,
        {.where = args.max_context > 0 ? "--max-context" : "config.json",
         .what = "",
         .expected = "<= " + std::to_string(limit),
         .got = std::to_string(needed)});
  }
  engine::EngineOptions options;
  options.max_context = args.max_context > 0 ? args.max_context : needed;
  options.max_tokens_per_step = static_cast<int32_t>(std::clamp<int64_t>(
      args.tokens_per_step, 1, std::max<int64_t>(1, needed)));
  options.speculative = args.speculative;
  options.budget_bytes = args.memory_gib > 0
                             ? static_cast<size_t>(args.memory_gib * (1 << 30))
                             : AvailableBytes();
  return options;
}

void AddRun(CLI::App& app, Context& context) {
  auto args = std::make_shared<RunArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "run",
       .about = context.T("Answers a prompt with a DeepSeek-V4 checkpoint",
                          "用 DeepSeek-V4 检查点回答一个提示"),
       .example = "belay run --model data/demo --tokens "
                  "0,2546,880,413,81,3,2547,2550 --max-tokens 32"},
      [args, &context] { return Run(*args, context); });
  AddOptions(*command, *args, context);
}

}  // namespace belay::apps
