// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TENSOR_DTYPE_H_
#define BELAY_TENSOR_DTYPE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace belay {

// Element types of tensors in memory and in files. Names in files are
// safetensors' (DtypeName). Packed FP4 (two e2m1 codes a byte) is kI8, as in
// the released files: a shape counts bytes there, not values.
enum class DType : uint8_t {
  kF32,
  kF64,
  kBF16,
  kF16,
  kF8E4M3,
  kF8E8M0,
  kI8,
  kU8,
  kI16,
  kI32,
  kI64,
  kBool,
};

// Bytes of one element.
constexpr size_t DtypeBytes(DType dtype) {
  switch (dtype) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
    case DType::kF16:
    case DType::kI16:
      return 2;
    default:
      return 1;
  }
}

// The safetensors name: "F32", "BF16", "F8_E4M3", ...
constexpr std::string_view DtypeName(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "F32";
    case DType::kF64:
      return "F64";
    case DType::kBF16:
      return "BF16";
    case DType::kF16:
      return "F16";
    case DType::kF8E4M3:
      return "F8_E4M3";
    case DType::kF8E8M0:
      return "F8_E8M0";
    case DType::kI8:
      return "I8";
    case DType::kU8:
      return "U8";
    case DType::kI16:
      return "I16";
    case DType::kI32:
      return "I32";
    case DType::kI64:
      return "I64";
    case DType::kBool:
      return "BOOL";
  }
  return "?";
}

// The dtype that safetensors calls `name`, or nothing.
constexpr std::optional<DType> DtypeFromName(std::string_view name) {
  for (uint8_t i = 0; i <= static_cast<uint8_t>(DType::kBool); ++i) {
    const DType dtype = static_cast<DType>(i);
    if (DtypeName(dtype) == name) return dtype;
  }
  return std::nullopt;
}

}  // namespace belay

#endif  // BELAY_TENSOR_DTYPE_H_
