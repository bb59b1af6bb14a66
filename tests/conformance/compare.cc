// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/float_formats.h"

namespace belay::conformance {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

// bf16 numbers in order, so that neighbours differ by one; both zeros are 0.
int32_t Rank(float x) {
  const int32_t bits = Bf16FromF32(x);
  return (bits & 0x8000) != 0 ? -(bits & 0x7fff) : bits;
}

double Rms(const std::vector<float>& x) {
  double sum = 0.0;
  for (const float v : x) sum += static_cast<double>(v) * v;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, x.size())));
}

AssertionResult SizesDiffer(const std::vector<float>& got,
                            const std::vector<float>& golden) {
  return AssertionFailure()
         << got.size() << " values, golden has " << golden.size();
}

double RelativeRms(const float* got, const float* golden, size_t n) {
  double difference = 0.0;
  double norm = 0.0;
  for (size_t i = 0; i < n; ++i) {
    const double d = static_cast<double>(got[i]) - golden[i];
    difference += d * d;
    norm += static_cast<double>(golden[i]) * golden[i];
  }
  return norm > 0.0 ? std::sqrt(difference / norm) : std::sqrt(difference);
}

}  // namespace

double EqualShare(const std::vector<float>& got,
                  const std::vector<float>& golden) {
  size_t equal = 0;
  for (size_t i = 0; i < got.size(); ++i) equal += got[i] == golden[i];
  return static_cast<double>(equal) /
         static_cast<double>(std::max<size_t>(1, got.size()));
}

AssertionResult NearBf16(const std::vector<float>& got,
                         const std::vector<float>& golden) {
  if (got.size() != golden.size()) return SizesDiffer(got, golden);
  const double floor = Rms(golden) * 0x1p-16;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool step = std::abs(Rank(got[i]) - Rank(golden[i])) <= 1;
    if (step || std::abs(got[i] - golden[i]) <= floor) continue;
    return AssertionFailure()
           << "value " << i << ": got " << got[i] << ", golden " << golden[i];
  }
  const double share = EqualShare(got, golden);
  if (share >= 0.99) return AssertionSuccess();
  return AssertionFailure() << "only " << 100 * share << " % are equal";
}

AssertionResult NearF32(const std::vector<float>& got,
                        const std::vector<float>& golden, double rel,
                        double abs) {
  if (got.size() != golden.size()) return SizesDiffer(got, golden);
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = golden[i];
    if (std::abs(got[i] - want) <= rel * std::abs(want) + abs) continue;
    if (std::isinf(want) && got[i] == golden[i]) continue;
    return AssertionFailure()
           << "value " << i << ": got " << got[i] << ", golden " << golden[i];
  }
  return AssertionSuccess();
}

AssertionResult SameBits(const std::vector<float>& got,
                         const std::vector<float>& golden) {
  if (got.size() != golden.size()) return SizesDiffer(got, golden);
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(got[i]) && std::isnan(golden[i])) continue;
    if (std::bit_cast<uint32_t>(got[i]) == std::bit_cast<uint32_t>(golden[i])) {
      continue;
    }
    return AssertionFailure()
           << "value " << i << ": got " << got[i] << ", golden " << golden[i];
  }
  return AssertionSuccess();
}

AssertionResult NearQuantised(const std::vector<float>& got,
                              const std::vector<float>& golden, double step) {
  if (got.size() != golden.size()) return SizesDiffer(got, golden);
  const double tiny = Rms(golden) * 0x1p-6;  // around zero: absolute
  const AssertionResult near = NearF32(got, golden, step, tiny);
  if (!near) return near;
  const double share = EqualShare(got, golden);
  if (share >= 0.99) return AssertionSuccess();
  return AssertionFailure() << "only " << 100 * share << " % are equal";
}

AssertionResult SameValues(const std::vector<float>& got,
                           const std::vector<float>& golden) {
  return NearF32(got, golden, 0.0);
}

AssertionResult NearModule(const std::vector<float>& got,
                           const std::vector<float>& golden, size_t n_columns) {
  if (got.size() != golden.size()) return SizesDiffer(got, golden);
  const double all = RelativeRms(got.data(), golden.data(), got.size());
  if (!(all <= 0.0065)) {
    return AssertionFailure() << "relative rms " << all;
  }
  for (size_t i = 0; i < got.size(); i += n_columns) {
    const double row = RelativeRms(&got[i], &golden[i], n_columns);
    if (row <= 0.03) continue;
    return AssertionFailure()
           << "row " << i / n_columns << ": relative rms " << row;
  }
  return AssertionSuccess() << "relative rms " << all;
}

}  // namespace belay::conformance
