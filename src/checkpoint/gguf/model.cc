// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf/model.h"

#include <algorithm>
#include <utility>

#include "base/error_ids.h"
#include "base/float_formats.h"
#include "checkpoint/gguf/config.h"
#include "checkpoint/gguf/names.h"
#include "spec/tensors.h"

namespace belay::checkpoint::gguf {
namespace {

using spec::ExpectedTensor;

// Matrices that a back end takes in any format, in the file's own bytes.
bool IsMatrix(const ExpectedTensor& expected) {
  return expected.role == spec::Role::kWeight && expected.shape.rank() == 2 &&
         expected.dtype != DType::kF32;
}

// [n_out, n_in] in values.
Shape ValueShape(const ExpectedTensor& expected) {
  Shape shape = expected.shape;
  if (expected.dtype == DType::kI8) shape.set_dim(1, 2 * shape[1]);
  return shape;
}

// What the GGUF tensor that holds `wanted` must look like.
Shape StackShape(const Shape& wanted, const Place& place, int64_t n_experts) {
  switch (place.part) {
    case Part::kWhole:
      break;
    case Part::kExpert:
      return {n_experts, wanted[0], wanted[1]};
    case Part::kLeftHalf:
    case Part::kRightHalf:
      return {wanted[0], 2 * wanted[1]};
  }
  return wanted;
}

// The rows or columns of `stack` (rows flattened) that `place` means.
StatusOr<StoredView> PartOf(StoredView stack, const Place& place,
                            const Shape& wanted) {
  ConstTensorView& view = stack.view;
  const int64_t n_rows = view.n_elements() / view.dim(view.shape().rank() - 1);
  view = view.reshaped({n_rows, view.n_elements() / n_rows});
  if (place.part == Part::kWhole) return stack;
  if (place.part == Part::kExpert) {
    view = view.rows(place.expert * wanted[0], wanted[0]);
    return stack;
  }
  const int64_t block = BlockValues(stack.format);
  if (wanted[1] % block != 0) {
    return MakeError(
        kCkptWrongShape,
        {place.name, "half a row cuts through a block",
         "a multiple of " + std::to_string(block), std::to_string(wanted[1])});
  }
  const int64_t half = view.dim(1) / 2;
  const size_t offset =
      place.part == Part::kLeftHalf
          ? 0
          : static_cast<size_t>(half) * DtypeBytes(view.dtype());
  view = ConstTensorView(view.row<std::byte>(0) + offset, view.dtype(),
                         {view.dim(0), half}, view.row_bytes_stride());
  return stack;
}

double PlainElement(ConstTensorView view, int64_t i) {
  switch (view.dtype()) {
    case DType::kF32:
      return view.as<float>()[static_cast<size_t>(i)];
    case DType::kF16:
      return F32FromF16(view.as<uint16_t>()[static_cast<size_t>(i)]);
    case DType::kBF16:
      return F32FromBf16(view.as<uint16_t>()[static_cast<size_t>(i)]);
    default:
      return 0.0;
  }
}

// Tensors that files carry and this model does not use.
std::optional<std::string> UnusedFamily(std::string_view name) {
  if (name.find("exp_probs_b_vl") != std::string_view::npos) {
    return "selection bias of the vision variant";
  }
  if (name == "rope_freqs.weight") return "rope frequencies";
  if (name.find(".nextn.") != std::string_view::npos) {
    return "copy of the embedding or the head in an MTP block";
  }
  return std::nullopt;
}

}  // namespace

StatusOr<std::unique_ptr<GgufModel>> GgufModel::Open(const std::string& path,
                                                     bool strict) {
  std::unique_ptr<GgufModel> model(new GgufModel);
  model->path_ = path;
  BELAY_ASSIGN_OR_RETURN(model->set_, OpenSet(path));
  BELAY_ASSIGN_OR_RETURN(model->config_, ConfigFromMetadata(model->set_, path));
  BELAY_RETURN_IF_ERROR(model->Match());
  BELAY_RETURN_IF_ERROR(model->FindUnused(strict));
  return model;
}

Status GgufModel::Match() {
  for (const ExpectedTensor& expected : spec::ExpectedTensors(config_)) {
    if (expected.role == spec::Role::kScale) continue;
    const Status status = Take(expected);
    if (!status.ok()) return WithContext(status, path_);
  }
  return absl::OkStatus();
}

Status GgufModel::Take(const ExpectedTensor& expected) {
  const Shape wanted = ValueShape(expected);
  const std::vector<Place> places = PlacesOf(config_, expected.name);
  for (const Place& place : places) {
    const auto it = set_.tensors.find(place.name);
    if (it == set_.tensors.end()) continue;
    const TensorInfo& info = *it->second;
    const Shape stack = StackShape(wanted, place, config_.n_routed_experts);
    if (info.shape != stack) {
      return MakeError(kCkptWrongShape, {place.name, "", stack.ToString(),
                                         info.shape.ToString()});
    }
    BELAY_ASSIGN_OR_RETURN(StoredView view, ViewOf(info));
    if (expected.role == spec::Role::kTable) {
      BELAY_ASSIGN_OR_RETURN(view, ToTable(view, place.name));
    } else if (IsMatrix(expected)) {
      BELAY_ASSIGN_OR_RETURN(view, PartOf(view, place, wanted));
    } else {
      BELAY_ASSIGN_OR_RETURN(view, ToF32(view, wanted));
    }
    views_[expected.name] = view;
    if (used_.emplace(info.name, true).second) {
      Sum& sum = by_type_[TypeName(info.type)];
      ++sum.n_tensors;
      sum.bytes += info.bytes;
    }
    return absl::OkStatus();
  }
  // ds4 leaves out biases that are zero.
  if (expected.name.ends_with("ffn.gate.bias")) {
    void* zeros = nullptr;
    BELAY_ASSIGN_OR_RETURN(views_[expected.name],
                           NewTensor(DType::kF32, wanted, zeros));
    return absl::OkStatus();
  }
  return MakeError(kCkptMissingTensor,
                   {places.empty() ? expected.name : places.front().name, "",
                    wanted.ToString(), ""});
}

StatusOr<ConstTensorView> GgufModel::NewTensor(DType dtype, const Shape& shape,
                                               void*& data) {
  const size_t bytes =
      static_cast<size_t>(shape.n_elements()) * DtypeBytes(dtype);
  BELAY_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Create(bytes));
  data = buffer.data();
  converted_.push_back(std::move(buffer));
  return ConstTensorView(data, dtype, shape);
}

StatusOr<StoredView> GgufModel::ToF32(const StoredView& stored,
                                      const Shape& shape) {
  if (stored.view.dtype() == DType::kF32) return stored;
  if (stored.view.dtype() == DType::kI32) {
    return MakeError(kCkptWrongDtype, {"", "", "a float type", "I32"});
  }
  void* data = nullptr;
  BELAY_ASSIGN_OR_RETURN(const ConstTensorView view,
                         NewTensor(DType::kF32, shape, data));
  const auto n = shape.n_elements();
  auto* const out = static_cast<float*>(data);
  if (stored.format == BlockFormat::kNone) {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = static_cast<float>(PlainElement(stored.view, i));
    }
    return StoredView(view);
  }
  std::vector<double> values(static_cast<size_t>(n));
  DecodeBlocks(stored.format, stored.view.row<std::byte>(0), n, values.data());
  std::transform(values.begin(), values.end(), out,
                 [](double v) { return static_cast<float>(v); });
  return StoredView(view);
}

StatusOr<StoredView> GgufModel::ToTable(const StoredView& stored,
                                        const std::string& name) {
  if (stored.view.dtype() != DType::kI32) {
    return MakeError(
        kCkptWrongDtype,
        {name, "", "I32", std::string(DtypeName(stored.view.dtype()))});
  }
  void* data = nullptr;
  BELAY_ASSIGN_OR_RETURN(const ConstTensorView view,
                         NewTensor(DType::kI64, stored.view.shape(), data));
  auto* const out = static_cast<int64_t*>(data);
  const auto ids = stored.view.as<int32_t>();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= config_.n_routed_experts) {
      return MakeError(
          kCkptBadValue,
          {name, "",
           "an expert id below " + std::to_string(config_.n_routed_experts),
           std::to_string(ids[i])});
    }
    out[i] = ids[i];
  }
  return StoredView(view);
}

Status GgufModel::FindUnused(bool strict) {
  for (const auto& [name, info] : set_.tensors) {
    if (used_.find(name) != used_.end()) continue;
    if (const auto family = UnusedFamily(name)) {
      auto& unused = report_.unused[*family];
      ++unused.n_tensors;
      unused.bytes += info->bytes;
    } else {
      report_.unknown.emplace_back(name);
    }
  }
  std::sort(report_.unknown.begin(), report_.unknown.end());
  if (!strict || report_.unknown.empty()) return absl::OkStatus();
  return MakeError(kCkptUnknownTensor,
                   {path_ + ": " + report_.unknown.front(),
                    std::to_string(report_.unknown.size()) +
                        " tensors that the model does not have",
                    "", ""});
}

StoredView GgufModel::Find(std::string_view name) const {
  const auto it = views_.find(std::string(name));
  return it == views_.end() ? StoredView() : it->second;
}

uint64_t GgufModel::weight_bytes() const {
  uint64_t bytes = 0;
  for (const auto& [type, sum] : by_type_) bytes += sum.bytes;
  return bytes;
}

}  // namespace belay::checkpoint::gguf
