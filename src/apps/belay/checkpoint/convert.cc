// SPDX-License-Identifier: Apache-2.0
// belay convert: an official checkpoint as a GGUF file.
#include "checkpoint/gguf/convert.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/belay/checkpoint/gguf_vocabulary.h"
#include "apps/belay/commands.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/shell/progress.h"
#include "base/cpu_count.h"
#include "base/error_ids.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"

namespace belay::apps {
namespace {

namespace gguf = checkpoint::gguf;

struct ConvertArgs {
  std::string folder;
  std::string to = "gguf";
  std::string type = "mxfp4";
  std::string out;
  bool mtp = false;
  bool skip_verify = false;
};

std::function<Status(uint64_t, uint64_t)> Reporter(
    const std::atomic<bool>& stop, Progress& progress, const char* verb) {
  return [&stop, &progress, verb](uint64_t done, uint64_t total) -> Status {
    if (stop) return MakeError(kSysInterrupted, {});
    progress.Update(fmt::format("{} {:.1f} / {:.1f} MB", verb,
                                static_cast<double>(done) / 1e6,
                                static_cast<double>(total) / 1e6));
    return absl::OkStatus();
  };
}

StatusOr<ExitCode> RunConvert(const ConvertArgs& args, const Context& context) {
  const std::atomic<bool>& stop = CatchInterrupts();
  BELAY_ASSIGN_OR_RETURN(const auto pool,
                         ThreadPool::Create(CountUsableCores(AllowedCpus())));
  BELAY_ASSIGN_OR_RETURN(
      const auto checkpoint,
      checkpoint::Checkpoint::Open(
          args.folder,
          {.strict = false, .check_values = true, .pool = pool.get()}));
  BELAY_ASSIGN_OR_RETURN(
      const GgufVocabulary vocabulary,
      ReadVocabulary(args.folder, checkpoint->config().vocab_size));
  gguf::ConvertOptions options;
  options.out = args.out;
  options.experts =
      args.type == "q8_0" ? gguf::ExpertType::kQ8_0 : gguf::ExpertType::kMxfp4;
  options.mtp = args.mtp;
  const spec::ModelConfig& config = checkpoint->config();
  options.add_metadata = [&](gguf::HeaderBuilder& header) {
    const auto name = std::filesystem::path(args.folder).filename().string();
    header.AddText("general.name", name.empty() ? "DeepSeek-V4" : name);
    AddVocabulary(vocabulary, config.bos_id, config.eos_id, header);
  };
  gguf::Converted converted;
  {
    Progress progress(context);
    options.progress = Reporter(stop, progress, context.T("writing", "写入"));
    BELAY_ASSIGN_OR_RETURN(converted,
                           gguf::ConvertToGguf(*checkpoint, options));
  }
  if (!args.skip_verify) {
    Progress progress(context);
    options.progress =
        Reporter(stop, progress, context.T("reading back", "回读校验"));
    BELAY_RETURN_IF_ERROR(gguf::VerifyGguf(*checkpoint, options));
  }
  if (context.json) {
    PrintJson(context, {{"file", args.out},
                        {"tensors", converted.n_tensors},
                        {"bytes", converted.bytes},
                        {"verified", !args.skip_verify}});
    return ExitCode::kOk;
  }
  context.out << fmt::format(
      "{}: {} {}, {:.1f} MB{}\n", args.out, converted.n_tensors,
      context.T("tensors", "个张量"),
      static_cast<double>(converted.bytes) / 1e6,
      args.skip_verify
          ? ""
          : context.T(", read back bit for bit", "，已逐位回读校验"));
  return ExitCode::kOk;
}

}  // namespace

void AddConvert(CLI::App& app, Context& context) {
  auto args = std::make_shared<ConvertArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "convert",
       .about = context.T("Write an official checkpoint as a GGUF file",
                          "把官方检查点转换为 GGUF 文件"),
       .example = "belay convert data/demo --to gguf --out /tmp/demo.gguf"},
      [args, &context] { return RunConvert(*args, context); });
  command
      ->add_option("DIR", args->folder,
                   context.T("checkpoint folder", "检查点文件夹"))
      ->required();
  command->add_option("--to", args->to, "gguf")->check(CLI::IsMember({"gguf"}));
  command
      ->add_option("--out", args->out,
                   context.T("file to write", "要写入的文件"))
      ->required();
  command
      ->add_option("--type", args->type,
                   context.T("of routed experts: mxfp4 (default, without loss "
                             "from FP4) or q8_0",
                             "路由专家的类型：mxfp4（默认，FP4 无损）或 q8_0"))
      ->check(CLI::IsMember({"mxfp4", "q8_0"}));
  command->add_flag("--mtp", args->mtp,
                    context.T("MTP blocks too", "同时写入 MTP 层"));
  command->add_flag("--skip-verify", args->skip_verify,
                    context.T("do not read the file back", "不回读校验"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
