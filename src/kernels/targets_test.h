// SPDX-License-Identifier: Apache-2.0
// Runs a test body on every instruction set of this machine.
#ifndef BELAY_KERNELS_TARGETS_TEST_H_
#define BELAY_KERNELS_TARGETS_TEST_H_

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "hwy/highway.h"

namespace belay::kernels {

// Calls fn() once for each compiled and supported target, best one last.
template <typename Fn>
void ForEachTarget(const Fn& fn) {
  const int64_t all = hwy::SupportedTargets() & HWY_TARGETS;
  ASSERT_NE(all, 0);
  for (int64_t rest = all; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    fn();
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

inline std::vector<float> RandomFloats(size_t n, uint32_t seed,
                                       float scale = 1.0f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0f, scale);
  std::vector<float> values(n);
  for (float& v : values) v = normal(rng);
  return values;
}

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_TARGETS_TEST_H_
