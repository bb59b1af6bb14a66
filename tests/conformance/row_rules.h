// SPDX-License-Identifier: Apache-2.0
// Cache rows in the suite's own words: values of the bytes of a RowFormat.
#ifndef BELAY_TESTS_CONFORMANCE_ROW_RULES_H_
#define BELAY_TESTS_CONFORMANCE_ROW_RULES_H_

#include <cstdint>
#include <cstring>
#include <vector>

#include "base/float_formats.h"
#include "ops/cache.h"

namespace belay::conformance {

inline float Bf16At(const uint8_t* bytes) {
  return F32FromBf16(static_cast<uint16_t>(bytes[0] | (bytes[1] << 8)));
}

inline float RowValue(const ops::RowFormat& format, const uint8_t* row, int i) {
  const int n = format.head_dim;
  const int nope = n - format.rope_dim;
  float value = 0.0f;
  switch (format.kind) {
    case ops::RowKind::kFp8Rope:
      if (i >= nope) {
        return Bf16At(row + nope + nope / format.group + 2 * (i - nope));
      }
      return F32FromE4m3(row[i]) * F32FromE8m0(row[nope + i / format.group]);
    case ops::RowKind::kFp4:
      value = F32FromE2m1(i % 2 == 0 ? row[i / 2] & 15u : row[i / 2] >> 4);
      return value * F32FromE8m0(row[n / 2 + i / format.group]);
    case ops::RowKind::kBf16:
      return Bf16At(row + 2 * i);
    case ops::RowKind::kF32:
      std::memcpy(&value, row + 4 * i, 4);
      return value;
  }
  return value;
}

inline std::vector<float> RowValues(const ops::RowFormat& format,
                                    const uint8_t* row) {
  std::vector<float> values;
  for (int i = 0; i < format.head_dim; ++i) {
    values.push_back(RowValue(format, row, i));
  }
  return values;
}

}  // namespace belay::conformance

#endif  // BELAY_TESTS_CONFORMANCE_ROW_RULES_H_
