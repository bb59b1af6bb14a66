// SPDX-License-Identifier: Apache-2.0
#include "cannsim/ops/element.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/float_formats.h"

namespace cannsim {
namespace {

template <typename T>
T Get(const char* base, int64_t at) {
  T value;
  std::memcpy(&value, base + at * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void Put(char* base, int64_t at, T value) {
  std::memcpy(base + at * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// A float that keeps the fact of having been inexact in its last bit, so that
// a second rounding cannot see a false tie.
float OddFloat(double x) {
  auto f = static_cast<float>(x);
  if (static_cast<double>(f) != x && std::isfinite(f)) {
    uint32_t bits = std::bit_cast<uint32_t>(f);
    if (std::abs(static_cast<double>(f)) > std::abs(x)) --bits;
    f = std::bit_cast<float>(bits | 1U);
  }
  return f;
}

uint16_t F16FromF64(double x) { return belay::F16FromF32(OddFloat(x)); }

// The upper half of an FP16, rounded from the double at once; saturates.
uint8_t E5m2FromF64(double x) {
  constexpr double kMax = 57344;
  if (std::isnan(x)) return 0x7f;
  const double size = std::min(std::abs(x), kMax);
  int exponent = 0;
  std::frexp(size, &exponent);
  // Two bits behind the first; below 2^-14 in steps of 2^-16.
  const int step = std::max(exponent - 3, -16);
  const double rounded =
      std::ldexp(std::nearbyint(std::ldexp(size, -step)), step);
  return static_cast<uint8_t>(
      F16FromF64(std::copysign(std::min(rounded, kMax), x)) >> 8);
}

// Scales are powers of two: the code of the nearest one not above.
uint8_t E8m0FromF64(double x) {
  if (!(x > 0) || !std::isfinite(x)) return x == 0 ? 0 : belay::kE8m0Nan;
  return static_cast<uint8_t>(std::clamp(std::ilogb(x) + 127, 0, 254));
}

// Towards zero, and no further than the type goes; NaN becomes 0.
template <typename T>
T Saturated(double x) {
  if (std::isnan(x)) return 0;
  const double low = static_cast<double>(std::numeric_limits<T>::min());
  const double high = static_cast<double>(std::numeric_limits<T>::max());
  if (x <= low) return std::numeric_limits<T>::min();
  if (x >= high) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

int Nibble(const char* base, int64_t at) {
  const auto byte = static_cast<unsigned char>(base[at / 2]);
  const int nibble = at % 2 == 0 ? byte & 15 : byte >> 4;
  return nibble >= 8 ? nibble - 16 : nibble;
}

void PutNibble(char* base, int64_t at, int64_t value) {
  auto byte = static_cast<unsigned>(static_cast<unsigned char>(base[at / 2]));
  const unsigned shift = at % 2 == 0 ? 0 : 4;
  byte = (byte & ~(15U << shift)) |
         ((static_cast<unsigned>(value) & 15U) << shift);
  base[at / 2] = static_cast<char>(byte);
}

// Promotion: wider float, then float over integer, then wider integer.
int Rank(aclDataType dtype) {
  switch (dtype) {
    case ACL_BOOL:
      return 0;
    case ACL_UINT8:
      return 1;
    case ACL_INT8:
      return 2;
    case ACL_INT16:
      return 3;
    case ACL_INT32:
      return 4;
    case ACL_INT64:
      return 5;
    case ACL_FLOAT16:
      return 6;
    case ACL_BF16:
      return 7;
    case ACL_FLOAT:
      return 8;
    case ACL_DOUBLE:
      return 9;
    default:
      return -1;
  }
}

}  // namespace

bool IsFloat(aclDataType dtype) {
  return dtype == ACL_FLOAT || dtype == ACL_FLOAT16 || dtype == ACL_BF16 ||
         dtype == ACL_DOUBLE;
}

bool IsInteger(aclDataType dtype) {
  switch (dtype) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_INT16:
    case ACL_UINT16:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_INT64:
    case ACL_UINT64:
      return true;
    default:
      return false;
  }
}

bool IsNumber(aclDataType dtype) {
  return IsFloat(dtype) || IsInteger(dtype) || dtype == ACL_BOOL;
}

double LoadF(const Array& array, int64_t at) {
  switch (array.dtype) {
    case ACL_FLOAT:
      return Get<float>(array.base, at);
    case ACL_FLOAT16:
      return belay::F32FromF16(Get<uint16_t>(array.base, at));
    case ACL_BF16:
      return belay::F32FromBf16(Get<uint16_t>(array.base, at));
    case ACL_DOUBLE:
      return Get<double>(array.base, at);
    case ACL_FLOAT8_E4M3FN:
      return belay::F32FromE4m3(Get<uint8_t>(array.base, at));
    case ACL_FLOAT8_E5M2:  // the upper half of an FP16
      return belay::F32FromF16(
          static_cast<uint16_t>(Get<uint8_t>(array.base, at) << 8));
    case ACL_FLOAT8_E8M0:
      return belay::F32FromE8m0(Get<uint8_t>(array.base, at));
    case ACL_FLOAT4_E2M1:
      return belay::F32FromE2m1(
          static_cast<uint8_t>(Nibble(array.base, at) & 15));
    default:
      return static_cast<double>(LoadI(array, at));
  }
}

int64_t LoadI(const Array& array, int64_t at) {
  switch (array.dtype) {
    case ACL_INT4:
      return Nibble(array.base, at);
    case ACL_INT8:
      return Get<int8_t>(array.base, at);
    case ACL_UINT8:
    case ACL_BOOL:
      return Get<uint8_t>(array.base, at);
    case ACL_INT16:
      return Get<int16_t>(array.base, at);
    case ACL_UINT16:
      return Get<uint16_t>(array.base, at);
    case ACL_INT32:
      return Get<int32_t>(array.base, at);
    case ACL_UINT32:
      return Get<uint32_t>(array.base, at);
    case ACL_INT64:
    case ACL_UINT64:
      return Get<int64_t>(array.base, at);
    default:
      return Saturated<int64_t>(LoadF(array, at));
  }
}

void StoreF(const Array& array, int64_t at, double value) {
  switch (array.dtype) {
    case ACL_FLOAT:
      Put(array.base, at, static_cast<float>(value));
      return;
    case ACL_FLOAT16:
      Put(array.base, at, F16FromF64(value));
      return;
    case ACL_BF16:
      Put(array.base, at, belay::Bf16FromF64(value));
      return;
    case ACL_DOUBLE:
      Put(array.base, at, value);
      return;
    case ACL_FLOAT8_E4M3FN:
      Put(array.base, at, belay::E4m3FromF32(OddFloat(value)));
      return;
    case ACL_FLOAT8_E5M2:
      Put(array.base, at, E5m2FromF64(value));
      return;
    case ACL_FLOAT8_E8M0:
      Put(array.base, at, E8m0FromF64(value));
      return;
    case ACL_FLOAT4_E2M1:
      PutNibble(array.base, at, belay::E2m1FromF32(OddFloat(value)));
      return;
    case ACL_BOOL:
      Put<uint8_t>(array.base, at, value != 0 ? 1 : 0);
      return;
    case ACL_INT32:
      Put(array.base, at, Saturated<int32_t>(value));
      return;
    case ACL_INT8:
      Put(array.base, at, Saturated<int8_t>(value));
      return;
    case ACL_UINT8:
      Put(array.base, at, Saturated<uint8_t>(value));
      return;
    case ACL_INT16:
      Put(array.base, at, Saturated<int16_t>(value));
      return;
    default:
      StoreI(array, at, Saturated<int64_t>(value));
  }
}

void StoreI(const Array& array, int64_t at, int64_t value) {
  switch (array.dtype) {
    case ACL_INT4:
      PutNibble(array.base, at, value);
      return;
    case ACL_INT8:
    case ACL_UINT8:
      Put(array.base, at, static_cast<uint8_t>(value));
      return;
    case ACL_BOOL:
      Put<uint8_t>(array.base, at, value != 0 ? 1 : 0);
      return;
    case ACL_INT16:
    case ACL_UINT16:
      Put(array.base, at, static_cast<uint16_t>(value));
      return;
    case ACL_INT32:
    case ACL_UINT32:
      Put(array.base, at, static_cast<uint32_t>(value));
      return;
    case ACL_INT64:
    case ACL_UINT64:
      Put(array.base, at, value);
      return;
    default:
      StoreF(array, at, static_cast<double>(value));
  }
}

double RoundTo(aclDataType dtype, double value) {
  switch (dtype) {
    case ACL_FLOAT:
      return static_cast<float>(value);
    case ACL_FLOAT16:
      return belay::F32FromF16(F16FromF64(value));
    case ACL_BF16:
      return belay::RoundF64ToBf16(value);
    default:
      return value;
  }
}

double ScalarF(const aclScalar* scalar) {
  Array one;
  one.dtype = scalar->dtype;
  // LoadF only reads.
  one.base =
      const_cast<char*>(reinterpret_cast<const char*>(scalar->bytes.data()));
  return LoadF(one, 0);
}

aclDataType Promote(aclDataType a, aclDataType b) {
  if (a == b) return a;
  const bool halves = (a == ACL_FLOAT16 && b == ACL_BF16) ||
                      (a == ACL_BF16 && b == ACL_FLOAT16);
  if (halves) return ACL_FLOAT;
  if ((a == ACL_UINT8 && b == ACL_INT8) || (a == ACL_INT8 && b == ACL_UINT8)) {
    return ACL_INT16;
  }
  return Rank(a) >= Rank(b) ? a : b;
}

}  // namespace cannsim
