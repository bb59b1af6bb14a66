// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TESTS_GOLDEN_MEAN_KL_H_
#define BELAY_TESTS_GOLDEN_MEAN_KL_H_

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/stepper.h"

namespace belay::test {

// KL divergence of softmax(q) from softmax(p), in nats.
inline double Kl(const std::vector<float>& p, const std::vector<float>& q) {
  const auto log_sum = [](const std::vector<float>& v) {
    double max = v.front();
    for (const float x : v) max = std::max<double>(max, x);
    double sum = 0.0;
    for (const float x : v) sum += std::exp(x - max);
    return max + std::log(sum);
  };
  const double zp = log_sum(p);
  const double zq = log_sum(q);
  double kl = 0.0;
  for (size_t i = 0; i < p.size(); ++i) {
    kl += std::exp(p[i] - zp) * ((p[i] - zp) - (q[i] - zq));
  }
  return kl;
}

// Its mean over rows.
inline double MeanKl(const Logits& p, const Logits& q) {
  EXPECT_EQ(p.size(), q.size());
  double sum = 0.0;
  for (size_t i = 0; i < p.size(); ++i) sum += Kl(p[i], q[i]);
  return sum / static_cast<double>(p.size());
}

}  // namespace belay::test

#endif  // BELAY_TESTS_GOLDEN_MEAN_KL_H_
