// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "base/float_formats.h"

namespace cannsim::hccl {
namespace {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 Uint128;

struct Element {
  size_t bytes;
  const char* name;
};

Element ElementOf(HcclDataType dtype) {
  switch (dtype) {
    case HCCL_DATA_TYPE_INT8:
      return {1, "int8"};
    case HCCL_DATA_TYPE_INT16:
      return {2, "int16"};
    case HCCL_DATA_TYPE_INT32:
      return {4, "int32"};
    case HCCL_DATA_TYPE_FP16:
      return {2, "fp16"};
    case HCCL_DATA_TYPE_FP32:
      return {4, "fp32"};
    case HCCL_DATA_TYPE_INT64:
      return {8, "int64"};
    case HCCL_DATA_TYPE_UINT64:
      return {8, "uint64"};
    case HCCL_DATA_TYPE_UINT8:
      return {1, "uint8"};
    case HCCL_DATA_TYPE_UINT16:
      return {2, "uint16"};
    case HCCL_DATA_TYPE_UINT32:
      return {4, "uint32"};
    case HCCL_DATA_TYPE_FP64:
      return {8, "fp64"};
    case HCCL_DATA_TYPE_BFP16:
      return {2, "bfp16"};
    case HCCL_DATA_TYPE_INT128:
      return {16, "int128"};
    case HCCL_DATA_TYPE_HIF8:
      return {1, "hif8"};
    case HCCL_DATA_TYPE_FP8E4M3:
      return {1, "fp8e4m3"};
    case HCCL_DATA_TYPE_FP8E5M2:
      return {1, "fp8e5m2"};
    case HCCL_DATA_TYPE_FP8E8M0:
      return {1, "fp8e8m0"};
    default:
      return {0, "no data type"};
  }
}

// Double to a format of at most 11 bits by way of float: rounding to odd in
// between keeps it one rounding.
float ToOdd(double x) {
  auto f = static_cast<float>(x);
  if (std::isnan(x) || std::isinf(f) || static_cast<double>(f) == x) return f;
  auto bits = std::bit_cast<uint32_t>(f);
  if (std::abs(static_cast<double>(f)) > std::abs(x)) --bits;  // toward zero
  return std::bit_cast<float>(bits | 1U);
}

// FP16 of base/ rounds a float once.
struct F16 {
  using Bits = uint16_t;
  static double Value(Bits bits) { return belay::F32FromF16(bits); }
  static Bits Round(double x) { return belay::F16FromF32(ToOdd(x)); }
};
struct Bf16 {
  using Bits = uint16_t;
  static double Value(Bits bits) { return belay::F32FromBf16(bits); }
  static Bits Round(double x) { return belay::Bf16FromF64(x); }
};
struct E4m3 {
  using Bits = uint8_t;
  static double Value(Bits bits) { return belay::F32FromE4m3(bits); }
  static Bits Round(double x) { return belay::E4m3FromF32(ToOdd(x)); }
};
// E5M2 is the upper half of an FP16.
struct E5m2 {
  using Bits = uint8_t;
  static double Value(Bits bits) {
    return belay::F32FromF16(static_cast<uint16_t>(bits << 8));
  }
  static Bits Round(double x) {
    if (std::isnan(x)) return 0x7F;
    const uint16_t sign = std::signbit(x) ? 0x80 : 0;
    // Steps of 2^-2 of the power of two, at least 2^-16.
    int exponent = 0;
    std::frexp(x, &exponent);
    const double step = std::ldexp(1.0, std::max(exponent - 3, -16));
    const double rounded = std::isinf(x) ? x : std::nearbyint(x / step) * step;
    if (std::abs(rounded) > 57344.0) return static_cast<Bits>(sign | 0x7C);
    return static_cast<Bits>(belay::F16FromF32(static_cast<float>(rounded)) >>
                             8);
  }
};
struct F32 {
  using Bits = float;
  static double Value(Bits x) { return x; }
  static Bits Round(double x) { return static_cast<float>(x); }
};
struct F64 {
  using Bits = double;
  static double Value(Bits x) { return x; }
  static Bits Round(double x) { return x; }
};

double Join(HcclReduceOp op, double a, double b) {
  switch (op) {
    case HCCL_REDUCE_SUM:
      return a + b;
    case HCCL_REDUCE_PROD:
      return a * b;
    case HCCL_REDUCE_MAX:
      return std::isnan(a) || a > b ? a : b;
    default:
      return std::isnan(a) || a < b ? a : b;
  }
}

template <typename T>
T Load(const char* parts, uint64_t index) {
  T value;
  std::memcpy(&value, parts + index * sizeof(T), sizeof(T));
  return value;
}

template <typename Format>
void ReduceFloats(HcclReduceOp op, const char* parts, uint32_t n_parts,
                  uint64_t count, char* out) {
  using Bits = typename Format::Bits;
  for (uint64_t i = 0; i < count; ++i) {
    double sum = Format::Value(Load<Bits>(parts, i));
    for (uint32_t r = 1; r < n_parts; ++r) {
      sum = Join(op, sum, Format::Value(Load<Bits>(parts, r * count + i)));
    }
    const Bits bits = Format::Round(sum);
    std::memcpy(out + i * sizeof(Bits), &bits, sizeof(Bits));
  }
}

// Sums and products in `Wide`, unsigned, which wraps as the type itself would.
template <typename T, typename Wide>
void ReduceIntegers(HcclReduceOp op, const char* parts, uint32_t n_parts,
                    uint64_t count, char* out) {
  for (uint64_t i = 0; i < count; ++i) {
    T sum = Load<T>(parts, i);
    for (uint32_t r = 1; r < n_parts; ++r) {
      const T next = Load<T>(parts, r * count + i);
      switch (op) {
        case HCCL_REDUCE_SUM:
          sum =
              static_cast<T>(static_cast<Wide>(sum) + static_cast<Wide>(next));
          break;
        case HCCL_REDUCE_PROD:
          sum =
              static_cast<T>(static_cast<Wide>(sum) * static_cast<Wide>(next));
          break;
        case HCCL_REDUCE_MAX:
          sum = std::max(sum, next);
          break;
        default:
          sum = std::min(sum, next);
      }
    }
    std::memcpy(out + i * sizeof(T), &sum, sizeof(T));
  }
}

}  // namespace

size_t BytesOf(HcclDataType dtype) { return ElementOf(dtype).bytes; }

const char* NameOf(HcclDataType dtype) { return ElementOf(dtype).name; }

const char* NameOf(HcclReduceOp op) {
  switch (op) {
    case HCCL_REDUCE_SUM:
      return "sum";
    case HCCL_REDUCE_PROD:
      return "prod";
    case HCCL_REDUCE_MAX:
      return "max";
    case HCCL_REDUCE_MIN:
      return "min";
    default:
      return "no reduction";
  }
}

bool CanReduce(HcclDataType dtype) {
  return BytesOf(dtype) > 0 && dtype != HCCL_DATA_TYPE_HIF8 &&
         dtype != HCCL_DATA_TYPE_FP8E8M0;
}

void Reduce(HcclDataType dtype, HcclReduceOp op, const char* parts,
            uint32_t n_parts, uint64_t count, char* out) {
  const auto run = [&](auto function) {
    function(op, parts, n_parts, count, out);
  };
  switch (dtype) {
    case HCCL_DATA_TYPE_INT8:
      return run(ReduceIntegers<int8_t, uint32_t>);
    case HCCL_DATA_TYPE_INT16:
      return run(ReduceIntegers<int16_t, uint32_t>);
    case HCCL_DATA_TYPE_INT32:
      return run(ReduceIntegers<int32_t, uint32_t>);
    case HCCL_DATA_TYPE_INT64:
      return run(ReduceIntegers<int64_t, uint64_t>);
    case HCCL_DATA_TYPE_UINT8:
      return run(ReduceIntegers<uint8_t, uint32_t>);
    case HCCL_DATA_TYPE_UINT16:
      return run(ReduceIntegers<uint16_t, uint32_t>);
    case HCCL_DATA_TYPE_UINT32:
      return run(ReduceIntegers<uint32_t, uint32_t>);
    case HCCL_DATA_TYPE_UINT64:
      return run(ReduceIntegers<uint64_t, uint64_t>);
    case HCCL_DATA_TYPE_INT128:
      return run(ReduceIntegers<Int128, Uint128>);
    case HCCL_DATA_TYPE_FP16:
      return run(ReduceFloats<F16>);
    case HCCL_DATA_TYPE_BFP16:
      return run(ReduceFloats<Bf16>);
    case HCCL_DATA_TYPE_FP32:
      return run(ReduceFloats<F32>);
    case HCCL_DATA_TYPE_FP64:
      return run(ReduceFloats<F64>);
    case HCCL_DATA_TYPE_FP8E4M3:
      return run(ReduceFloats<E4m3>);
    default:
      return run(ReduceFloats<E5m2>);
  }
}

}  // namespace cannsim::hccl
