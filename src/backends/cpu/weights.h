// SPDX-License-Identifier: Apache-2.0
// Weights as the kernels want them.
#ifndef BELAY_BACKENDS_CPU_WEIGHTS_H_
#define BELAY_BACKENDS_CPU_WEIGHTS_H_

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/cpu/packed_memory.h"
#include "base/error.h"
#include "kernels/matmul.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "ops/numerics.h"

namespace belay::cpu {

// FP8 scales, one for 16,384 codes, are widened to float32 here. Where the
// bf16-dot or the int8-dot kernel will do all the work, the codes are packed
// for it (kernels/pack.h, kernels/blocks/pack_int8.h) into memory that this
// object shares; otherwise they stay views of the checkpoint.
class CpuLinear final : public ops::BoundLinear {
 public:
  // Errors: CKPT-005 and CKPT-006 when dtype or shape is not a linear's,
  // BACK-002 when no kernel takes its blocks.
  static StatusOr<std::unique_ptr<CpuLinear>> Create(
      const ops::Numerics& numerics, const ops::LinearSource& source,
      PackedMemory& memory);

  // The weight as `kernel`, one of kernel()'s, reads it.
  const kernels::WeightView& view(const kernels::MatMulKernel& kernel) const {
    return &kernel == bf16_kernel_ ? fast_view_ : view_;
  }
  // The fastest kernel for inputs that are exact in bf16 (bf16 activations,
  // quantised or not), or for any float32.
  const kernels::MatMulKernel& kernel(bool x_is_bf16) const {
    return x_is_bf16 ? *bf16_kernel_ : *f32_kernel_;
  }
  // act_quant the input first: official numerics and a quantised weight. The
  // packing of int8 kernels quantises instead.
  bool quantise_input() const { return quantise_input_; }
  std::span<const std::byte> packed() const override { return packed_bytes_; }

 private:
  CpuLinear(int64_t n_out, int64_t n_in) : BoundLinear(n_out, n_in) {}
  static StatusOr<std::unique_ptr<CpuLinear>> FromBlocks(
      const ops::Numerics& numerics, const ops::LinearSource& source,
      PackedMemory& memory);
  Status TakeScales(const ops::LinearSource& source);

  // Sets fast_view_: to a packed copy, or to bytes that are packed already.
  Status Pack(PackedMemory& memory);
  // To a packed copy for `kernel`, which from now on takes every input.
  Status PackForInt8(const kernels::MatMulKernel& kernel, PackedMemory& memory);
  Status TakePacked(std::span<const std::byte> packed);

  kernels::WeightView view_;       // as in the checkpoint
  kernels::WeightView fast_view_;  // for bf16_kernel_
  std::vector<float> scales_;
  std::shared_ptr<const void> packed_;  // what fast_view_ points into
  std::span<const std::byte> packed_bytes_;
  const kernels::MatMulKernel* bf16_kernel_ = &kernels::F32MatMul();
  const kernels::MatMulKernel* f32_kernel_ = &kernels::F32MatMul();
  bool quantise_input_ = false;
};

struct CpuExpert {
  std::unique_ptr<CpuLinear> w1;
  std::unique_ptr<CpuLinear> w2;
  std::unique_ptr<CpuLinear> w3;
};

class CpuExperts final : public ops::BoundExperts {
 public:
  // Errors as CpuLinear::Create; CKPT-006 when the three shapes disagree.
  static StatusOr<std::unique_ptr<CpuExperts>> Create(
      const ops::Numerics& numerics, std::span<const ops::ExpertSource> experts,
      int64_t first_expert, PackedMemory& memory);

  const CpuExpert& expert(int64_t local) const {
    return experts_[static_cast<size_t>(local)];
  }
  int64_t dim() const { return experts_.front().w1->n_in(); }
  int64_t inter() const { return experts_.front().w1->n_out(); }

 private:
  CpuExperts(int64_t first_expert, std::vector<CpuExpert> experts)
      : BoundExperts(first_expert, static_cast<int64_t>(experts.size())),
        experts_(std::move(experts)) {}

  std::vector<CpuExpert> experts_;
};

inline const CpuLinear& AsCpu(const ops::BoundLinear* weight) {
  return static_cast<const CpuLinear&>(*weight);
}
inline const CpuExperts& AsCpu(const ops::BoundExperts* experts) {
  return static_cast<const CpuExperts&>(*experts);
}

// The kernel for inputs of this dtype: e4m3 times a power of two is exact in
// bf16 whatever it was quantised from.
inline const kernels::MatMulKernel& KernelFor(const CpuLinear& weight,
                                              DType x) {
  return weight.kernel(x == DType::kBF16 || weight.quantise_input());
}

// A float32 matrix [n_rows, n_cols] that needs no binding.
kernels::WeightView ViewOfF32(ConstTensorView matrix);

}  // namespace belay::cpu

#endif  // BELAY_BACKENDS_CPU_WEIGHTS_H_
