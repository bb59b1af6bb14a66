// SPDX-License-Identifier: Apache-2.0
// QueryProject, KvProject, RopeTail, KvStore.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/cpu/backend.h"
#include "backends/cpu/rows.h"
#include "base/float_formats.h"
#include "kernels/vector.h"

namespace belay::cpu {
namespace {

// x / rms(x); official: every step rounded to bf16, the sum in float32.
void NormHead(float* x, int64_t n, float eps, bool official) {
  const auto count = static_cast<size_t>(n);
  if (!official) {
    const float mean = kernels::SumSquares(x, count) / static_cast<float>(n);
    kernels::MulRow(x, 1.0f / std::sqrt(mean + eps), count, x);
    return;
  }
  const float mean =
      RoundToBf16(kernels::SumRoundedSquares(x, count) / static_cast<float>(n));
  const float r = RoundToBf16(1.0f / std::sqrt(RoundToBf16(mean + eps)));
  kernels::MulRow(x, r, count, x);
}

// The heads of every token in as few groups as keep the whole team busy: with
// one token each thread has a share of its heads. Heads stand alone, so that
// the groups do not change a bit.
class HeadGroups {
 public:
  HeadGroups(int64_t n_tokens, int64_t n_heads, int n_threads)
      : n_tokens_(n_tokens), n_heads_(n_heads) {
    n_groups_ = std::clamp<int64_t>(
        (n_threads + n_tokens - 1) / std::max<int64_t>(n_tokens, 1), 1,
        n_heads);
  }

  int64_t n_tasks() const { return n_tokens_ * n_groups_; }

  struct Task {
    int64_t token;
    int64_t first_head;
    int64_t end_head;
  };
  Task task(int64_t i) const {
    const int64_t group = i % n_groups_;
    return {i / n_groups_, n_heads_ * group / n_groups_,
            n_heads_ * (group + 1) / n_groups_};
  }

 private:
  int64_t n_tokens_;
  int64_t n_heads_;
  int64_t n_groups_;
};

}  // namespace

void CpuBackend::QueryProject(const ops::QueryProjectParams& p) {
  Project(AsCpu(p.wq_a), p.x, p.qr);
  RmsNorm(
      {.x = p.qr, .weight = p.q_norm, .y = p.qr, .eps = numerics_.norm_eps});
  const TensorView q(p.q.data(), p.q.dtype(),
                     {p.q.n_rows(), p.q.row_elements()},
                     p.q.row_bytes_stride());
  Project(AsCpu(p.wq_b), p.qr, q);
  const int64_t dim = p.q.dim(2);
  const auto positions = p.positions.as<int32_t>();
  const HeadGroups groups(p.q.n_rows(), p.q.dim(1), pool_->n_threads());
  Parallel(groups.n_tasks(), [&](size_t i, int thread) {
    const auto [t, first, end] = groups.task(static_cast<int64_t>(i));
    const Rotation rotation(p.rope, positions[static_cast<size_t>(t)]);
    float* head = workspace_.thread(thread).Take<float>(dim);
    for (int64_t h = first; h < end; ++h) {
      Load(p.q, t, h * dim, dim, head);
      if (p.head_norm) {
        NormHead(head, dim, numerics_.norm_eps, numerics_.official());
        Round(head, dim);
      }
      rotation.Apply(head, dim);
      Store(head, dim, p.q, t, h * dim);
    }
  });
}

void CpuBackend::KvProject(const ops::KvProjectParams& p) {
  const int64_t n_tokens = p.x.n_rows();
  const int64_t dim = p.format.head_dim;
  Scratch shared = workspace_.shared();
  float* rows = shared.Take<float>(n_tokens * dim);
  float* norm = shared.Take<float>(dim);
  Load(ConstTensorView(p.kv_norm.data(), p.kv_norm.dtype(), {1, dim}), 0, 0,
       dim, norm);
  Project(AsCpu(p.wkv), p.x, TensorView(rows, DType::kF32, {n_tokens, dim}));
  const auto positions = p.positions.as<int32_t>();
  Parallel(n_tokens, [&](size_t i, int) {
    const auto t = static_cast<int64_t>(i);
    float* row = rows + t * dim;
    Round(row, dim);
    NormRow(row, norm, dim, numerics_.norm_eps);
    Round(row, dim);
    const Rotation rotation(p.rope, positions[i]);
    rotation.Apply(row, dim);
    Round(row, dim);
    EncodeKvRow(numerics_, p.format, rotation.dims(), row,
                p.fresh.row<std::byte>(t));
  });
}

void CpuBackend::RopeTail(const ops::RopeTailParams& p) {
  const int64_t dim = p.x.dim(2);
  const auto positions = p.positions.as<int32_t>();
  const HeadGroups groups(p.x.n_rows(), p.x.dim(1), pool_->n_threads());
  Parallel(groups.n_tasks(), [&](size_t i, int thread) {
    const auto [t, first, end] = groups.task(static_cast<int64_t>(i));
    const Rotation rotation(p.rope, positions[static_cast<size_t>(t)],
                            p.inverse);
    const int64_t n = rotation.dims();
    float* tail = workspace_.thread(thread).Take<float>(n);
    for (int64_t h = first; h < end; ++h) {
      const int64_t begin = h * dim + dim - n;
      Load(p.x, t, begin, n, tail);
      rotation.Apply(tail, n);
      Store(tail, n, p.x, t, begin);
    }
  });
}

void CpuBackend::KvStore(const ops::KvStoreParams& p) {
  const auto n_ring = static_cast<int32_t>(p.window.rows.dim(1));
  for (const ops::Span& span : p.batch.spans) {
    for (int32_t i = std::max(0, span.n_tokens - n_ring); i < span.n_tokens;
         ++i) {
      std::memcpy(WindowRow(p.window, span.slot, span.start_pos + i),
                  p.fresh.row<std::byte>(span.first_token + i),
                  p.window.format.bytes());
    }
  }
}

}  // namespace belay::cpu
