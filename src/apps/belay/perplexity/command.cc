// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/belay/commands.h"
#include "apps/belay/model/gguf_tokenizer.h"
#include "apps/belay/model/loaded_model.h"
#include "apps/belay/model/token_args.h"
#include "apps/belay/perplexity/perplexity.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/shell/lines.h"
#include "apps/belay/shell/progress.h"
#include "base/error_ids.h"
#include "text/tokenizer.h"

namespace belay::apps {
namespace {

struct PerplexityArgs {
  ModelArgs model;
  std::string text;
  std::string tokens_file;
  int64_t window = 512;
};

StatusOr<std::vector<int32_t>> TokensOf(const PerplexityArgs& args,
                                        const Context& context) {
  if (args.text.empty() == args.tokens_file.empty()) {
    return MakeError(kArgUsage, {.where = "belay perplexity",
                                 .what = "",
                                 .expected = "--text | --tokens-file",
                                 .got = ""});
  }
  if (!args.tokens_file.empty()) return ReadTokensFile(args.tokens_file);
  BELAY_ASSIGN_OR_RETURN(const std::string content,
                         ReadFileOrInput(context, args.text));
  BELAY_ASSIGN_OR_RETURN(const auto tokenizer,
                         OpenModelTokenizer(args.model.folder));
  return tokenizer->Encode(content, {.parse_special = false});
}

StatusOr<ExitCode> RunPerplexity(const PerplexityArgs& args,
                                 const Context& context) {
  BELAY_ASSIGN_OR_RETURN(const auto tokens, TokensOf(args, context));
  BELAY_ASSIGN_OR_RETURN(const auto model, LoadModel(args.model, context));
  const std::atomic<bool>& interrupted = CatchInterrupts();
  Progress progress(context);
  BELAY_ASSIGN_OR_RETURN(
      const Perplexity result,
      MeasurePerplexity(
          {&model->config(), model->weights.get(), model->backend.get(),
           &model->communicator},
          tokens, args.window, [&](const Perplexity& p, int64_t n_windows) {
            progress.Update(fmt::format("{}/{}  {:.4f}", p.n_windows, n_windows,
                                        p.value()));
            return !interrupted;
          }));
  progress.Clear();
  if (context.json) {
    PrintJson(context, {{"perplexity", result.value()},
                        {"mean_nll", result.mean_nll},
                        {"std_error", result.std_error},
                        {"windows", result.n_windows},
                        {"tokens", result.n_tokens},
                        {"window", args.window},
                        {"backend", model->backend->name()},
                        {"numerics", args.model.numerics},
                        {"activations", args.model.activations}});
    return ExitCode::kOk;
  }
  context.out << fmt::format("{:.4f} +- {:.4f}  ({} {}, {} {})\n",
                             result.value(), result.value() * result.std_error,
                             result.n_windows, context.T("windows", "个窗口"),
                             result.n_tokens, context.T("tokens", "个词元"));
  return ExitCode::kOk;
}

}  // namespace

void AddPerplexity(CLI::App& app, Context& context) {
  auto args = std::make_shared<PerplexityArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "perplexity",
       .about = context.T("How surprised a model is by a text",
                          "计算模型在文本上的困惑度"),
       .example = "belay perplexity --model data/demo --text notes.txt "
                  "--window 128"},
      [args, &context] { return RunPerplexity(*args, context); });
  AddModelOptions(*command, args->model, context);
  command->add_option(
      "--text", args->text,
      context.T("text file; - is standard input", "文本文件；- 表示标准输入"));
  command->add_option("--tokens-file", args->tokens_file,
                      context.T("file with a JSON array of token ids",
                                "含词元 id JSON 数组的文件"));
  command->add_option("--window", args->window,
                      context.T("tokens a window (default 512)",
                                "每个窗口的词元数（默认 512）"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
