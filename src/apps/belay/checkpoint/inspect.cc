// SPDX-License-Identifier: Apache-2.0
// belay inspect: what a checkpoint or a preset holds.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/belay/checkpoint/inspect_gguf.h"
#include "apps/belay/checkpoint/inspection.h"
#include "apps/belay/commands.h"
#include "apps/belay/model/gguf_tokenizer.h"
#include "apps/belay/pack/pack.h"
#include "base/cpu_count.h"
#include "base/error_ids.h"
#include "base/thread_pool.h"
#include "checkpoint/checkpoint.h"
#include "spec/presets.h"

namespace belay::apps {
namespace {

struct InspectArgs {
  std::string folder;
  std::string preset;
  bool strict = false;
  bool skip_values = false;
};

StatusOr<Inspection> InspectPreset(const std::string& name) {
  BELAY_ASSIGN_OR_RETURN(const spec::ModelConfig config,
                         spec::PresetConfig(name));
  return Inspect("preset " + name, config, spec::ExpectedTensors(config));
}

StatusOr<Inspection> InspectFolder(const InspectArgs& args) {
  BELAY_ASSIGN_OR_RETURN(const auto pool,
                         ThreadPool::Create(CountUsableCores(AllowedCpus())));
  BELAY_ASSIGN_OR_RETURN(const auto checkpoint,
                         checkpoint::Checkpoint::Open(
                             args.folder, {.strict = args.strict,
                                           .check_values = !args.skip_values,
                                           .pool = pool.get()}));
  Inspection inspection =
      Inspect(args.folder, checkpoint->config(), checkpoint->tensors());
  inspection.n_files = checkpoint->n_files();
  inspection.report = checkpoint->report();
  return inspection;
}

StatusOr<ExitCode> RunInspect(const InspectArgs& args, const Context& context) {
  if (args.folder.empty() == args.preset.empty()) {
    return MakeError(kArgUsage,
                     {.where = "belay inspect",
                      .what = context.T("either a folder or --preset",
                                        "请给出一个文件夹，或使用 --preset"),
                      .expected = "",
                      .got = ""});
  }
  if (!args.folder.empty() && IsGguf(args.folder)) {
    return InspectGguf(args.folder, args.strict, context);
  }
  if (!args.folder.empty() && IsPacked(args.folder)) {
    return InspectPack(args.folder, context);
  }
  BELAY_ASSIGN_OR_RETURN(
      const Inspection inspection,
      args.preset.empty() ? InspectFolder(args) : InspectPreset(args.preset));
  if (context.json) {
    PrintJson(context, InspectionToJson(inspection));
  } else {
    PrintInspection(inspection, context);
  }
  for (const std::string& warning : inspection.report.warnings) {
    context.err << context.T("warning: ", "警告：") << warning << "\n";
  }
  if (!inspection.report.unknown.empty()) {
    PrintStatus(context, MakeError(kCkptUnknownTensor,
                                   {.where = args.folder + ": " +
                                             inspection.report.unknown.front(),
                                    .what = "",
                                    .expected = "",
                                    .got = ""}));
  }
  return ExitCode::kOk;
}

}  // namespace

void AddInspect(CLI::App& app, Context& context) {
  auto args = std::make_shared<InspectArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "inspect",
       .about = context.T("What a checkpoint holds: layers, tensors, bytes",
                          "查看检查点：层、张量、字节数"),
       .example = "belay inspect data/demo\nbelay inspect --preset flash"},
      [args, &context] { return RunInspect(*args, context); });
  command->add_option(
      "DIR", args->folder,
      context.T("checkpoint folder or GGUF file", "检查点文件夹或 GGUF 文件"));
  command->add_option("--preset", args->preset,
                      context.T("a model by name, without files: flash, pro, "
                                "flash-base, pro-base, tiny, ...",
                                "按名称查看模型，不需要文件：flash、pro 等"));
  command->add_flag("--strict", args->strict,
                    context.T("refuse tensors that the model does not have",
                              "拒绝模型没有的张量"));
  command->add_flag(
      "--skip-values", args->skip_values,
      context.T("do not read scales and expert tables for bad values",
                "不检查缩放因子和专家表中的坏值"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
