// SPDX-License-Identifier: Apache-2.0
#include "ops/linear_source.h"

#include <algorithm>

#include "base/error_ids.h"

namespace belay::ops {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

Status WrongDtype(const char* where, const char* what, const char* expected,
                  DType got) {
  return MakeError(kCkptWrongDtype, {.where = where,
                                     .what = what,
                                     .expected = expected,
                                     .got = std::string(DtypeName(got))});
}

bool IsMatrix(const ConstTensorView& w) {
  return !w.empty() && w.shape().rank() == 2 && w.dim(0) >= 1 && w.dim(1) >= 1;
}

StatusOr<Shape> CheckWeightInBlocks(const LinearSource& source) {
  const ConstTensorView& w = source.weight;
  const auto block_bytes = static_cast<int64_t>(BlockBytes(source.format));
  if (w.dtype() != DType::kU8) {
    return WrongDtype("weight", "blocks", "U8", w.dtype());
  }
  if (!IsMatrix(w) || w.dim(1) % block_bytes != 0) {
    return WrongShape("weight",
                      "[n_out, blocks of " + std::to_string(block_bytes) + "]",
                      w.shape());
  }
  return Shape{w.dim(0), w.dim(1) / block_bytes * BlockValues(source.format)};
}

}  // namespace

Status WrongShape(const std::string& where, const std::string& expected,
                  const Shape& got) {
  return MakeError(kCkptWrongShape, {.where = where,
                                     .what = "",
                                     .expected = expected,
                                     .got = got.ToString()});
}

StatusOr<Shape> CheckWeight(const LinearSource& source) {
  if (source.format != BlockFormat::kNone) return CheckWeightInBlocks(source);
  const ConstTensorView& w = source.weight;
  switch (w.dtype()) {
    case DType::kF32:
    case DType::kBF16:
    case DType::kF16:
    case DType::kF8E4M3:
    case DType::kI8:
      break;
    default:
      return WrongDtype("weight", "", "F32, BF16, F16, F8_E4M3 or I8",
                        w.dtype());
  }
  if (!IsMatrix(w)) return WrongShape("weight", "[n_out, n_in]", w.shape());
  return Shape{w.dim(0), w.dtype() == DType::kI8 ? 2 * w.dim(1) : w.dim(1)};
}

Status CheckScale(const LinearSource& source, const Shape& weight) {
  const ConstTensorView& scale = source.scale;
  const bool f32_allowed = source.weight.dtype() == DType::kF8E4M3;
  if (scale.dtype() != DType::kF8E8M0 &&
      !(f32_allowed && scale.dtype() == DType::kF32)) {
    return WrongDtype("scale", "", f32_allowed ? "F8_E8M0 or F32" : "F8_E8M0",
                      scale.dtype());
  }
  const Shape expected = {CeilDiv(weight[0], source.block_n),
                          CeilDiv(weight[1], source.block_k)};
  if (scale.empty() || !(scale.shape() == expected)) {
    return WrongShape("scale", expected.ToString(), scale.shape());
  }
  return absl::OkStatus();
}

Status CheckActBlocks(const Numerics& numerics, const LinearSource& source,
                      int64_t n_in) {
  const int block = numerics.act_block;
  if (n_in % block != 0) {
    return MakeError(
        kBackUnsupported,
        {.where = "weight",
         .what = "inputs of a linear whose activations are quantised",
         .expected = "a multiple of " + std::to_string(block),
         .got = std::to_string(n_in)});
  }
  const int large = std::max(block, source.block_k);
  const int small = std::min(block, source.block_k);
  if (large % small == 0) return absl::OkStatus();
  return MakeError(kBackUnsupported, {.where = "weight",
                                      .what = "blocks along K that do not nest",
                                      .expected = std::to_string(block),
                                      .got = std::to_string(source.block_k)});
}

}  // namespace belay::ops
