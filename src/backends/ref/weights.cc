// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/weights.h"

#include <string>
#include <utility>

#include "backends/ref/quant.h"
#include "base/error_ids.h"
#include "base/float_formats.h"
#include "ops/linear_source.h"

namespace belay::ref {
namespace {

// Of a weight that ops::CheckWeight took.
WeightKind KindOf(const ops::LinearSource& source) {
  if (source.format != BlockFormat::kNone) return WeightKind::kBlocks;
  switch (source.weight.dtype()) {
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

Status CheckBlocks(const ops::Numerics& numerics,
                   const ops::LinearSource& source, int64_t n_in) {
  if (source.block_n < 1 || source.block_k < 1) {
    return MakeError(kBackUnsupported,
                     {.where = "weight",
                      .what = "block of a scaled weight",
                      .expected = ">= 1",
                      .got = std::to_string(source.block_n) + " x " +
                             std::to_string(source.block_k)});
  }
  if (!numerics.official() || !source.quantise_input) return absl::OkStatus();
  return ops::CheckActBlocks(numerics, source, n_in);
}

}  // namespace

StatusOr<std::unique_ptr<RefLinear>> RefLinear::Create(
    const ops::Numerics& numerics, const ops::LinearSource& source) {
  if (!source.packed.empty()) {
    return MakeError(kPackNeedsCpu, {.where = "weight",
                                     .what = "",
                                     .expected = "--backend cpu",
                                     .got = "ref"});
  }
  BELAY_ASSIGN_OR_RETURN(const Shape shape, ops::CheckWeight(source));
  std::unique_ptr<RefLinear> linear(
      new RefLinear(source, KindOf(source), shape[0], shape[1]));
  if (linear->scaled()) {
    BELAY_RETURN_IF_ERROR(CheckBlocks(numerics, source, shape[1]));
    BELAY_RETURN_IF_ERROR(ops::CheckScale(source, shape));
  }
  return linear;
}

void RefLinear::DecodeRow(int64_t n, std::span<double> out) const {
  const ConstTensorView& w = source_.weight;
  switch (kind_) {
    case WeightKind::kF32: {
      std::copy_n(w.row<float>(n), out.size(), out.begin());
      return;
    }
    case WeightKind::kBf16: {
      const uint16_t* row = w.row<uint16_t>(n);
      for (size_t k = 0; k < out.size(); ++k) out[k] = F32FromBf16(row[k]);
      return;
    }
    case WeightKind::kF16: {
      const uint16_t* row = w.row<uint16_t>(n);
      for (size_t k = 0; k < out.size(); ++k) out[k] = F32FromF16(row[k]);
      return;
    }
    case WeightKind::kBlocks: {
      DecodeBlocks(source_.format, w.row<std::byte>(n), n_in(), out.data());
      return;
    }
    case WeightKind::kFp8: {
      const std::array<float, 256>& table = E4m3Table();
      const uint8_t* row = w.row<uint8_t>(n);
      for (size_t k = 0; k < out.size(); ++k) out[k] = table[row[k]];
      return;
    }
    case WeightKind::kFp4: {  // low nibble = even index
      const uint8_t* row = w.row<uint8_t>(n);
      for (size_t k = 0; k < out.size(); k += 2) {
        out[k] = kE2m1Values[row[k / 2] & 15u];
        out[k + 1] = kE2m1Values[row[k / 2] >> 4];
      }
      return;
    }
  }
}

float RefLinear::Scale(int64_t n, int64_t k_block) const {
  if (!scaled()) return 1.0f;
  const ConstTensorView& s = source_.scale;
  const int64_t n_block = n / source_.block_n;
  return s.dtype() == DType::kF32
             ? s.row<float>(n_block)[k_block]
             : F32FromE8m0(s.row<uint8_t>(n_block)[k_block]);
}

StatusOr<std::unique_ptr<RefExperts>> RefExperts::Create(
    const ops::Numerics& numerics, std::span<const ops::ExpertSource> experts,
    int64_t first_expert) {
  std::vector<RefExpert> bound;
  for (size_t e = 0; e < experts.size(); ++e) {
    const std::string where =
        "experts." + std::to_string(first_expert + static_cast<int64_t>(e));
    const auto bind =
        [&](const ops::LinearSource& source,
            const char* name) -> StatusOr<std::unique_ptr<RefLinear>> {
      auto linear = RefLinear::Create(numerics, source);
      if (linear.ok()) return linear;
      return WithContext(linear.status(), where + "." + name);
    };
    RefExpert expert;
    BELAY_ASSIGN_OR_RETURN(expert.w1, bind(experts[e].w1, "w1"));
    BELAY_ASSIGN_OR_RETURN(expert.w2, bind(experts[e].w2, "w2"));
    BELAY_ASSIGN_OR_RETURN(expert.w3, bind(experts[e].w3, "w3"));
    const int64_t inter = expert.w1->n_out();
    const int64_t dim = expert.w1->n_in();
    if (expert.w3->n_out() != inter || expert.w3->n_in() != dim ||
        expert.w2->n_out() != dim || expert.w2->n_in() != inter) {
      return MakeError(
          kCkptWrongShape,
          {.where = where,
           .what = "w1 and w3 [inter, dim], w2 [dim, inter]",
           .expected = Shape{inter, dim}.ToString(),
           .got = Shape{expert.w2->n_in(), expert.w2->n_out()}.ToString()});
    }
    bound.push_back(std::move(expert));
  }
  return std::unique_ptr<RefExperts>(
      new RefExperts(first_expert, std::move(bound)));
}

}  // namespace belay::ref
