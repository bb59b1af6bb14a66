// SPDX-License-Identifier: Apache-2.0
#include "backends/cann/weights.h"

#include <string>
#include <utility>
#include <vector>

#include "backends/cann/device/compute.h"
#include "base/error_ids.h"
#include "base/float_formats.h"
#include "ops/linear_source.h"

namespace belay::cann {
namespace {

bool IsScaled(const ops::LinearSource& source) {
  return source.weight.dtype() == DType::kF8E4M3 ||
         source.weight.dtype() == DType::kI8;
}

// What a weight is written out to.
aclDataType StoredAs(const ops::Numerics& numerics,
                     const ops::LinearSource& source) {
  if (!numerics.official()) return kF32;
  if (IsScaled(source)) {
    return source.scale.dtype() == DType::kF8E8M0 ? kBf16 : kF32;
  }
  return source.weight.dtype() == DType::kBF16 ? kBf16 : kF32;
}

// [n_out, n_in] of a weight that can be bound.
StatusOr<Shape> Check(const ops::Numerics& numerics,
                      const ops::LinearSource& source) {
  if (!source.packed.empty()) {
    return MakeError(kPackNeedsCpu, {.where = "weight",
                                     .what = "",
                                     .expected = "--backend cpu",
                                     .got = "cann"});
  }
  if (source.format != BlockFormat::kNone) {
    return MakeError(
        kBackUnsupported,
        {.where = "cann",
         .what = "weights of GGUF files",
         .expected = "a checkpoint in safetensors, or --backend cpu",
         .got = std::string(BlockFormatName(source.format))});
  }
  BELAY_ASSIGN_OR_RETURN(const Shape shape, ops::CheckWeight(source));
  if (!IsScaled(source)) return shape;
  if (source.block_n < 1 || source.block_k < 1) {
    return MakeError(kBackUnsupported,
                     {.where = "weight",
                      .what = "block of a scaled weight",
                      .expected = ">= 1",
                      .got = std::to_string(source.block_n) + " x " +
                             std::to_string(source.block_k)});
  }
  if (numerics.official() && source.quantise_input) {
    BELAY_RETURN_IF_ERROR(ops::CheckActBlocks(numerics, source, shape[1]));
  }
  BELAY_RETURN_IF_ERROR(ops::CheckScale(source, shape));
  return shape;
}

float ScaleAt(const ops::LinearSource& source, int64_t row, int64_t block) {
  const ConstTensorView& s = source.scale;
  return s.dtype() == DType::kF32 ? s.row<float>(row)[block]
                                  : F32FromE8m0(s.row<uint8_t>(row)[block]);
}

void DecodeRow(const ops::LinearSource& source, int64_t n,
               std::span<float> out) {
  const ConstTensorView& w = source.weight;
  switch (w.dtype()) {
    case DType::kF32: {
      const float* row = w.row<float>(n);
      std::copy_n(row, out.size(), out.begin());
      return;
    }
    case DType::kBF16: {
      const uint16_t* row = w.row<uint16_t>(n);
      for (size_t k = 0; k < out.size(); ++k) out[k] = F32FromBf16(row[k]);
      return;
    }
    case DType::kF16: {
      const uint16_t* row = w.row<uint16_t>(n);
      for (size_t k = 0; k < out.size(); ++k) out[k] = F32FromF16(row[k]);
      return;
    }
    case DType::kF8E4M3: {
      const uint8_t* row = w.row<uint8_t>(n);
      for (size_t k = 0; k < out.size(); ++k) out[k] = F32FromE4m3(row[k]);
      break;
    }
    default: {  // two e2m1 codes a byte, the low nibble first
      const uint8_t* row = w.row<uint8_t>(n);
      for (size_t k = 0; k < out.size(); ++k) {
        const auto code = k % 2 == 0 ? row[k / 2] & 15 : row[k / 2] >> 4;
        out[k] = F32FromE2m1(static_cast<uint8_t>(code));
      }
      break;
    }
  }
  const auto block_k = static_cast<size_t>(source.block_k);
  for (size_t k = 0; k < out.size(); ++k) {
    out[k] *=
        ScaleAt(source, n / source.block_n, static_cast<int64_t>(k / block_k));
  }
}

// Appends the matrix in `dtype`.
void WriteOut(const ops::LinearSource& source, const Shape& shape,
              aclDataType dtype, std::vector<std::byte>& out) {
  std::vector<float> row(static_cast<size_t>(shape[1]));
  std::vector<uint16_t> halves(row.size());
  for (int64_t n = 0; n < shape[0]; ++n) {
    DecodeRow(source, n, row);
    if (dtype == kF32) {
      const auto* bytes = reinterpret_cast<const std::byte*>(row.data());
      out.insert(out.end(), bytes, bytes + 4 * row.size());
      continue;
    }
    for (size_t k = 0; k < row.size(); ++k) halves[k] = Bf16FromF32(row[k]);
    const auto* bytes = reinterpret_cast<const std::byte*>(halves.data());
    out.insert(out.end(), bytes, bytes + 2 * halves.size());
  }
}

bool Quantises(const ops::Numerics& numerics, const ops::LinearSource& source) {
  return numerics.official() && IsScaled(source) && source.quantise_input;
}

// One matrix of all experts, written out expert by expert: the host never holds
// more than one.
StatusOr<Array> BindMatrix(std::span<const ops::LinearSource> sources,
                           const Shape& shape, aclDataType dtype,
                           WeightMemory& memory) {
  const auto n = static_cast<int64_t>(sources.size());
  const int64_t n_stored = n == 16 ? n + 1 : n;
  const size_t each = static_cast<size_t>(shape[0] * shape[1]) * BytesOf(dtype);
  BELAY_ASSIGN_OR_RETURN(void* device,
                         memory.Take(static_cast<size_t>(n_stored) * each));
  auto* to = static_cast<std::byte*>(device);
  std::vector<std::byte> bytes;
  for (const ops::LinearSource& source : sources) {
    bytes.clear();
    WriteOut(source, shape, dtype, bytes);
    BELAY_RETURN_IF_ERROR(memory.Copy(to, bytes.data(), each));
    to += each;
  }
  if (n_stored > n) {
    bytes.assign(each, std::byte{0});
    BELAY_RETURN_IF_ERROR(memory.Copy(to, bytes.data(), each));
  }
  return Array(device, dtype, {n_stored, shape[0], shape[1]});
}

struct ExpertList {
  std::vector<ops::LinearSource> w1, w2, w3;
  Shape up;    // [inter, dim]
  Shape down;  // [dim, inter]
  aclDataType dtype = kBf16;
};

Status AddExpert(const ops::Numerics& numerics, const ops::ExpertSource& expert,
                 ExpertList* list) {
  BELAY_ASSIGN_OR_RETURN(const Shape w1, Check(numerics, expert.w1));
  BELAY_ASSIGN_OR_RETURN(const Shape w2, Check(numerics, expert.w2));
  BELAY_ASSIGN_OR_RETURN(const Shape w3, Check(numerics, expert.w3));
  if (list->w1.empty()) {
    list->up = w1;
    list->down = Shape{w1[1], w1[0]};
  }
  if (w1 != list->up || w3 != list->up || w2 != list->down) {
    return MakeError(kCkptWrongShape,
                     {.where = "",
                      .what = "w1 and w3 [inter, dim], w2 [dim, inter]",
                      .expected = list->up.ToString(),
                      .got = Shape{w2[1], w2[0]}.ToString()});
  }
  for (const ops::LinearSource* source : {&expert.w1, &expert.w2, &expert.w3}) {
    if (StoredAs(numerics, *source) == kF32) list->dtype = kF32;
  }
  list->w1.push_back(expert.w1);
  list->w2.push_back(expert.w2);
  list->w3.push_back(expert.w3);
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<CannLinear>> CannLinear::Create(
    const ops::Numerics& numerics, const ops::LinearSource& source,
    WeightMemory& memory) {
  BELAY_ASSIGN_OR_RETURN(const Shape shape, Check(numerics, source));
  const aclDataType dtype = StoredAs(numerics, source);
  std::vector<std::byte> bytes;
  bytes.reserve(static_cast<size_t>(shape[0] * shape[1]) * BytesOf(dtype));
  WriteOut(source, shape, dtype, bytes);
  BELAY_ASSIGN_OR_RETURN(void* device, memory.Put(bytes.data(), bytes.size()));
  return std::unique_ptr<CannLinear>(new CannLinear(
      Array(device, dtype, {shape[0], shape[1]}), Quantises(numerics, source)));
}

StatusOr<std::unique_ptr<CannExperts>> CannExperts::Create(
    const ops::Numerics& numerics, std::span<const ops::ExpertSource> experts,
    int64_t first_expert, WeightMemory& memory) {
  ExpertList list;
  for (size_t e = 0; e < experts.size(); ++e) {
    const Status added = AddExpert(numerics, experts[e], &list);
    if (added.ok()) continue;
    return WithContext(
        added,
        "experts." + std::to_string(first_expert + static_cast<int64_t>(e)));
  }
  std::unique_ptr<CannExperts> bound(
      new CannExperts(first_expert, static_cast<int64_t>(experts.size())));
  BELAY_ASSIGN_OR_RETURN(bound->w1_,
                         BindMatrix(list.w1, list.up, list.dtype, memory));
  BELAY_ASSIGN_OR_RETURN(bound->w2_,
                         BindMatrix(list.w2, list.down, list.dtype, memory));
  BELAY_ASSIGN_OR_RETURN(bound->w3_,
                         BindMatrix(list.w3, list.up, list.dtype, memory));
  bound->quantise_ =
      !experts.empty() && Quantises(numerics, experts.front().w1);
  return bound;
}

}  // namespace belay::cann
