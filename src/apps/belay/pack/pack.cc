// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/pack/pack.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/cpu_count.h"
#include "base/error_ids.h"
#include "model/weights.h"
#include "spec/names.h"

namespace belay::apps {
namespace {

// A matrix that BindWeights binds as a linear. Everything else stays as it is.
bool IsLinear(const spec::ExpectedTensor& tensor) {
  return tensor.role == spec::Role::kWeight && tensor.shape.rank() == 2 &&
         tensor.family != spec::Family::kEmbed &&
         tensor.name.ends_with(spec::names::kWeight);
}

}  // namespace

std::string PackPath(const std::string& folder) {
  return (std::filesystem::path(folder) / checkpoint::kPackFileName).string();
}

bool IsPacked(const std::string& folder) {
  std::error_code error;
  return std::filesystem::is_regular_file(PackPath(folder), error);
}

Status CheckLayout(const checkpoint::PackFile& file,
                   const ops::Backend& backend) {
  const std::string layout = backend.PackedLayout();
  if (layout == file.layout()) return absl::OkStatus();
  const bool never = backend.name() != "cpu" ||
                     !backend.numerics().official() ||
                     backend.numerics().int8_activations;
  return MakeError(never ? kPackNeedsCpu : kPackOtherLayout,
                   {.where = "--model",
                    .what = "",
                    .expected = layout.empty() ? "weights as they are" : layout,
                    .got = file.layout()});
}

StatusOr<Packed> PackCheckpoint(
    const checkpoint::Checkpoint& checkpoint, ops::Backend& backend,
    ThreadPool* pool, const std::string& path,
    const std::function<Status(int64_t done, int64_t total)>& progress) {
  const std::string layout = backend.PackedLayout();
  if (layout.empty()) {
    return MakeError(kBackUnavailable, {.where = std::string(backend.name()),
                                        .what = "kernels that pack weights",
                                        .expected = "AVX512-BF16",
                                        .got = ""});
  }
  const model::TensorLookup lookup =
      [&](std::string_view name) -> StatusOr<StoredView> {
    return checkpoint.Get(name);
  };
  uint64_t weight_bytes = 0;
  for (const auto& tensor : checkpoint.tensors()) {
    weight_bytes += tensor.bytes();
  }
  BELAY_ASSIGN_OR_RETURN(const auto writer,
                         checkpoint::PackWriter::Create(
                             path, layout, checkpoint.config(), weight_bytes));
  Packed packed;
  const auto total = static_cast<int64_t>(checkpoint.tensors().size());
  for (const spec::ExpectedTensor& tensor : checkpoint.tensors()) {
    BELAY_RETURN_IF_ERROR(progress(packed.n_tensors, total));
    BELAY_ASSIGN_OR_RETURN(const ConstTensorView plain,
                           checkpoint.Get(tensor.name));
    StoredView view = plain;
    std::unique_ptr<ops::BoundLinear> bound;
    if (IsLinear(tensor)) {
      const std::string name = tensor.name.substr(
          0,
          tensor.name.size() - std::string_view(spec::names::kWeight).size());
      BELAY_ASSIGN_OR_RETURN(
          const ops::LinearSource source,
          model::LinearSourceOf(checkpoint.config(), lookup, name));
      auto made = backend.BindLinear(source);
      if (!made.ok()) return WithContext(made.status(), name);
      bound = std::move(made).value();
      view.packed = bound->packed();
      if (!view.packed.empty()) ++packed.n_packed;
    }
    BELAY_RETURN_IF_ERROR(writer->Add(tensor.name, view, pool));
    checkpoint.ReleasePages();
    ++packed.n_tensors;
  }
  BELAY_ASSIGN_OR_RETURN(packed.bytes, writer->Finish());
  return packed;
}

StatusOr<ExitCode> InspectPack(const std::string& folder,
                               const Context& context) {
  BELAY_ASSIGN_OR_RETURN(const auto pool,
                         ThreadPool::Create(CountUsableCores(AllowedCpus())));
  BELAY_ASSIGN_OR_RETURN(const auto file,
                         checkpoint::PackFile::Open(PackPath(folder)));
  BELAY_RETURN_IF_ERROR(file->Verify(pool.get()));
  if (context.json) {
    PrintJson(context, {{"file", PackPath(folder)},
                        {"layout", file->layout()},
                        {"tensors", file->n_tensors()},
                        {"bytes", file->file_bytes()},
                        {"weight_bytes", file->weight_bytes()},
                        {"layers", file->config().n_layers},
                        {"verified", true}});
    return ExitCode::kOk;
  }
  context.out << fmt::format(
      "{}: {} {}, {:.1f} MB {} {:.1f} MB; {} \"{}\"; {}\n", PackPath(folder),
      file->n_tensors(), context.T("tensors", "个张量"),
      static_cast<double>(file->file_bytes()) / 1e6,
      context.T("for weights of", "，原始权重"),
      static_cast<double>(file->weight_bytes()) / 1e6,
      context.T("layout", "布局"), file->layout(),
      context.T("every checksum fits", "所有校验和均匹配"));
  return ExitCode::kOk;
}

}  // namespace belay::apps
