// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/belay/commands.h"
#include "apps/belay/model/loaded_model.h"
#include "apps/belay/model/token_args.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/shell/progress.h"
#include "apps/belay/trace/trace.h"
#include "base/error_ids.h"
#include "checkpoint/safetensors.h"

namespace belay::apps {
namespace {

struct TraceArgs {
  ModelArgs model;
  std::string tokens;
  std::string tokens_file;
  int32_t n_decode = 0;
  std::string feed;
  int64_t chunk = 0;
  std::string replay;
  std::string replay_prefix;
  std::string inject;
  std::string inject_tensor;
  int inject_layer = 0;
  std::string out;
};

using Golden = std::unique_ptr<checkpoint::SafetensorsFile>;

Status TakeReplay(const TraceArgs& args, Golden& file,
                  trace::TraceOptions& options) {
  if (args.replay.empty()) return absl::OkStatus();
  BELAY_ASSIGN_OR_RETURN(file, checkpoint::SafetensorsFile::Open(args.replay));
  options.replay =
      [&args, &file](const std::string& name) -> StatusOr<ConstTensorView> {
    const auto* tensor = file->Find(args.replay_prefix + name);
    return tensor == nullptr ? ConstTensorView() : tensor->view;
  };
  return absl::OkStatus();
}

// Row `layer` of [n_layers + 1, n_tokens, hc, dim].
Status TakeInject(const TraceArgs& args, Golden& file,
                  trace::TraceOptions& options) {
  if (args.inject.empty()) return absl::OkStatus();
  BELAY_ASSIGN_OR_RETURN(file, checkpoint::SafetensorsFile::Open(args.inject));
  const auto* tensor = file->Find(args.inject_tensor);
  if (tensor == nullptr || tensor->view.shape().rank() != 4 ||
      args.inject_layer < 0 || args.inject_layer >= tensor->view.dim(0)) {
    return MakeError(
        kTraceBadTensor,
        {.where = args.inject_tensor,
         .what = "",
         .expected =
             "[> " + std::to_string(args.inject_layer) + ", tokens, hc, dim]",
         .got = tensor == nullptr ? "" : tensor->view.shape().ToString()});
  }
  const ConstTensorView& all = tensor->view;
  options.inject =
      ConstTensorView(all.row<std::byte>(args.inject_layer), all.dtype(),
                      {all.dim(1), all.dim(2), all.dim(3)});
  options.inject_layer = args.inject_layer;
  return absl::OkStatus();
}

StatusOr<ExitCode> RunTraceCommand(const TraceArgs& args,
                                   const Context& context) {
  trace::TraceOptions options;
  BELAY_ASSIGN_OR_RETURN(options.prompt,
                         TokensFrom(args.tokens, args.tokens_file));
  if (!args.feed.empty()) {
    BELAY_ASSIGN_OR_RETURN(options.feed, ParseTokens(args.feed, "--feed"));
  }
  options.n_decode = args.n_decode;
  options.chunk = args.chunk;
  Golden replay, inject;
  BELAY_RETURN_IF_ERROR(TakeReplay(args, replay, options));
  BELAY_RETURN_IF_ERROR(TakeInject(args, inject, options));
  BELAY_ASSIGN_OR_RETURN(const auto model, LoadModel(args.model, context));
  const trace::TraceParts parts = {.config = &model->config(),
                                   .weights = model->weights.get(),
                                   .backend = model->backend.get(),
                                   .communicator = &model->communicator,
                                   .rank = {}};
  const std::atomic<bool>& interrupted = CatchInterrupts();
  Progress progress(context);
  options.keep_going = [&](int32_t n_decoded) {
    progress.Update(fmt::format("{} {}/{}", context.T("decoding", "解码"),
                                n_decoded, args.n_decode));
    return !interrupted;
  };
  BELAY_ASSIGN_OR_RETURN(trace::Tensors tensors,
                         trace::RunTrace(parts, options));
  progress.Clear();

  std::vector<checkpoint::NamedView> views;
  nlohmann::ordered_json shapes;
  for (auto& [name, tensor] : tensors) {
    views.push_back({name, tensor.view()});
    shapes[name] = {{"dtype", DtypeName(tensor.dtype)},
                    {"shape", tensor.shape.ToString()}};
    if (context.json) continue;
    context.out << fmt::format("{:22} {:5} {}\n", name, DtypeName(tensor.dtype),
                               tensor.shape.ToString());
  }
  BELAY_RETURN_IF_ERROR(checkpoint::WriteSafetensors(args.out, views));
  if (context.json) {
    PrintJson(context, {{"out", args.out}, {"tensors", shapes}});
  }
  return ExitCode::kOk;
}

void AddHookOptions(CLI::App& command, TraceArgs& args,
                    const Context& context) {
  CLI::Option* replay = command.add_option(
      "--replay", args.replay,
      context.T("golden file whose expert ids and index rows are forced",
                "强制使用此基准文件中的专家与索引选择"));
  command
      .add_option("--replay-prefix", args.replay_prefix,
                  context.T("prefix of its tensors, e.g. p130.",
                            "其张量名前缀，例如 p130."))
      ->needs(replay);
  CLI::Option* inject =
      command.add_option("--inject", args.inject,
                         context.T("file with hidden states to put in",
                                   "含要注入的隐藏状态的文件"));
  command
      .add_option("--inject-tensor", args.inject_tensor,
                  context.T("its tensor [layers + 1, tokens, hc, dim]",
                            "其张量 [层数 + 1, 词元, hc, dim]"))
      ->needs(inject);
  command
      .add_option("--inject-layer", args.inject_layer,
                  context.T("layer before which row L goes in",
                            "在此层之前注入第 L 行"))
      ->needs(inject);
}

}  // namespace

void AddTrace(CLI::App& app, Context& context) {
  auto args = std::make_shared<TraceArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "trace",
       .about = context.T("Writes every stage of a run to a safetensors file",
                          "把一次运行的各阶段写入 safetensors 文件"),
       .example = "belay trace --model data/demo --tokens 0,2546,880 --decode "
                  "4 --out trace.safetensors"},
      [args, &context] { return RunTraceCommand(*args, context); });
  AddModelOptions(*command, args->model, context);
  command->add_option(
      "--tokens", args->tokens,
      context.T("prompt as token ids: 5,7,9", "以词元 id 给出提示：5,7,9"));
  command->add_option("--tokens-file", args->tokens_file,
                      context.T("file with a JSON array of token ids",
                                "含词元 id JSON 数组的文件"));
  command
      ->add_option("--decode", args->n_decode,
                   context.T("decode steps after the prompt (default 0)",
                             "提示之后的解码步数（默认 0）"))
      ->check(CLI::Range(0, INT32_MAX, "NONNEGATIVE"));
  command->add_option("--feed", args->feed,
                      context.T("decode + 1 ids to feed instead of the greedy "
                                "ones",
                                "用这些 id（解码步数 + 1 个）代替贪心词元"));
  command
      ->add_option("--chunk", args->chunk,
                   context.T("prompt tokens a step (default: all)",
                             "每步的提示词元数（默认：全部）"))
      ->check(CLI::Range(int64_t{0}, INT64_MAX, "NONNEGATIVE"));
  AddHookOptions(*command, *args, context);
  command
      ->add_option("--out", args->out, context.T("file to write", "输出文件"))
      ->required();
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
