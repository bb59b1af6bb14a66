// SPDX-License-Identifier: Apache-2.0
// Linear, RmsNorm, Logits, AttentionOut.
#include <algorithm>
#include <array>
#include <cmath>

#include "backends/cpu/backend.h"
#include "kernels/quantize.h"
#include "kernels/vector.h"

namespace belay::cpu {
namespace {

// Rows of one task: what kernels like best, unless that leaves too few tasks
// to balance the team.
int64_t RowsPerTask(const kernels::MatMulKernel& kernel, int64_t n_rows,
                    int n_threads) {
  // Float32 rows are few: the mixing weights.
  const int64_t least = &kernel == &kernels::F32MatMul() ? kernels::kMatMulRows
                                                         : kernels::kTaskRows;
  int64_t rows = 4 * kernels::kTaskRows;
  while (rows > least && n_rows < 2 * rows * n_threads) rows /= 2;
  return rows;
}

}  // namespace

void CpuBackend::PackToken(const kernels::MatMulKernel& kernel, bool quantise,
                           const RowSlice& from, int thread,
                           std::byte* packed) const {
  float* row = workspace_.thread(thread).Take<float>(from.n);
  Load(from.x, from.t, from.begin, from.n, row);
  if (quantise) {
    kernels::QuantizeE4m3(row, static_cast<size_t>(from.n),
                          static_cast<size_t>(numerics_.act_block), row);
  }
  kernel.pack(row, 0, from.n, from.n, packed);
}

void CpuBackend::ProjectAll(ConstTensorView x, bool quantise,
                            const kernels::MatMulKernel& kernel,
                            std::span<const Projection> products) const {
  const int64_t n_cols = products.front().weight->n_cols;
  const size_t row_bytes = kernel.packed_bytes(n_cols);
  const int64_t n_tokens = x.n_rows();
  const int64_t chunk = workspace_.packed_tokens(row_bytes, n_tokens);
  std::byte* packed = workspace_.packed().Take<std::byte>(
      chunk * static_cast<int64_t>(row_bytes));

  int64_t all_rows = 0;
  for (const Projection& p : products) all_rows += p.weight->n_rows;
  const int64_t rows_per_task =
      RowsPerTask(kernel, all_rows, pool_->n_threads());
  int64_t n_tasks = 0;
  for (const Projection& p : products) {
    n_tasks += (p.weight->n_rows + rows_per_task - 1) / rows_per_task;
  }

  for (int64_t first = 0; first < n_tokens; first += chunk) {
    const int64_t n = std::min(chunk, n_tokens - first);
    Parallel(n, [&](size_t i, int thread) {
      PackToken(kernel, quantise,
                {x, first + static_cast<int64_t>(i), 0, n_cols}, thread,
                packed + i * row_bytes);
    });
    Parallel(n_tasks, [&](size_t task, int thread) {
      auto tile = static_cast<int64_t>(task);
      const Projection* p = products.data();
      for (;; ++p) {
        const int64_t tiles =
            (p->weight->n_rows + rows_per_task - 1) / rows_per_task;
        if (tile < tiles) break;
        tile -= tiles;
      }
      kernels::MatMulArgs args;
      args.weight = p->weight;
      args.row_begin = tile * rows_per_task;
      args.row_end =
          std::min(args.row_begin + rows_per_task, p->weight->n_rows);
      args.x = packed;
      args.x_row_bytes = row_bytes;
      args.n_tokens = n;
      const size_t element = DtypeBytes(p->y.dtype());
      args.y = p->y.row<std::byte>(first) +
               static_cast<size_t>(args.row_begin) * element;
      args.y_stride = static_cast<int64_t>(p->y.row_bytes_stride() / element);
      args.y_bf16 = p->y.dtype() == DType::kBF16;
      args.panel = workspace_.panel(thread);
      kernel.run(args);
    });
  }
}

void CpuBackend::Project(const CpuLinear& weight, ConstTensorView x,
                         TensorView y) const {
  const kernels::MatMulKernel& kernel = KernelFor(weight, x.dtype());
  const Projection product = {&weight.view(kernel), y};
  ProjectAll(x, weight.quantise_input(), kernel, {&product, 1});
}

void CpuBackend::Linear(const ops::LinearParams& p) {
  Project(AsCpu(p.weight), p.x, p.y);
}

void CpuBackend::Logits(const ops::LogitsParams& p) {
  Project(AsCpu(p.weight), p.x, p.logits);
}

void CpuBackend::NormRow(float* x, const float* w, int64_t n, float eps) const {
  const auto count = static_cast<size_t>(n);
  const float mean = kernels::SumSquares(x, count) / static_cast<float>(n);
  const float r = 1.0f / std::sqrt(mean + eps);
  kernels::ScaleRow(x, w, r, count, x);
}

void CpuBackend::RmsNorm(const ops::RmsNormParams& p) {
  const int64_t n = p.x.row_elements();
  float* weight = workspace_.shared().Take<float>(n);
  Load(ConstTensorView(p.weight.data(), p.weight.dtype(), {1, n}), 0, 0, n,
       weight);
  Parallel(p.x.n_rows(), [&](size_t i, int thread) {
    const auto t = static_cast<int64_t>(i);
    float* row = workspace_.thread(thread).Take<float>(n);
    Load(p.x, t, 0, n, row);
    NormRow(row, weight, n, p.eps);
    Store(row, n, p.y, t, 0);
  });
}

// All groups of wo_a in one region: group g has its own slice of the packed
// input.
void CpuBackend::AttentionOut(const ops::AttentionOutParams& p) {
  const CpuLinear& wo_a = AsCpu(p.wo_a);
  const kernels::MatMulKernel& kernel = KernelFor(wo_a, p.o.dtype());
  const int64_t n_tokens = p.o.n_rows();
  const int64_t n_in = wo_a.n_in();
  const int64_t rank = wo_a.n_out() / p.n_groups;
  const size_t group_bytes = kernel.packed_bytes(n_in);
  const size_t row_bytes = group_bytes * static_cast<size_t>(p.n_groups);
  const int64_t chunk = workspace_.packed_tokens(row_bytes, n_tokens);
  std::byte* packed = workspace_.packed().Take<std::byte>(
      chunk * static_cast<int64_t>(row_bytes));
  const int64_t rows_per_task =
      RowsPerTask(kernel, wo_a.n_out(), pool_->n_threads());
  const int64_t tiles = (rank + rows_per_task - 1) / rows_per_task;

  for (int64_t first = 0; first < n_tokens; first += chunk) {
    const int64_t n = std::min(chunk, n_tokens - first);
    Parallel(n, [&](size_t i, int thread) {
      const int64_t t = first + static_cast<int64_t>(i);
      for (int64_t g = 0; g < p.n_groups; ++g) {
        PackToken(
            kernel, wo_a.quantise_input(), {p.o, t, g * n_in, n_in}, thread,
            packed + i * row_bytes + static_cast<size_t>(g) * group_bytes);
      }
    });
    Parallel(p.n_groups * tiles, [&](size_t task, int thread) {
      const auto g = static_cast<int64_t>(task) / tiles;
      const auto tile = static_cast<int64_t>(task) % tiles;
      kernels::MatMulArgs args;
      args.weight = &wo_a.view(kernel);
      args.row_begin = g * rank + tile * rows_per_task;
      args.row_end = std::min(args.row_begin + rows_per_task, (g + 1) * rank);
      args.x = packed + static_cast<size_t>(g) * group_bytes;
      args.x_row_bytes = row_bytes;
      args.n_tokens = n;
      const size_t element = DtypeBytes(p.mid.dtype());
      args.y = p.mid.row<std::byte>(first) +
               static_cast<size_t>(args.row_begin) * element;
      args.y_stride = static_cast<int64_t>(p.mid.row_bytes_stride() / element);
      args.y_bf16 = p.mid.dtype() == DType::kBF16;
      args.panel = workspace_.panel(thread);
      kernel.run(args);
    });
  }
  Project(AsCpu(p.wo_b), p.mid, p.y);
}

}  // namespace belay::cpu
