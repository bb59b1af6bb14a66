// SPDX-License-Identifier: Apache-2.0
// Linear layers and norms.
// Source: DeepSeek-V4 inference/model.py (linear, RMSNorm), kernel.py
// (act_quant, fp8_gemm, fp4_gemm).
#ifndef BELAY_OPS_LINEAR_H_
#define BELAY_OPS_LINEAR_H_

#include <cstdint>
#include <span>

#include "tensor/block_format.h"
#include "tensor/view.h"

namespace belay::ops {

// A linear weight as the checkpoint holds it; borrowed, must outlive the bound
// weight. Layout [n_out, n_in] ("weight" of torch.nn.Linear).
struct LinearSource {
  // BF16, F16 or F32 [n_out, n_in]; F8_E4M3 [n_out, n_in]; I8 (two e2m1 codes a
  // byte) [n_out, n_in / 2]; with a `format`, U8 [n_out, bytes of a row].
  ConstTensorView weight;
  // FP8: F8_E8M0 or F32 [ceil(n_out / block_n), ceil(n_in / block_k)];
  // FP4: F8_E8M0 [n_out, n_in / block_k], block_n = 1. Empty for all others.
  ConstTensorView scale;
  int block_n = 128;
  int block_k = 128;
  // Official numerics: quantise the input with act_quant before the product.
  // True for every FP8 / FP4 linear but wo_a, whose weight the official loader
  // dequantises to bf16 (exact: e4m3 * 2^k). Ignored for all other weights.
  bool quantise_input = true;
  // Weights of GGUF files, with their scales inside: scale and blocks above
  // mean nothing then.
  BlockFormat format = BlockFormat::kNone;
  // Not empty: the weight as this back end packed it before
  // (BoundLinear::packed), borrowed like the rest. `weight` then says dtype and
  // shape, and its memory is not read.
  std::span<const std::byte> packed = {};
};

// Values of K that share an int8 activation scale in official numerics: those
// of a block for Q8_0 and MXFP4, half a block for the K types; 0 without
// blocks.
constexpr int Int8Block(BlockFormat format) {
  if (format == BlockFormat::kNone) return 0;
  return BlockValues(format) == 32 ? 32 : 128;
}

// A weight in the form that one back end wants. Made once at load by
// Backend::BindLinear, and used only with that back end.
class BoundLinear {
 public:
  virtual ~BoundLinear() = default;
  int64_t n_out() const { return n_out_; }
  int64_t n_in() const { return n_in_; }
  // The weight's bytes in the back end's own layout (Backend::PackedLayout);
  // empty when it reads the source as it is.
  virtual std::span<const std::byte> packed() const { return {}; }

 protected:
  BoundLinear(int64_t n_out, int64_t n_in) : n_out_(n_out), n_in_(n_in) {}

 private:
  int64_t n_out_;
  int64_t n_in_;
};

// y = x W^T.
//  FP8 weight, official: x is quantised per row and 128-block of K
//    (act_quant); for each K block: part = sum a*b in f32, acc += part *
//    (sa * sb), in K order.
//  FP4 weight, official: the same activation codes; for each 32-block of K:
//    acc += (part * sa[k / 4]) * sb[n][k].
//  Weight in blocks (GGUF), official: a departure, since these weights are not
//    DeepSeek's. x is quantised per row and Int8Block of K to s = fl(a / 127),
//    q = round to even(fl(x * fl(127 / a))), a the largest magnitude (all 0 for
//    a = 0); acc += s * (sum q w) for each block in K order, w dequantised
//    exactly. Against the plain product the result differs by about 0.5 % of
//    its norm (docs/gguf.md has the figures), as llama.cpp's does.
//  BF16 / F16 / F32 weight, or exact: plain product, f32 accumulation, the
//    weight dequantised exactly.
// The result is rounded once to y's dtype.
struct LinearParams {
  const BoundLinear* weight = nullptr;  // [n_out, n_in]
  ConstTensorView x;  // [n_tokens, n_in] bf16 or f32; rows may be strided
  TensorView y;       // [n_tokens, n_out] bf16 or f32; must not alias x
};

// y = w * (x * rsqrt(mean(x^2) + eps)), in f32, rounded once to y's dtype.
struct RmsNormParams {
  ConstTensorView x;       // [n_rows, n] bf16 or f32
  ConstTensorView weight;  // [n] bf16 or f32
  TensorView y;            // [n_rows, n] x's dtype; may alias x
  float eps = 1e-6f;
};

}  // namespace belay::ops

#endif  // BELAY_OPS_LINEAR_H_
