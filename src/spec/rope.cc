// SPDX-License-Identifier: Apache-2.0
// Rotary frequencies. Source: DeepSeek-V4 inference/model.py
// (precompute_freqs_cis).
#include <algorithm>
#include <cmath>
#include <numbers>

#include "spec/config.h"

namespace belay::spec {
namespace {

// The dimension at which a full window of original_seq_len makes `rotations`
// turns.
double CorrectionDim(const ModelConfig& c, double base, double rotations) {
  const auto dim = static_cast<double>(c.rope_head_dim);
  const auto window = static_cast<double>(c.original_seq_len);
  return dim * std::log(window / (rotations * 2 * std::numbers::pi)) /
         (2 * std::log(base));
}

}  // namespace

std::vector<float> RopeFrequencies(const ModelConfig& config, bool compressed) {
  const double base =
      compressed ? config.compress_rope_theta : config.rope_theta;
  const auto n = static_cast<size_t>(config.rope_head_dim / 2);
  const auto dim = static_cast<float>(config.rope_head_dim);
  std::vector<float> freq(n);
  for (size_t i = 0; i < n; ++i) {
    // 2 i / dim is a float32 division. The power is rounded once: powf of the
    // common libraries and devices differ by a unit in the last place.
    const float exponent = static_cast<float>(2 * i) / dim;
    const auto power =
        static_cast<float>(std::pow(base, static_cast<double>(exponent)));
    freq[i] = 1.0f / power;
  }
  if (!compressed) return freq;

  // YaRN: long wavelengths are stretched by `factor`, short ones stay, a linear
  // ramp between. No change of the attention scale.
  const auto lo = static_cast<float>(
      std::max(std::floor(CorrectionDim(config, base, config.beta_fast)), 0.0));
  auto hi = static_cast<float>(
      std::min(std::ceil(CorrectionDim(config, base, config.beta_slow)),
               static_cast<double>(config.rope_head_dim - 1)));
  if (lo == hi) hi += 0.001f;
  const auto factor = static_cast<float>(config.rope_factor);
  for (size_t i = 0; i < n; ++i) {
    const float ramp =
        std::clamp((static_cast<float>(i) - lo) / (hi - lo), 0.0f, 1.0f);
    const float smooth = 1.0f - ramp;
    freq[i] = freq[i] / factor * (1.0f - smooth) + freq[i] * smooth;
  }
  return freq;
}

}  // namespace belay::spec
