// SPDX-License-Identifier: Apache-2.0
// belay pack: an official checkpoint with its weights as the kernels of this
// machine read them, so that a model starts at once.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/belay/commands.h"
#include "apps/belay/pack/pack.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/shell/progress.h"
#include "backends/registry.h"
#include "base/error_ids.h"
#include "checkpoint/checkpoint.h"

namespace belay::apps {
namespace {

namespace fs = std::filesystem;

struct PackArgs {
  std::string folder;
  std::string out;
  std::string simd_target;
};

Status WriteFailed(const std::string& path, const std::error_code& error) {
  return MakeError(
      kSysWriteFailed,
      {.where = path, .what = error.message(), .expected = "", .got = ""});
}

// Everything beside the weights: config, tokenizer, encoding.
Status CopyOthers(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_directories(to, error);
  if (error) return WriteFailed(to, error);
  if (fs::equivalent(from, to, error)) {
    return MakeError(kArgUsage, {.where = "--out",
                                 .what = "",
                                 .expected = "another folder than DIR",
                                 .got = to});
  }
  for (fs::recursive_directory_iterator it(from, error), end; it != end;
       it.increment(error)) {
    if (error) return WriteFailed(from, error);
    const fs::path target = fs::path(to) / fs::relative(it->path(), from);
    if (it->is_directory()) {
      fs::create_directories(target, error);
    } else if (it->is_regular_file() &&
               it->path().filename().string().find(".safetensors") ==
                   std::string::npos) {
      fs::copy_file(it->path(), target, fs::copy_options::overwrite_existing,
                    error);
    }
    if (error) return WriteFailed(target.string(), error);
  }
  return absl::OkStatus();
}

ops::Numerics NumericsOf(const spec::ModelConfig& config) {
  ops::Numerics numerics;
  numerics.act_block = config.fp8_block;
  numerics.kv_group = config.kv_quant_group;
  numerics.index_group = config.index_quant_group;
  numerics.norm_eps = config.norm_eps;
  return numerics;
}

StatusOr<ExitCode> RunPack(const PackArgs& args, const Context& context) {
  const std::atomic<bool>& stop = CatchInterrupts();
  BELAY_ASSIGN_OR_RETURN(const auto pool, ThreadPool::Create(DefaultThreads()));
  BELAY_ASSIGN_OR_RETURN(
      const auto checkpoint,
      checkpoint::Checkpoint::Open(
          args.folder,
          {.strict = false, .check_values = true, .pool = pool.get()}));
  BELAY_ASSIGN_OR_RETURN(
      const auto backend,
      backends::Create("cpu", NumericsOf(checkpoint->config()), pool.get(),
                       {.simd_target = args.simd_target}));
  BELAY_RETURN_IF_ERROR(CopyOthers(args.folder, args.out));
  Packed packed;
  {
    Progress progress(context);
    BELAY_ASSIGN_OR_RETURN(
        packed,
        PackCheckpoint(*checkpoint, *backend, pool.get(), PackPath(args.out),
                       [&](int64_t done, int64_t total) -> Status {
                         if (stop) return MakeError(kSysInterrupted, {});
                         progress.Update(fmt::format(
                             "{} {}/{}", context.T("packing", "打包"), done,
                             total));
                         return absl::OkStatus();
                       }));
  }
  if (context.json) {
    PrintJson(context, {{"out", args.out},
                        {"layout", backend->PackedLayout()},
                        {"tensors", packed.n_tensors},
                        {"packed", packed.n_packed},
                        {"bytes", packed.bytes}});
    return ExitCode::kOk;
  }
  context.out << fmt::format(
      "{}: {} {}, {} {}, {:.1f} MB; {} \"{}\"\n", args.out, packed.n_tensors,
      context.T("tensors", "个张量"), packed.n_packed,
      context.T("of them packed", "个已打包"),
      static_cast<double>(packed.bytes) / 1e6, context.T("layout", "布局"),
      backend->PackedLayout());
  return ExitCode::kOk;
}

}  // namespace

void AddPack(CLI::App& app, Context& context) {
  auto args = std::make_shared<PackArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "pack",
       .about = context.T("Writes a checkpoint as the kernels read it, to "
                          "start at once",
                          "按内核的读取顺序写出检查点，以便立即启动"),
       .example = "belay pack data/demo --out /tmp/packed\n"
                  "belay run --model /tmp/packed --prompt Hello"},
      [args, &context] { return RunPack(*args, context); });
  command
      ->add_option("DIR", args->folder,
                   context.T("checkpoint folder", "检查点文件夹"))
      ->required();
  command
      ->add_option("--out", args->out,
                   context.T("folder to write", "要写入的文件夹"))
      ->required();
  command->add_option(
      "--simd-target", args->simd_target,
      context.T("the instruction set to pack for (default: the best here)",
                "打包所针对的指令集（默认：本机最佳）"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
