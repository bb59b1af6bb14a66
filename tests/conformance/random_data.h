// SPDX-License-Identifier: Apache-2.0
// Random operands for the property tests: the same on every machine.
#ifndef BELAY_TESTS_CONFORMANCE_RANDOM_DATA_H_
#define BELAY_TESTS_CONFORMANCE_RANDOM_DATA_H_

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/linear.h"
#include "tensor/view.h"

namespace belay::conformance {

class Random {
 public:
  explicit Random(uint64_t seed) : seed_(seed) {}

  float Uniform();  // [0, 1)
  float Normal();   // mean 0, variance 1
  int32_t Below(int32_t n);
  // bf16 numbers, so that they mean the same in both dtypes.
  std::vector<float> Values(int64_t n, float scale = 1.0f);

 private:
  uint64_t seed_;
  uint64_t counter_ = 0;
};

enum class WeightForm {
  kF32,
  kBf16,
  kF16,
  kFp8,
  kFp8F32Scale,
  kFp4,
  kQ8_0,  // from here on: blocks
  kMxfp4,
  kQ2K,
  kQ3K,
  kQ4K,
  kQ5K,
  kQ6K,
};
inline constexpr WeightForm kWeightForms[] = {
    WeightForm::kF32,  WeightForm::kBf16,        WeightForm::kF16,
    WeightForm::kFp8,  WeightForm::kFp8F32Scale, WeightForm::kFp4,
    WeightForm::kQ8_0, WeightForm::kMxfp4,       WeightForm::kQ2K,
    WeightForm::kQ3K,  WeightForm::kQ4K,         WeightForm::kQ5K,
    WeightForm::kQ6K};
std::string NameOf(WeightForm form);
// The block format of a form; kNone up to kFp4.
BlockFormat FormatOf(WeightForm form);

// A random weight and what it stands for.
class RandomWeight {
 public:
  RandomWeight(Random& random, WeightForm form, int64_t n_out, int64_t n_in);
  RandomWeight(const RandomWeight&) = delete;
  RandomWeight& operator=(const RandomWeight&) = delete;

  const ops::LinearSource& source() const { return source_; }
  // Euclidean norm of row n, dequantised; where a block subtracts a minimum, of
  // the sum of both parts' magnitudes, which is what the sums round.
  double row_norm(int64_t n) const { return norms_[static_cast<size_t>(n)]; }

 private:
  void MakeBlocks(Random& random, BlockFormat format);
  void MakeScales(Random& random, WeightForm form);
  float ScaleOf(WeightForm form, int64_t n, int64_t k) const;

  int64_t n_out_, n_in_;
  ops::LinearSource source_;
  std::vector<float> floats_, f32_scales_;
  std::vector<uint16_t> halves_;
  std::vector<uint8_t> codes_, scales_;
  std::vector<double> norms_;
};

// Half the distance of two float32 numbers at 1.
inline constexpr double kEps = 0x1p-24;

// A bound for |a - b| of two float32 results of sum_k x_k w_k, whatever their
// order of summation: the error of one sum is at most K eps |x| |w|
// (Cauchy-Schwarz), and as roundings are independent about sqrt(K) eps |x| |w|;
// 4 (sqrt(K) + 4) leaves room for the worst of many thousand values and for the
// products and scales, and is far below the effect of a wrong operand.
inline double DotBound(int64_t n, double norm_x, double norm_w) {
  return 4 * (std::sqrt(static_cast<double>(n)) + 4) * kEps * norm_x * norm_w;
}

inline double Norm(const float* x, int64_t n) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<double>(x[i]) * x[i];
  return std::sqrt(sum);
}

}  // namespace belay::conformance

#endif  // BELAY_TESTS_CONFORMANCE_RANDOM_DATA_H_
