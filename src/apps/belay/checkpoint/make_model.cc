// SPDX-License-Identifier: Apache-2.0
// belay make-model: a random checkpoint in the official format.
#include "checkpoint/make_model.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/belay/commands.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/shell/progress.h"
#include "base/cpu_count.h"
#include "base/error_ids.h"
#include "base/thread_pool.h"
#include "spec/presets.h"

namespace belay::apps {
namespace {

struct MakeModelArgs {
  std::string preset;
  std::string folder;
  uint64_t seed = 0;
  int64_t vocab = -1;  // -1: of the preset
  double shard_gib = 4;
  std::optional<int> n_threads;  // none: all usable cores
  bool skip_verify = false;
};

// Runs one pass over the model with a progress line.
template <typename Fn>  // Fn(const MakeModelOptions&)
auto WithProgress(checkpoint::MakeModelOptions options, const char* verb,
                  const Context& context, const std::atomic<bool>& stop,
                  const Fn& fn) {
  Progress progress(context);
  options.progress = [&](uint64_t done, uint64_t total) -> Status {
    if (stop) return MakeError(kSysInterrupted, {});
    progress.Update(fmt::format("{} {:.1f} / {:.1f} MB", verb,
                                static_cast<double>(done) / 1e6,
                                static_cast<double>(total) / 1e6));
    return absl::OkStatus();
  };
  return fn(options);
}

StatusOr<ExitCode> RunMakeModel(const MakeModelArgs& args,
                                const Context& context) {
  checkpoint::MakeModelOptions options;
  BELAY_ASSIGN_OR_RETURN(options.config, spec::PresetConfig(args.preset));
  if (args.vocab != -1) options.config.vocab_size = args.vocab;
  options.seed = args.seed;
  options.folder = args.folder;
  if (!(args.shard_gib > 0 && args.shard_gib < 1e6)) {
    return MakeError(kArgUsage, {.where = "--shard-gib",
                                 .what = "",
                                 .expected = "0 < GiB < 1000000",
                                 .got = fmt::format("{}", args.shard_gib)});
  }
  options.max_shard_bytes =
      static_cast<uint64_t>(args.shard_gib * 1024 * 1024 * 1024);
  const int n_threads =
      args.n_threads.value_or(CountUsableCores(AllowedCpus()));
  BELAY_ASSIGN_OR_RETURN(const auto pool, ThreadPool::Create(n_threads));
  options.pool = pool.get();

  const std::atomic<bool>& stop = CatchInterrupts();
  BELAY_ASSIGN_OR_RETURN(const checkpoint::MadeModel made,
                         WithProgress(options, context.T("writing", "写入"),
                                      context, stop, checkpoint::MakeModel));
  if (!args.skip_verify) {
    BELAY_RETURN_IF_ERROR(WithProgress(options,
                                       context.T("reading back", "回读校验"),
                                       context, stop, checkpoint::VerifyModel));
  }
  if (context.json) {
    PrintJson(context, {{"folder", args.folder},
                        {"preset", args.preset},
                        {"seed", args.seed},
                        {"tensors", made.n_tensors},
                        {"files", made.n_files},
                        {"bytes", made.bytes},
                        {"verified", !args.skip_verify}});
    return ExitCode::kOk;
  }
  context.out << fmt::format(
      "{}: {} {}, {:.1f} MB, {} {}{}\n", args.folder, made.n_tensors,
      context.T("tensors", "个张量"), static_cast<double>(made.bytes) / 1e6,
      made.n_files,
      made.n_files == 1 ? context.T("file", "个文件")
                        : context.T("files", "个文件"),
      args.skip_verify
          ? ""
          : context.T(", read back bit for bit", "，已逐位回读校验"));
  return ExitCode::kOk;
}

}  // namespace

void AddMakeModel(CLI::App& app, Context& context) {
  auto args = std::make_shared<MakeModelArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "make-model",
       .about = context.T("Write a random checkpoint in the official format",
                          "生成官方格式的随机检查点"),
       .example = "belay make-model --preset tiny --seed 1 --out /tmp/tiny"},
      [args, &context] { return RunMakeModel(*args, context); });
  std::string names;
  for (const spec::Preset& preset : spec::Presets()) {
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  }
  command->add_option("--preset", args->preset, names)->required();
  command
      ->add_option("--out", args->folder,
                   context.T("folder to create", "要创建的文件夹"))
      ->required();
  command
      ->add_option("--seed", args->seed,
                   context.T("same seed, same bytes (default 0)",
                             "相同种子得到相同字节（默认 0）"))
      ->check(CLI::NonNegativeNumber);
  command->add_option("--vocab", args->vocab,
                      context.T("another vocabulary size", "改用其他词表大小"));
  command->add_option(
      "--shard-gib", args->shard_gib,
      context.T("split larger models into files of this size (default 4)",
                "更大的模型按此大小分片（默认 4）"));
  command->add_option(
      "--threads", args->n_threads,
      context.T("default: all usable cores", "默认使用全部可用核心"));
  command->add_flag("--skip-verify", args->skip_verify,
                    context.T("do not read the files back", "不回读校验"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
