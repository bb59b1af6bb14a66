// SPDX-License-Identifier: Apache-2.0
// Bound weights of the reference back end: the checkpoint's own bytes, checked
// once, decoded a row at a time when they are used.
#ifndef BELAY_BACKENDS_REF_WEIGHTS_H_
#define BELAY_BACKENDS_REF_WEIGHTS_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "ops/numerics.h"

namespace belay::ref {

enum class WeightKind : uint8_t { kF32, kBf16, kF16, kFp8, kFp4, kBlocks };

class RefLinear final : public ops::BoundLinear {
 public:
  // Errors: CKPT-005 (dtype of weight or scale), CKPT-006 (shape of weight or
  // scale), BACK-002 (K or the blocks do not fit the activation blocks).
  static StatusOr<std::unique_ptr<RefLinear>> Create(
      const ops::Numerics& numerics, const ops::LinearSource& source);

  WeightKind kind() const { return kind_; }
  // Whether the official numerics quantise the input.
  bool quantise_input() const { return scaled() && source_.quantise_input; }
  // Values of K that share an int8 scale when the input is quantised to int8;
  // 0 when it is not.
  int int8_block() const { return ops::Int8Block(source_.format); }
  // Whether the weight has a scale for each block_k() values of K beside it.
  bool scaled() const {
    return kind_ == WeightKind::kFp8 || kind_ == WeightKind::kFp4;
  }
  // Values of K that share one scale; n_in for a weight without scales.
  int64_t block_k() const { return scaled() ? source_.block_k : n_in(); }

  // Row `n` before scaling by Scale(): out[n_in()].
  void DecodeRow(int64_t n, std::span<double> out) const;
  // The scale of row `n` in block `k_block` of K; 1 without scales.
  float Scale(int64_t n, int64_t k_block) const;

 private:
  RefLinear(const ops::LinearSource& source, WeightKind kind, int64_t n_out,
            int64_t n_in)
      : BoundLinear(n_out, n_in), source_(source), kind_(kind) {}

  ops::LinearSource source_;
  WeightKind kind_;
};

// What Backend::BindLinear made, as what it is.
inline const RefLinear& AsRef(const ops::BoundLinear* weight) {
  return static_cast<const RefLinear&>(*weight);
}

struct RefExpert {
  std::unique_ptr<RefLinear> w1, w2, w3;  // gate, down, up
};

class RefExperts final : public ops::BoundExperts {
 public:
  // Errors: as RefLinear; CKPT-006 when the three shapes do not fit each other.
  static StatusOr<std::unique_ptr<RefExperts>> Create(
      const ops::Numerics& numerics, std::span<const ops::ExpertSource> experts,
      int64_t first_expert);

  const RefExpert& expert(int64_t local) const {
    return experts_[static_cast<size_t>(local)];
  }

 private:
  RefExperts(int64_t first_expert, std::vector<RefExpert> experts)
      : BoundExperts(first_expert, static_cast<int64_t>(experts.size())),
        experts_(std::move(experts)) {}

  std::vector<RefExpert> experts_;
};

inline const RefExperts& AsRef(const ops::BoundExperts* experts) {
  return static_cast<const RefExperts&>(*experts);
}

}  // namespace belay::ref

#endif  // BELAY_BACKENDS_REF_WEIGHTS_H_
