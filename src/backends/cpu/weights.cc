// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/weights.h"

#include <string>

#include "base/error_ids.h"
#include "base/float_formats.h"
#include "kernels/blocks/matmul_blocks.h"
#include "kernels/blocks/matmul_int8.h"
#include "kernels/blocks/pack_int8.h"
#include "kernels/matmul_bf16.h"
#include "kernels/pack.h"
#include "ops/linear_source.h"

namespace belay::cpu {
namespace {

using kernels::WeightKind;

// Of a weight without blocks that ops::CheckWeight took.
WeightKind KindOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return WeightKind::kF32;
    case DType::kBF16:
      return WeightKind::kBf16;
    case DType::kF16:
      return WeightKind::kF16;
    case DType::kF8E4M3:
      return WeightKind::kFp8;
    default:
      return WeightKind::kFp4;  // I8
  }
}

bool IsScaled(WeightKind kind) {
  return kind == WeightKind::kFp8 || kind == WeightKind::kFp4;
}

Status CheckBlocks(const ops::LinearSource& source) {
  const bool ok = source.block_n >= 1 && source.block_k >= 1 &&
                  source.block_k % kernels::kBlockMultiple == 0;
  if (ok) return absl::OkStatus();
  return MakeError(
      kBackUnsupported,
      {.where = "weight",
       .what = "block of a scaled weight along K",
       .expected = "a multiple of " + std::to_string(kernels::kBlockMultiple),
       .got = std::to_string(source.block_k)});
}

}  // namespace

Status CpuLinear::TakeScales(const ops::LinearSource& source) {
  BELAY_RETURN_IF_ERROR(CheckBlocks(source));
  BELAY_RETURN_IF_ERROR(ops::CheckScale(source, {n_out(), n_in()}));
  view_.block_rows = source.block_n;
  view_.block_cols = source.block_k;
  const ConstTensorView& scale = source.scale;
  if (view_.kind == WeightKind::kFp4) {
    view_.scale_code = scale.row<uint8_t>(0);
    view_.scale_stride = static_cast<int64_t>(scale.row_bytes_stride());
    return absl::OkStatus();
  }
  const bool is_f32 = scale.dtype() == DType::kF32;
  const int64_t n_blocks = scale.dim(1);
  scales_.reserve(static_cast<size_t>(scale.n_elements()));
  for (int64_t r = 0; r < scale.dim(0); ++r) {
    for (int64_t b = 0; b < n_blocks; ++b) {
      scales_.push_back(is_f32 ? scale.row<float>(r)[b]
                               : F32FromE8m0(scale.row<uint8_t>(r)[b]));
    }
  }
  view_.scale = scales_.data();
  view_.scale_stride = n_blocks;
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<CpuLinear>> CpuLinear::FromBlocks(
    const ops::Numerics& numerics, const ops::LinearSource& source,
    PackedMemory& memory) {
  const ConstTensorView& w = source.weight;
  BELAY_ASSIGN_OR_RETURN(const Shape shape, ops::CheckWeight(source));
  std::unique_ptr<CpuLinear> linear(new CpuLinear(shape[0], shape[1]));
  kernels::WeightView& view = linear->view_;
  view.kind = WeightKind::kBlocks;
  view.format = source.format;
  view.codes = w.row<std::byte>(0);
  view.row_bytes_stride = w.row_bytes_stride();
  view.n_rows = shape[0];
  view.n_cols = shape[1];
  linear->f32_kernel_ = numerics.official()
                            ? &kernels::Int8MatMul(source.format)
                            : &kernels::DequantisedMatMul();
  linear->bf16_kernel_ = linear->f32_kernel_;
  linear->fast_view_ = view;
  const kernels::MatMulKernel* dot =
      numerics.official() ? kernels::Int8DotMatMul(view) : nullptr;
  if (dot != nullptr) {
    BELAY_RETURN_IF_ERROR(linear->PackForInt8(*dot, memory));
  }
  return linear;
}

StatusOr<std::unique_ptr<CpuLinear>> CpuLinear::Create(
    const ops::Numerics& numerics, const ops::LinearSource& source,
    PackedMemory& memory) {
  if (source.format != BlockFormat::kNone) {
    return FromBlocks(numerics, source, memory);
  }
  const ConstTensorView& weight = source.weight;
  BELAY_ASSIGN_OR_RETURN(const Shape shape, ops::CheckWeight(source));
  std::unique_ptr<CpuLinear> linear(new CpuLinear(shape[0], shape[1]));
  kernels::WeightView& view = linear->view_;
  view.kind = KindOf(weight.dtype());
  view.codes = weight.row<std::byte>(0);
  view.row_bytes_stride = weight.row_bytes_stride();
  view.n_rows = shape[0];
  view.n_cols = shape[1];
  if (IsScaled(view.kind)) {
    BELAY_RETURN_IF_ERROR(linear->TakeScales(source));
    linear->quantise_input_ = numerics.official() && source.quantise_input;
    if (linear->quantise_input_) {
      BELAY_RETURN_IF_ERROR(ops::CheckActBlocks(numerics, source, shape[1]));
    }
  }
  linear->fast_view_ = view;
  if (numerics.int8_activations && IsScaled(view.kind)) {
    const kernels::MatMulKernel* dot = kernels::Int8DotMatMul(view);
    if (dot == nullptr) {
      return MakeError(kBackUnsupported,
                       {.where = "weight",
                        .what = "--activations int8: scale block along K",
                        .expected = "128 (FP8) | 32 (FP4)",
                        .got = std::to_string(source.block_k)});
    }
    linear->quantise_input_ = false;
    BELAY_RETURN_IF_ERROR(linear->PackForInt8(*dot, memory));
    return linear;
  }
  // Exact numerics have no bf16 input.
  const kernels::MatMulKernel* packed =
      numerics.official() ? kernels::Bf16MatMul(view) : nullptr;
  if (packed == nullptr && !source.packed.empty()) {
    return MakeError(kPackNeedsCpu, {.where = "weight",
                                     .what = "",
                                     .expected = "--numerics official",
                                     .got = ""});
  }
  if (packed != nullptr) {
    linear->bf16_kernel_ = packed;
    if (!source.packed.empty()) {
      BELAY_RETURN_IF_ERROR(linear->TakePacked(source.packed));
      return linear;
    }
    BELAY_RETURN_IF_ERROR(linear->Pack(memory));
  }
  return linear;
}

Status CpuLinear::Pack(PackedMemory& memory) {
  const size_t bytes = kernels::PackedWeightBytes(view_);
  BELAY_ASSIGN_OR_RETURN(const PackedMemory::Piece piece, memory.Take(bytes));
  memory.Fill(view_, kernels::PackWeightRows, piece.data);
  fast_view_ = kernels::PackedView(view_, piece.data);
  packed_ = piece.owner;
  packed_bytes_ = {piece.data, bytes};
  return absl::OkStatus();
}

Status CpuLinear::PackForInt8(const kernels::MatMulKernel& kernel,
                              PackedMemory& memory) {
  const kernels::WeightView target = kernels::Int8Target(view_);
  BELAY_ASSIGN_OR_RETURN(const PackedMemory::Piece piece,
                         memory.Take(kernels::PackedWeightBytes(target)));
  memory.Fill(view_, kernels::PackInt8Rows, piece.data);
  fast_view_ = kernels::PackedView(target, piece.data);
  packed_ = piece.owner;
  bf16_kernel_ = f32_kernel_ = &kernel;
  return absl::OkStatus();
}

Status CpuLinear::TakePacked(std::span<const std::byte> packed) {
  const size_t bytes = kernels::PackedWeightBytes(view_);
  if (packed.size() != bytes) {
    return MakeError(kPackDamaged, {.where = "weight",
                                    .what = "bytes",
                                    .expected = std::to_string(bytes),
                                    .got = std::to_string(packed.size())});
  }
  // In place: new memory, which the system has to clear first, would take
  // longer than everything else that loading does.
  fast_view_ = kernels::PackedView(view_, packed.data());
  packed_bytes_ = packed;
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<CpuExperts>> CpuExperts::Create(
    const ops::Numerics& numerics, std::span<const ops::ExpertSource> experts,
    int64_t first_expert, PackedMemory& memory) {
  std::vector<CpuExpert> bound;
  for (size_t e = 0; e < experts.size(); ++e) {
    const std::string where =
        "experts." + std::to_string(first_expert + static_cast<int64_t>(e));
    const auto bind =
        [&](const ops::LinearSource& source,
            const char* name) -> StatusOr<std::unique_ptr<CpuLinear>> {
      auto linear = CpuLinear::Create(numerics, source, memory);
      if (linear.ok()) return linear;
      return WithContext(linear.status(), where + "." + name);
    };
    CpuExpert expert;
    BELAY_ASSIGN_OR_RETURN(expert.w1, bind(experts[e].w1, "w1"));
    BELAY_ASSIGN_OR_RETURN(expert.w2, bind(experts[e].w2, "w2"));
    BELAY_ASSIGN_OR_RETURN(expert.w3, bind(experts[e].w3, "w3"));
    const CpuLinear& first = e == 0 ? *expert.w1 : *bound.front().w1;
    const Shape up = {first.n_out(), first.n_in()};
    const auto fits = [&](const CpuLinear& w, int64_t n_out, int64_t n_in) {
      return w.n_out() == n_out && w.n_in() == n_in;
    };
    if (!fits(*expert.w1, up[0], up[1]) || !fits(*expert.w3, up[0], up[1]) ||
        !fits(*expert.w2, up[1], up[0])) {
      return ops::WrongShape(where,
                             "w1 and w3 " + up.ToString() + ", w2 transposed",
                             Shape{expert.w2->n_out(), expert.w2->n_in()});
    }
    // Inputs are packed once for w1 and w3, and for the w2 of all experts.
    const CpuExpert& model = e == 0 ? expert : bound.front();
    const auto alike = [](const CpuLinear& a, const CpuLinear& b) {
      return &a.kernel(true) == &b.kernel(true) &&
             &a.kernel(false) == &b.kernel(false);
    };
    if (!alike(*expert.w1, *expert.w3) || !alike(*expert.w1, *model.w1) ||
        !alike(*expert.w2, *model.w2)) {
      return MakeError(kBackUnsupported,
                       {.where = where,
                        .what = "w1 and w3 in formats of different blocks",
                        .expected = expert.w1->kernel(true).name,
                        .got = expert.w3->kernel(true).name});
    }
    bound.push_back(std::move(expert));
  }
  return std::unique_ptr<CpuExperts>(
      new CpuExperts(first_expert, std::move(bound)));
}

kernels::WeightView ViewOfF32(ConstTensorView matrix) {
  kernels::WeightView view;
  view.kind = WeightKind::kF32;
  view.codes = matrix.row<std::byte>(0);
  view.row_bytes_stride = matrix.row_bytes_stride();
  view.n_rows = matrix.dim(0);
  view.n_cols = matrix.dim(1);
  return view;
}

}  // namespace belay::cpu
