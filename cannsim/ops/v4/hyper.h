// SPDX-License-Identifier: Apache-2.0
// Hyper-connections: what CANN's mHC operators and the custom ones share.
#ifndef BELAY_CANNSIM_OPS_V4_HYPER_H_
#define BELAY_CANNSIM_OPS_V4_HYPER_H_

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cannsim {

// Mixes of one token for n streams: pre [n], post [n], comb [n, n].
struct HyperMix {
  std::vector<double> pre;
  std::vector<double> post;
  std::vector<double> comb;  // row-major
};

inline double HyperSigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Rows become their softmax plus eps, then columns are divided by their sum
// plus eps; then rows and columns, `iterations` - 1 times.
inline void Sinkhorn(size_t n, int64_t iterations, double eps,
                     std::vector<double>* comb) {
  std::vector<double>& m = *comb;
  const auto divide = [&](size_t along, size_t across) {
    for (size_t i = 0; i < n; ++i) {
      double sum = eps;
      for (size_t j = 0; j < n; ++j) sum += m[i * across + j * along];
      for (size_t j = 0; j < n; ++j) m[i * across + j * along] /= sum;
    }
  };
  for (size_t i = 0; i < n; ++i) {
    double largest = m[i * n];
    for (size_t j = 1; j < n; ++j) largest = std::fmax(largest, m[i * n + j]);
    double sum = 0;
    for (size_t j = 0; j < n; ++j) {
      sum += m[i * n + j] = std::exp(m[i * n + j] - largest);
    }
    for (size_t j = 0; j < n; ++j) m[i * n + j] = m[i * n + j] / sum + eps;
  }
  divide(n, 1);
  for (int64_t k = 1; k < iterations; ++k) {
    divide(1, n);
    divide(n, 1);
  }
}

// `mix` [n * n + 2 n] in the order pre, post, comb, already times the inverse
// root mean square; `scale` [3]; `base` like mix. comb is not yet normalised.
inline HyperMix SplitMix(size_t n, const std::vector<double>& mix,
                         const std::vector<double>& scale,
                         const std::vector<double>& base, double eps) {
  HyperMix out;
  for (size_t i = 0; i < n; ++i) {
    out.pre.push_back(HyperSigmoid(mix[i] * scale[0] + base[i]) + eps);
    out.post.push_back(2 * HyperSigmoid(mix[n + i] * scale[1] + base[n + i]));
  }
  for (size_t i = 2 * n; i < mix.size(); ++i) {
    out.comb.push_back(mix[i] * scale[2] + base[i]);
  }
  return out;
}

}  // namespace cannsim

#endif  // BELAY_CANNSIM_OPS_V4_HYPER_H_
