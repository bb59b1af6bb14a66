// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/model/loaded_model.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <utility>

#include "apps/belay/model/gguf_tokenizer.h"
#include "apps/belay/pack/pack.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/shell/progress.h"
#include "apps/belay/shell/variable.h"
#include "backends/registry.h"
#include "base/cpu_count.h"
#include "base/error_ids.h"
#include "checkpoint/eos.h"

namespace belay::apps {
namespace {

StatusOr<ops::Numerics> NumericsFor(const ModelArgs& args,
                                    const spec::ModelConfig& config) {
  ops::Numerics numerics;
  if (args.numerics == "exact") {
    numerics.mode = ops::NumericsMode::kExact;
  } else if (args.numerics != "official") {
    return MakeError(kArgUsage, {.where = "--numerics",
                                 .what = "",
                                 .expected = "official | exact",
                                 .got = args.numerics});
  }
  if (args.activations != "official" && args.activations != "int8") {
    return MakeError(kArgUsage, {.where = "--activations",
                                 .what = "",
                                 .expected = "official | int8",
                                 .got = args.activations});
  }
  numerics.int8_activations = args.activations == "int8";
  numerics.act_block = config.fp8_block;
  numerics.kv_group = config.kv_quant_group;
  numerics.index_group = config.index_quant_group;
  numerics.norm_eps = config.norm_eps;
  return numerics;
}

// Tensors beside the model are no error, but nobody should have to guess why a
// file is larger than what runs.
void Warn(const checkpoint::CheckpointReport& report, const Context& context) {
  for (const std::string& fact : report.warnings) {
    context.err << context.T("warning: ", "警告：") << fact << "\n";
  }
  if (report.unknown.empty()) return;
  PrintStatus(context,
              MakeError(kCkptUnknownTensor,
                        {.where = report.unknown.front(),
                         .what = "",
                         .expected = "",
                         .got = std::to_string(report.unknown.size())}));
}

Status OpenFiles(const ModelArgs& args, LoadedModel& loaded) {
  if (IsPacked(args.folder)) {
    BELAY_ASSIGN_OR_RETURN(loaded.pack,
                           checkpoint::PackFile::Open(PackPath(args.folder)));
    return args.strict ? loaded.pack->Verify(loaded.pool.get())
                       : absl::OkStatus();
  }
  if (IsGguf(args.folder)) {
    BELAY_ASSIGN_OR_RETURN(loaded.gguf, checkpoint::gguf::GgufModel::Open(
                                            args.folder, args.strict));
    return absl::OkStatus();
  }
  BELAY_ASSIGN_OR_RETURN(
      loaded.checkpoint,
      checkpoint::Checkpoint::Open(args.folder, {.strict = args.strict,
                                                 .check_values = true,
                                                 .pool = loaded.pool.get()}));
  return absl::OkStatus();
}

}  // namespace

void AddModelOptions(CLI::App& command, ModelArgs& args,
                     const Context& context) {
  command
      .add_option("--model", args.folder,
                  context.T("checkpoint folder (config.json, *.safetensors), "
                            "folder of belay pack, or GGUF file",
                            "检查点目录（config.json、*.safetensors）、"
                            "belay pack 的目录，或 GGUF 文件"))
      ->required();
  command.add_option("--backend", args.backend,
                     context.T("cpu (default), ref, or cann: an Ascend NPU",
                               "cpu（默认）、ref，或 cann：昇腾 NPU"));
  command.add_option(
      "--numerics", args.numerics,
      context.T("official (default), or exact: float32, nothing quantised",
                "official（默认），或 exact：float32，不做量化"));
  command.add_option(
      "--activations", args.activations,
      context.T("official (default), or int8: faster, not DeepSeek's numbers; "
                "docs/activations.md has the error",
                "official（默认），或 int8：更快，但不是 DeepSeek 的数值；"
                "误差见 docs/activations.md"));
  command.add_option("--threads", args.threads,
                     context.T("threads (default: physical cores)",
                               "线程数（默认：物理核数）"));
  command.add_option("--device", args.device,
                     context.T("number of the NPU for --backend cann "
                               "(default 0)",
                               "--backend cann 使用的 NPU 编号（默认 0）"));
  command
      .add_option("--device-timeout", args.device_timeout,
                  context.T("seconds that a step may take on the NPU before it "
                            "is taken for hung (default 600)",
                            "一步在 NPU 上最多允许的秒数，超过即视为挂起"
                            "（默认 600）"))
      ->check(CLI::Range(1, 86400));
  command.add_flag(
      "--no-pin", args.no_pin,
      context.T("leave threads to the system (default: a team that takes every "
                "core has each thread on its own)",
                "不绑定线程（默认：占满所有核心的线程组每线程固定一核）"));
  command.add_option(
      "--simd-target", args.simd_target,
      context.T(
          "hold the cpu back end to an instruction set: SSE4, AVX2, AVX3, "
          "AVX3_DL, AVX512-BF16, NEON",
          "将 cpu 后端限制为某个指令集：SSE4、AVX2、AVX3、AVX3_DL、"
          "AVX512-BF16、NEON"));
  command.add_flag("--strict", args.strict,
                   context.T("refuse a checkpoint with unknown tensors",
                             "检查点含有未知张量时拒绝加载"));
}

StatusOr<StoredView> LoadedModel::Find(std::string_view name) const {
  if (pack != nullptr) return pack->Find(name);
  if (gguf != nullptr) return gguf->Find(name);
  return checkpoint->Slice(name, spec::Rank{});
}

void LoadedModel::ReleasePages() const {
  // A packed model is used where it is mapped.
  if (gguf != nullptr) gguf->ReleasePages();
  if (checkpoint != nullptr) checkpoint->ReleasePages();
}

uint64_t LoadedModel::weight_bytes() const {
  if (pack != nullptr) return pack->weight_bytes();
  if (gguf != nullptr) return gguf->weight_bytes();
  uint64_t bytes = 0;
  for (const auto& tensor : checkpoint->tensors()) bytes += tensor.bytes();
  return bytes;
}

StatusOr<std::unique_ptr<LoadedModel>> LoadModel(
    const ModelArgs& args, const Context& context,
    const std::function<void(double)>& on_progress) {
  const auto start = std::chrono::steady_clock::now();
  const std::atomic<bool>& interrupted = CatchInterrupts();
  auto loaded = std::make_unique<LoadedModel>();
  const int n_threads = args.threads.value_or(DefaultThreads());
  std::vector<int> cpus;
  auto topology = Topology::Load();
  if (topology.ok()) {
    loaded->topology = std::move(topology).value();
    if (!args.no_pin) cpus = loaded->topology->CpusFor(n_threads);
  }
  BELAY_ASSIGN_OR_RETURN(loaded->pool, ThreadPool::Create(n_threads, cpus));
  BELAY_RETURN_IF_ERROR(OpenFiles(args, *loaded));
  if (loaded->gguf != nullptr) Warn(loaded->gguf->report(), context);
  if (loaded->checkpoint != nullptr) {
    Warn(loaded->checkpoint->report(), context);
  }
  BELAY_ASSIGN_OR_RETURN(
      loaded->eos_ids,
      checkpoint::EosIds(args.folder, loaded->config().eos_id));
  BELAY_ASSIGN_OR_RETURN(const ops::Numerics numerics,
                         NumericsFor(args, loaded->config()));
  BELAY_ASSIGN_OR_RETURN(
      loaded->backend,
      backends::Create(args.backend, numerics, loaded->pool.get(),
                       {.simd_target = args.simd_target,
                        .topology = loaded->topology.get(),
                        .variable = Variable,
                        .device = args.device,
                        .device_timeout_ms = 1000 * args.device_timeout}));

  if (loaded->pack != nullptr) {
    BELAY_RETURN_IF_ERROR(CheckLayout(*loaded->pack, *loaded->backend));
  }

  Progress progress(context);
  BELAY_ASSIGN_OR_RETURN(
      loaded->weights,
      model::BindWeights(
          loaded->config(), spec::Rank{},
          [&](std::string_view name) -> StatusOr<StoredView> {
            if (interrupted) return MakeError(kSysInterrupted, ErrorFacts{});
            return loaded->Find(name);
          },
          *loaded->backend,
          [&](int64_t done, int64_t total) {
            // What was packed is needed no more; the rest is mapped again.
            loaded->ReleasePages();
            if (on_progress && total > 0) {
              on_progress(static_cast<double>(done) /
                          static_cast<double>(total));
            }
            progress.Update(
                std::string(context.T("loading layer ", "加载层 ")) +
                std::to_string(done) + "/" + std::to_string(total));
          }));
  loaded->load_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return loaded;
}

}  // namespace belay::apps
