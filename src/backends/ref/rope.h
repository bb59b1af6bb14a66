// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_BACKENDS_REF_ROPE_H_
#define BELAY_BACKENDS_REF_ROPE_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/attention.h"

namespace belay::ref {

// Rotates the last 2 * n dims of a row by the n angles of one position.
class Rotation {
 public:
  // angle_i = fl(position * freq_i), a float32 product; cos and sin rounded to
  // float32.
  Rotation(const ops::RopeTable& rope, int32_t position, bool inverse = false) {
    for (const float freq : rope.freq.as<float>()) {
      const float angle = static_cast<float>(position) * freq;
      cos_.push_back(static_cast<float>(std::cos(static_cast<double>(angle))));
      const auto sin = static_cast<float>(std::sin(static_cast<double>(angle)));
      sin_.push_back(inverse ? -sin : sin);
    }
  }

  // Adjacent pairs: (a, b) -> (a cos - b sin, a sin + b cos), float32.
  void Apply(std::span<float> row) const {
    const std::span<float> tail = row.last(2 * cos_.size());
    for (size_t i = 0; i < cos_.size(); ++i) {
      const float a = tail[2 * i];
      const float b = tail[2 * i + 1];
      tail[2 * i] = a * cos_[i] - b * sin_[i];
      tail[2 * i + 1] = a * sin_[i] + b * cos_[i];
    }
  }

 private:
  std::vector<float> cos_;
  std::vector<float> sin_;
};

}  // namespace belay::ref

#endif  // BELAY_BACKENDS_REF_ROPE_H_
