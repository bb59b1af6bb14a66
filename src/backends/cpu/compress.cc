// SPDX-License-Identifier: Apache-2.0
// KvCompress: pools finished blocks of tokens into compressed rows.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/backend.h"
#include "backends/cpu/rows.h"
#include "kernels/vector.h"

namespace belay::cpu {
namespace {

// The tokens that one row pools: 128 at ratio 128, 8 at ratio 4 with overlap.
constexpr size_t kMaxSlots = 256;

struct Slots {
  std::array<const float*, kMaxSlots> kv;
  std::array<const float*, kMaxSlots> score;
  std::array<const float*, kMaxSlots> ape;
  size_t n = 0;
};

// Adds one token's projections, from this step or from the ring of earlier
// ones. Nothing before position 0: an absent slot weighs exactly 0.
void AddSlot(const ops::KvCompressParams& p, const ops::Span& span,
             int32_t position, int64_t first_channel, Slots& slots) {
  if (position < 0) return;
  const int64_t width = p.raw.dim(2);
  const int32_t i = position - span.start_pos;
  const int64_t n_ring = p.state.raw.dim(1);
  const float* raw = i >= 0 ? p.raw.row<float>(span.first_token + i)
                            : p.state.raw.row<float>(span.slot) +
                                  (position % n_ring) * 2 * width;
  BELAY_CHECK(slots.n < kMaxSlots);
  slots.kv[slots.n] = raw + first_channel;
  slots.score[slots.n] = raw + width + first_channel;
  slots.ape[slots.n] =
      p.weights.ape.row<float>(position % p.cache.ratio) + first_channel;
  ++slots.n;
}

void StoreRaw(const ops::KvCompressParams& p, const ops::Span& span) {
  const auto n_ring = static_cast<int32_t>(p.state.raw.dim(1));
  const int64_t n = p.raw.row_elements();
  for (int32_t i = std::max(0, span.n_tokens - n_ring); i < span.n_tokens;
       ++i) {
    std::memcpy(
        p.state.raw.row<float>(span.slot) + ((span.start_pos + i) % n_ring) * n,
        p.raw.row<float>(span.first_token + i),
        static_cast<size_t>(n) * sizeof(float));
  }
}

}  // namespace

void CpuBackend::FinishBlock(const ops::KvCompressParams& p,
                             const ops::Span& span, int32_t block,
                             const float* norm, int thread) const {
  const int32_t ratio = p.cache.ratio;
  Slots slots;
  if (p.overlap) {
    for (int32_t i = 0; i < ratio; ++i) {
      AddSlot(p, span, (block - 1) * ratio + i, 0, slots);
    }
  }
  const int64_t own_channel = p.overlap ? p.raw.dim(2) / 2 : 0;
  for (int32_t i = 0; i < ratio; ++i) {
    AddSlot(p, span, block * ratio + i, own_channel, slots);
  }

  const int64_t dim = p.cache.format.head_dim;
  const auto n = static_cast<size_t>(dim);
  float* row = workspace_.thread(thread).Take<float>(dim);
  kernels::SoftmaxPool({.kv = slots.kv.data(),
                        .score = slots.score.data(),
                        .ape = slots.ape.data(),
                        .n_slots = slots.n,
                        .n_channels = n,
                        .out = row});
  Round(row, dim);
  NormRow(row, norm, dim, numerics_.norm_eps);
  Round(row, dim);
  const Rotation rotation(p.rope, block * ratio);
  rotation.Apply(row, dim);
  Round(row, dim);
  std::byte* out = PagedRow(p.cache, p.batch, span.slot, block);
  if (p.hadamard || p.cache.format.kind == ops::RowKind::kFp4) {
    kernels::Hadamard(
        row, n, static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))));
    Round(row, dim);
    EncodeIndexRow(numerics_, p.cache.format, row, out);
  } else {
    EncodeKvRow(numerics_, p.cache.format, rotation.dims(), row, out);
  }
}

void CpuBackend::KvCompress(const ops::KvCompressParams& p) {
  const int64_t width = p.raw.dim(2);
  const int64_t dim = p.cache.format.head_dim;
  const CpuLinear& wkv = AsCpu(p.weights.wkv);
  const CpuLinear& wgate = AsCpu(p.weights.wgate);
  const auto half = [&](int64_t which) {
    return TensorView(p.raw.row<float>(0) + which * width, DType::kF32,
                      {p.raw.n_rows(), width}, p.raw.row_bytes_stride());
  };
  // Both are packed alike: the checkpoint holds them in one format.
  const kernels::MatMulKernel& kernel = KernelFor(wkv, p.x.dtype());
  const std::array<Projection, 2> products = {
      Projection{&wkv.view(kernel), half(0)},
      Projection{&wgate.view(kernel), half(1)}};
  if (&kernel == &KernelFor(wgate, p.x.dtype())) {
    ProjectAll(p.x, wkv.quantise_input(), kernel, products);
  } else {
    Project(wkv, p.x, products[0].y);
    Project(wgate, p.x, products[1].y);
  }

  float* norm = workspace_.shared().Take<float>(dim);
  Load(ConstTensorView(p.weights.norm.data(), p.weights.norm.dtype(), {1, dim}),
       0, 0, dim, norm);
  const int32_t ratio = p.cache.ratio;
  for (const ops::Span& span : p.batch.spans) {
    const int32_t first = span.start_pos / ratio;
    const int32_t end = (span.start_pos + span.n_tokens) / ratio;
    Parallel(end - first, [&](size_t i, int thread) {
      FinishBlock(p, span, first + static_cast<int32_t>(i), norm, thread);
    });
    StoreRaw(p, span);  // after the blocks, which read what this replaces
  }
}

}  // namespace belay::cpu
