// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "apps/belay/commands.h"
#include "apps/belay/model/memory.h"
#include "apps/belay/run/run.h"
#include "base/error_ids.h"

namespace belay::apps {
namespace {

void AddGenerationOptions(CLI::App& command, RunArgs& args, Context& context) {
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
      ->check(CLI::NonNegativeNumber)  // the parser wraps -1 round
      ->each([&args](const std::string&) { args.seed_given = true; });
  command.add_flag(
      "--ignore-eos", args.ignore_eos,
      context.T("go on after the end token", "遇到结束词元也继续"));
  command.add_option("--stop", args.stops,
                     context.T("text that ends the answer; may be repeated",
                               "结束回答的文本；可重复使用"));
  command.add_flag("--speculative", args.speculative,
                   context.T("draft with the MTP head; same tokens, faster",
                             "用 MTP 头起草；词元相同，速度更快"));
  command
      .add_option("--draft-tokens", args.draft_tokens,
                  context.T("tokens it drafts a step, 1 to 4 (default 1)",
                            "每步起草的词元数，1 到 4（默认 1）"))
      ->check(CLI::Range(1, static_cast<int>(engine::kMaxDraftTokens)));
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

void AddOptions(CLI::App& command, RunArgs& args, Context& context) {
  AddModelOptions(command, args.model, context);
  command.add_option(
      "--tokens", args.tokens,
      context.T("prompt as token ids: 5,7,9", "以词元 id 给出提示：5,7,9"));
  command.add_option("--tokens-file", args.tokens_file,
                     context.T("file with a JSON array of token ids",
                               "含词元 id JSON 数组的文件"));
  command.add_option(
      "--prompt", args.prompt,
      context.T("prompt as a user's message", "以用户消息给出提示"));
  command.add_option("--prompt-file", args.prompt_file,
                     context.T("the same from a file; - is standard input",
                               "同上，取自文件；- 表示标准输入"));
  command.add_option("--messages", args.messages,
                     context.T("file with messages or a request in JSON",
                               "含 JSON 消息或请求的文件"));
  command.add_option(
      "--tools", args.tools,
      context.T("file with a list of tools in JSON", "含 JSON 工具列表的文件"));
  command.add_flag("--raw", args.raw,
                   context.T("text as it is: no chat encoding, no parsing",
                             "原样文本：不套用对话编码，不解析"));
  AddTalkOptions(command, args.talk, context);
  AddGenerationOptions(command, args, context);
}

Status BadOption(std::string name, std::string expected, std::string got) {
  return MakeError(kArgUsage, {.where = std::move(name),
                               .what = "",
                               .expected = std::move(expected),
                               .got = std::move(got)});
}

// The parser's own range checks let NaN through.
Status CheckPlan(const RunArgs& args) {
  constexpr double kMaxGib = 1 << 30;  // the bytes still fit 63 bits
  if (args.max_context < 0) {
    return BadOption("--max-context", ">= 0", std::to_string(args.max_context));
  }
  if (args.tokens_per_step < 1) {
    return BadOption("--tokens-per-step", ">= 1",
                     std::to_string(args.tokens_per_step));
  }
  if (!(args.memory_gib >= 0 && args.memory_gib <= kMaxGib)) {
    return BadOption("--memory", "0 .. 1073741824 GiB",
                     fmt::format("{}", args.memory_gib));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<engine::EngineOptions> OptionsFrom(const RunArgs& args,
                                            const engine::Request& request,
                                            const LoadedModel& model) {
  BELAY_RETURN_IF_ERROR(CheckPlan(args));
  const int64_t needed =
      static_cast<int64_t>(request.prompt.size()) + request.max_tokens;
  const int64_t limit =
      args.max_context > 0 ? args.max_context : model.config().max_positions;
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
  options.n_draft_tokens = args.speculative ? args.draft_tokens : 0;
  options.budget_bytes = args.memory_gib > 0
                             ? static_cast<size_t>(args.memory_gib * (1 << 30))
                             : AvailableBytes(*model.backend);
  return options;
}

void AddRun(CLI::App& app, Context& context) {
  auto args = std::make_shared<RunArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "run",
       .about = context.T("Answers a prompt with a DeepSeek-V4 checkpoint",
                          "用 DeepSeek-V4 检查点回答一个提示"),
       .example =
           "belay run --model data/demo --prompt 'What is error 507034?'"},
      [args, &context] { return Run(*args, context); });
  AddOptions(*command, *args, context);
}

}  // namespace belay::apps
