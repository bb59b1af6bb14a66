// SPDX-License-Identifier: Apache-2.0
// Weights in device memory. FP8 and FP4 weights are written out when they are
// bound: to BF16, which holds them exactly (a code times a power of two), or to
// FLOAT where their scales are no powers of two, and in exact numerics.
#ifndef BELAY_BACKENDS_CANN_WEIGHTS_H_
#define BELAY_BACKENDS_CANN_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <span>

#include "backends/cann/device/array.h"
#include "backends/cann/device/memory.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "ops/numerics.h"

namespace belay::cann {

class CannLinear final : public ops::BoundLinear {
 public:
  static StatusOr<std::unique_ptr<CannLinear>> Create(
      const ops::Numerics& numerics, const ops::LinearSource& source,
      WeightMemory& memory);

  const Array& weight() const { return weight_; }  // [n_out, n_in]
  // The input is quantised before the product.
  bool quantise() const { return quantise_; }

 private:
  CannLinear(const Array& weight, bool quantise)
      : BoundLinear(weight.dim(0), weight.dim(1)),
        weight_(weight),
        quantise_(quantise) {}

  Array weight_;
  bool quantise_;
};

// All experts in one tensor a matrix. There may be one more than `n_local`,
// which nobody is routed to: some versions fail with exactly 16.
class CannExperts final : public ops::BoundExperts {
 public:
  static StatusOr<std::unique_ptr<CannExperts>> Create(
      const ops::Numerics& numerics, std::span<const ops::ExpertSource> experts,
      int64_t first_expert, WeightMemory& memory);

  const Array& w1() const { return w1_; }  // [n, inter, dim]
  const Array& w2() const { return w2_; }  // [n, dim, inter]
  const Array& w3() const { return w3_; }  // [n, inter, dim]
  int64_t n_stored() const { return w1_.dim(0); }
  int64_t inter() const { return w1_.dim(1); }
  int64_t dim() const { return w1_.dim(2); }
  bool quantise() const { return quantise_; }

 private:
  CannExperts(int64_t first, int64_t n) : BoundExperts(first, n) {}

  Array w1_, w2_, w3_;
  bool quantise_ = false;
};

inline const CannLinear& AsCann(const ops::BoundLinear* weight) {
  return static_cast<const CannLinear&>(*weight);
}
inline const CannExperts& AsCann(const ops::BoundExperts* experts) {
  return static_cast<const CannExperts&>(*experts);
}

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_WEIGHTS_H_
