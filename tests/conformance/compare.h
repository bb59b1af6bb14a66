// SPDX-License-Identifier: Apache-2.0
// How results are held to golden values.
#ifndef BELAY_TESTS_CONFORMANCE_COMPARE_H_
#define BELAY_TESTS_CONFORMANCE_COMPARE_H_

#include <gtest/gtest.h>

#include <vector>

namespace belay::conformance {

// Every value within one bf16 step of the golden one, and at least 99 % equal.
// A value that cancelled to far below the tensor's rms has no meaningful
// relative error in any float32 order of summation; such a one passes within
// rms / 2^16, 1/256 of the bf16 step of a typical value.
::testing::AssertionResult NearBf16(const std::vector<float>& got,
                                    const std::vector<float>& golden);

// |got - golden| <= rel * |golden| + abs, everywhere.
::testing::AssertionResult NearF32(const std::vector<float>& got,
                                   const std::vector<float>& golden, double rel,
                                   double abs = 0.0);

// Bit for bit (NaN equals NaN, 0 is not -0).
::testing::AssertionResult SameBits(const std::vector<float>& got,
                                    const std::vector<float>& golden);

// A whole sublayer, where the last bit of one step may flip an FP8 code in the
// next: relative rms over all <= 0.0065 (the measured noise of float32 against
// float64 sums; every deviation from a rule that was tried gives >= 0.010), per
// row of `n_columns` <= 0.03.
::testing::AssertionResult NearModule(const std::vector<float>& got,
                                      const std::vector<float>& golden,
                                      size_t n_columns);

// Quantised values: at least 99 % equal, the others one code away (`step`, the
// largest relative distance of two neighbouring codes).
::testing::AssertionResult NearQuantised(const std::vector<float>& got,
                                         const std::vector<float>& golden,
                                         double step);

// ==, so that both zeros are equal.
::testing::AssertionResult SameValues(const std::vector<float>& got,
                                      const std::vector<float>& golden);

// Share of equal values.
double EqualShare(const std::vector<float>& got,
                  const std::vector<float>& golden);

}  // namespace belay::conformance

#endif  // BELAY_TESTS_CONFORMANCE_COMPARE_H_
