// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/error_ids.h"
#include "base/file.h"
#include "checkpoint/shards.h"
#include "checkpoint/values.h"

namespace belay::checkpoint {
namespace {

using spec::ExpectedTensor;

constexpr size_t kMaxConfigBytes = size_t{16} << 20;

std::string DtypeNames(const ExpectedTensor& tensor) {
  std::string names(DtypeName(tensor.dtype));
  if (tensor.also.has_value()) {
    names += " or ";
    names += DtypeName(*tensor.also);
  }
  return names;
}

Status CheckTensor(const ExpectedTensor& expected, ConstTensorView view,
                   const std::string& where) {
  if (!expected.accepts(view.dtype())) {
    return MakeError(kCkptWrongDtype, {where, "", DtypeNames(expected),
                                       std::string(DtypeName(view.dtype()))});
  }
  if (view.shape() != expected.shape) {
    return MakeError(kCkptWrongShape, {where, "", expected.shape.ToString(),
                                       view.shape().ToString()});
  }
  return absl::OkStatus();
}

std::optional<BadElement> FindBad(const ExpectedTensor& tensor,
                                  ConstTensorView view, int64_t n_experts) {
  switch (tensor.role) {
    case spec::Role::kScale:
      return FindBadScale(view);
    case spec::Role::kTable:
      return FindBadExpertId(view, n_experts);
    case spec::Role::kWeight:
      break;
  }
  return std::nullopt;
}

// [row, column] of an element.
std::string Position(const Shape& shape, int64_t index) {
  const int64_t columns = shape[1];
  return "[" + std::to_string(index / columns) + ", " +
         std::to_string(index % columns) + "]";
}

}  // namespace

Checkpoint::Checkpoint() = default;
Checkpoint::~Checkpoint() = default;

StatusOr<std::unique_ptr<Checkpoint>> Checkpoint::Open(
    const std::string& folder, const CheckpointOptions& options) {
  std::unique_ptr<Checkpoint> c(new Checkpoint);
  c->folder_ = folder;
  BELAY_RETURN_IF_ERROR(c->ReadConfig());
  BELAY_ASSIGN_OR_RETURN(ShardSet shards, OpenShards(folder));
  c->shards_ = std::make_unique<ShardSet>(std::move(shards));
  c->report_.warnings = c->shards_->warnings;
  c->DropAbsentMtpLayers();
  c->expected_ = spec::ExpectedTensors(c->config_);
  BELAY_RETURN_IF_ERROR(c->Match());
  BELAY_RETURN_IF_ERROR(c->FindUnused(options.strict));
  if (options.check_values) {
    BELAY_RETURN_IF_ERROR(c->CheckValues(options.pool));
  }
  return c;
}

void Checkpoint::ReleasePages() const {
  for (const auto& file : shards_->files) file->ReleasePages();
}

int64_t Checkpoint::n_files() const {
  return static_cast<int64_t>(shards_->files.size());
}

Status Checkpoint::ReadConfig() {
  const std::string path =
      (std::filesystem::path(folder_) / "config.json").string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    return MakeError(kCkptNotFound, {folder_, "", "config.json", "none"});
  }
  BELAY_ASSIGN_OR_RETURN(const std::string text,
                         ReadFile(path, kMaxConfigBytes));
  BELAY_ASSIGN_OR_RETURN(config_, spec::ParseConfig(text, path));
  return absl::OkStatus();
}

void Checkpoint::DropAbsentMtpLayers() {
  const auto has = [this](int64_t layer) {
    const std::string prefix = "mtp." + std::to_string(layer) + ".";
    return std::any_of(shards_->tensors.begin(), shards_->tensors.end(),
                       [&](const auto& item) {
                         return item.first.substr(0, prefix.size()) == prefix;
                       });
  };
  while (config_.n_mtp_layers > 0 && !has(config_.n_mtp_layers - 1)) {
    --config_.n_mtp_layers;
    config_.compress_ratios.pop_back();
    report_.warnings.push_back("mtp." + std::to_string(config_.n_mtp_layers) +
                               ": no tensors; the layer is left out");
  }
}

Status Checkpoint::Match() {
  const ExpectedTensor* first_missing = nullptr;
  int64_t n_missing = 0;
  for (ExpectedTensor& expected : expected_) {
    const auto it = shards_->tensors.find(expected.name);
    if (it == shards_->tensors.end()) {
      if (n_missing++ == 0) first_missing = &expected;
      continue;
    }
    const ConstTensorView view = it->second->view;
    BELAY_RETURN_IF_ERROR(
        CheckTensor(expected, view, folder_ + ": " + expected.name));
    if (expected.dtype != view.dtype()) {
      std::swap(expected.dtype, *expected.also);
    }
    entries_[expected.name] = {&expected, view};
  }
  if (n_missing == 0) return absl::OkStatus();
  return MakeError(
      kCkptMissingTensor,
      {folder_ + ": " + first_missing->name,
       n_missing == 1 ? "" : std::to_string(n_missing) + " tensors are missing",
       std::string(DtypeName(first_missing->dtype)) + " " +
           first_missing->shape.ToString(),
       ""});
}

Status Checkpoint::FindUnused(bool strict) {
  for (const auto& [name, tensor] : shards_->tensors) {
    if (entries_.contains(name)) continue;
    const auto family = spec::UnusedFamilyOf(config_, name);
    if (family.has_value()) {
      auto& unused = report_.unused[std::string(*family)];
      ++unused.n_tensors;
      unused.bytes += tensor->view.bytes();
    } else {
      report_.unknown.emplace_back(name);
    }
  }
  std::sort(report_.unknown.begin(), report_.unknown.end());
  if (!strict || report_.unknown.empty()) return absl::OkStatus();
  return MakeError(kCkptUnknownTensor,
                   {folder_ + ": " + report_.unknown.front(),
                    std::to_string(report_.unknown.size()) +
                        " tensors that the model does not have",
                    "", ""});
}

Status Checkpoint::CheckValues(ThreadPool* pool) const {
  std::vector<const Entry*> to_read;
  for (const ExpectedTensor& expected : expected_) {
    if (expected.role == spec::Role::kWeight) continue;
    to_read.push_back(&entries_.at(expected.name));
  }
  // The first bad tensor in the table's order, whoever finds it.
  std::atomic<size_t> first_bad = to_read.size();
  const auto check = [&](size_t i, int) {
    const Entry& entry = *to_read[i];
    if (!FindBad(*entry.expected, entry.view, config_.n_routed_experts)) return;
    size_t seen = first_bad.load();
    while (i < seen && !first_bad.compare_exchange_weak(seen, i)) {
    }
  };
  if (pool != nullptr) {
    pool->ParallelFor(to_read.size(), check);
  } else {
    for (size_t i = 0; i < to_read.size(); ++i) check(i, 0);
  }
  if (first_bad == to_read.size()) return absl::OkStatus();
  const Entry& entry = *to_read[first_bad];
  const auto bad =
      FindBad(*entry.expected, entry.view, config_.n_routed_experts);
  const bool is_scale = entry.expected->role == spec::Role::kScale;
  return MakeError(is_scale ? kCkptNanScale : kCkptBadValue,
                   {folder_ + ": " + entry.expected->name + " " +
                        Position(entry.view.shape(), bad->index),
                    "",
                    is_scale ? "a finite positive scale"
                             : "an expert id below " +
                                   std::to_string(config_.n_routed_experts),
                    bad->value});
}

StatusOr<ConstTensorView> Checkpoint::Get(std::string_view name) const {
  return Slice(name, spec::Rank{});
}

StatusOr<ConstTensorView> Checkpoint::Slice(std::string_view name,
                                            const spec::Rank& rank) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    return MakeError(kCkptMissingTensor,
                     {folder_ + ": " + std::string(name), "", "", ""});
  }
  const Entry& entry = it->second;
  BELAY_ASSIGN_OR_RETURN(const spec::TensorSlice slice,
                         spec::SliceOf(*entry.expected, rank));
  if (!slice.present) return ConstTensorView();
  if (slice.dim < 0) return entry.view;
  if (slice.dim == 0) return entry.view.rows(slice.begin, slice.shape[0]);
  const auto offset =
      static_cast<size_t>(slice.begin) * DtypeBytes(entry.view.dtype());
  return ConstTensorView(entry.view.row<std::byte>(0) + offset,
                         entry.view.dtype(), slice.shape,
                         entry.view.row_bytes_stride());
}

}  // namespace belay::checkpoint
