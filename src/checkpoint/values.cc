// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/values.h"

#include <cstring>
#include <limits>

#include "base/float_formats.h"

namespace belay::checkpoint {

std::optional<BadElement> FindBadScale(ConstTensorView scale) {
  if (scale.n_elements() == 0) return std::nullopt;
  if (scale.dtype() == DType::kF8E8M0) {
    // The library's memchr runs at memory speed; 160 GB models have 9 GB of
    // scales.
    const auto codes = scale.as<uint8_t>();
    const void* bad = std::memchr(codes.data(), kE8m0Nan, codes.size());
    if (bad == nullptr) return std::nullopt;
    return BadElement{static_cast<const uint8_t*>(bad) - codes.data(),
                      "NaN (e8m0 code 255)"};
  }
  const auto values = scale.as<float>();
  for (size_t i = 0; i < values.size(); ++i) {
    // False for NaN, too.
    if (values[i] > 0 && values[i] <= std::numeric_limits<float>::max()) {
      continue;
    }
    return BadElement{static_cast<int64_t>(i), std::to_string(values[i])};
  }
  return std::nullopt;
}

std::optional<BadElement> FindBadExpertId(ConstTensorView table,
                                          int64_t n_experts) {
  const auto ids = table.as<int64_t>();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < n_experts) continue;
    return BadElement{static_cast<int64_t>(i), std::to_string(ids[i])};
  }
  return std::nullopt;
}

}  // namespace belay::checkpoint
