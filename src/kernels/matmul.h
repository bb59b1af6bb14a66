// SPDX-License-Identifier: Apache-2.0
// y = x W^T for weights of every kind; one kernel for one token and for many.
//
// The promise that callers build on: y[t][n] depends on row t of x and row n of
// W alone, bit for bit. Each output has its own accumulators; lanes, steps and
// blocks run over the columns in one fixed order, whatever the number of
// tokens, the tile that a token falls into and the thread that computes it. The
// bits may differ from one instruction set to the next.
//
// Arithmetic: products of e4m3 / e2m1 codes with x are fused into float32 sums
// inside a block of columns; acc += sum * scale(block), blocks in order; where
// a kernel spreads columns over lanes, they are added at the end. Activations
// that were quantised to e4m3 with power-of-two scales come in as code * scale:
// exact in float32, and scaling by a power of two commutes with rounding, so
// this is the official (sum code * code) * (scale_a * scale_b).
#ifndef BELAY_KERNELS_MATMUL_H_
#define BELAY_KERNELS_MATMUL_H_

#include <cstddef>
#include <cstdint>

#include "kernels/weight.h"

namespace belay::kernels {

// Rows of W that a panel holds.
inline constexpr int64_t kMatMulRows = 4;

// Callers split rows in multiples of this where they can: kernels that pack
// weights compute that many rows at least, and kPackRows (kernels/pack.h) at
// best.
inline constexpr int64_t kTaskRows = 16;

// What any kernel may use as scratch, whatever the width.
inline constexpr size_t kMinPanelBytes = size_t{80} << 10;

struct MatMulArgs {
  const WeightView* weight = nullptr;
  int64_t row_begin = 0;  // rows of W to compute, row_end excluded
  int64_t row_end = 0;

  // Packed rows of x (MatMulKernel::pack); row t is at x + x_index[t] *
  // x_row_bytes, or at x + t * x_row_bytes without an index.
  const std::byte* x = nullptr;
  size_t x_row_bytes = 0;
  const int32_t* x_index = nullptr;  // [n_tokens] or null
  int64_t n_tokens = 0;

  // y(t, n) at element t * y_stride + (n - row_begin), f32 or bf16 (rounded to
  // nearest even).
  void* y = nullptr;
  int64_t y_stride = 0;  // elements
  bool y_bf16 = false;

  // PanelBytes(n_cols) bytes of this thread's own scratch, 64-byte aligned.
  std::byte* panel = nullptr;
};

// One way to multiply. Kernels agree within accumulation order.
struct MatMulKernel {
  const char* name;
  // Bytes of a packed row of n_cols values.
  size_t (*packed_bytes)(int64_t n_cols);
  // Packs columns [begin, begin + n) of one row into `packed`. `begin` is a
  // multiple of 128; the call with the last column also fills the padding.
  void (*pack)(const float* x, int64_t begin, int64_t n, int64_t n_cols,
               std::byte* packed);
  void (*run)(const MatMulArgs& args);
};

// Scratch of a thread for one run over rows of n_cols columns.
size_t PanelBytes(int64_t n_cols);

// float32 operands on any CPU and for any x.
const MatMulKernel& F32MatMul();

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_MATMUL_H_
