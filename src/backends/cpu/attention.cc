// SPDX-License-Identifier: Apache-2.0
// SparseAttention: straight from cache rows, which are decoded tile by tile.
#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/cpu/backend.h"
#include "backends/cpu/rows.h"
#include "kernels/attention_bf16.h"

namespace belay::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// The candidates of one token in the order of the contract: `window_size`
// slots, the valid ones first, then compressed rows.
class Candidates {
 public:
  Candidates(const ops::SparseAttentionParams& p, int64_t token)
      : p_(p), span_(SpanOf(p.batch, token)), token_(token) {
    position_ =
        span_.start_pos + static_cast<int32_t>(token - span_.first_token);
    oldest_ = std::max(0, position_ - p.window_size + 1);
    n_ = p.window_size;
    if (p.compressed.ratio == 0) return;
    n_ += p.selection.empty() ? (position_ + 1) / p.compressed.ratio
                              : p.selection.dim(1);
  }

  int64_t n() const { return n_; }

  // fn(format, bytes) for the candidates [first, first + n) that exist and are
  // not masked.
  template <typename Fn>
  void ForRows(int64_t first, int64_t n, const Fn& fn) const {
    for (int64_t c = first; c < std::min(first + n, n_); ++c) {
      const ops::RowFormat* format = nullptr;
      const std::byte* row = Row(c, &format);
      if (row != nullptr) fn(*format, row);
    }
  }

 private:
  // The bytes and the format of candidate c; null when it is masked.
  const std::byte* Row(int64_t c, const ops::RowFormat** format) const {
    if (c < p_.window_size) {
      *format = &p_.window.format;
      return InWindow(oldest_ + static_cast<int32_t>(c));
    }
    *format = &p_.compressed.format;
    int64_t row = c - p_.window_size;
    if (!p_.selection.empty()) row = p_.selection.row<int32_t>(token_)[row];
    if (row < 0) return nullptr;
    return PagedRow(p_.compressed, p_.batch, span_.slot, row);
  }

  const std::byte* InWindow(int32_t position) const {
    if (position > position_) return nullptr;
    if (position >= span_.start_pos) {
      return p_.fresh.row<std::byte>(span_.first_token + position -
                                     span_.start_pos);
    }
    return WindowRow(p_.window, span_.slot, position);
  }

  const ops::SparseAttentionParams& p_;
  const ops::Span& span_;
  int64_t token_;
  int32_t position_;
  int32_t oldest_;
  int64_t n_;
};

float ScoreScale(int64_t dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
}

// The divisor of a head's values. The sink joins the sum, never the maximum.
// Without any candidate the maximum is -inf and the quotient 0 / inf.
float WithSink(const ops::SparseAttentionParams& p, int64_t head,
               const kernels::OnlineSoftmax& state) {
  const float sink = p.sink.as<float>()[static_cast<size_t>(head)];
  return state.sum + std::exp(sink - state.max);
}

}  // namespace

// Any tile, any numerics: rows and sums in float32.
void CpuBackend::AttendInF32(const ops::SparseAttentionParams& p,
                             const HeadTask& task, int thread) const {
  const int64_t dim = p.q.dim(2);
  const int64_t tile = numerics_.attention_tile;
  const int64_t n_heads = task.n_heads;
  Scratch scratch = workspace_.thread(thread);
  float* rows = scratch.Take<float>(tile * dim);
  float* s = scratch.Take<float>(tile);
  float* q = scratch.Take<float>(n_heads * dim);
  float* acc = scratch.Take<float>(n_heads * dim);
  auto* state = scratch.Take<kernels::OnlineSoftmax>(n_heads);
  Load(p.q, task.token, task.first_head * dim, n_heads * dim, q);
  std::fill_n(acc, n_heads * dim, 0.0f);
  std::fill_n(state, n_heads, kernels::OnlineSoftmax{kMinusInfinity, 0.0f});

  const Candidates candidates(p, task.token);
  for (int64_t first = 0; first < candidates.n(); first += tile) {
    // Masked candidates keep their place in the tiles but weigh exactly 0, so
    // they are left out of the arithmetic.
    int64_t n = 0;
    candidates.ForRows(first, tile, [&](const auto& format, const auto* row) {
      DecodeRow(format, row, rows + dim * n++);
    });
    if (n == 0) continue;
    const kernels::RowsView view = {rows, static_cast<size_t>(dim),
                                    static_cast<size_t>(n),
                                    static_cast<size_t>(dim)};
    for (int64_t h = 0; h < n_heads; ++h) {
      kernels::DotRows(q + h * dim, view, s);
      for (int64_t j = 0; j < n; ++j) s[j] *= ScoreScale(dim);
      kernels::SoftmaxTile({.rows = view,
                            .s = s,
                            .round_p = numerics_.official(),
                            .state = state + h,
                            .acc = acc + h * dim});
    }
  }

  for (int64_t h = 0; h < n_heads; ++h) {
    const float total = WithSink(p, task.first_head + h, state[h]);
    float* o = acc + h * dim;
    for (int64_t d = 0; d < dim; ++d) o[d] /= total;
  }
  Store(acc, n_heads * dim, p.o, task.token, task.first_head * dim);
}

// Official numerics, whose rows, queries and weights are exact in bf16.
void CpuBackend::AttendInBf16(const ops::SparseAttentionParams& p,
                              const HeadTask& task, int thread) const {
  constexpr auto kStride = static_cast<int64_t>(kernels::kTileRows);
  const int64_t dim = p.q.dim(2);
  const int64_t tile = numerics_.attention_tile;
  const int64_t n_heads = task.n_heads;
  Scratch scratch = workspace_.thread(thread);
  uint16_t* rows = scratch.Take<uint16_t>(tile * dim);
  float* floats = scratch.Take<float>(dim);
  float* s = scratch.Take<float>(n_heads * kStride);
  uint16_t* weights = scratch.Take<uint16_t>(n_heads * kStride);
  float* acc = scratch.Take<float>(n_heads * dim);
  float* r = scratch.Take<float>(n_heads);
  auto* state = scratch.Take<kernels::OnlineSoftmax>(n_heads);
  std::fill_n(acc, n_heads * dim, 0.0f);
  std::fill_n(state, n_heads, kernels::OnlineSoftmax{kMinusInfinity, 0.0f});
  const uint16_t* q = p.q.row<uint16_t>(task.token) + task.first_head * dim;
  kernels::HeadTile view = {rows, 0, static_cast<size_t>(dim),
                            static_cast<size_t>(n_heads)};

  const Candidates candidates(p, task.token);
  for (int64_t first = 0; first < candidates.n(); first += tile) {
    view.n_rows = 0;
    candidates.ForRows(first, tile, [&](const auto& format, const auto* row) {
      DecodeRowToBf16(format, row, floats, rows + view.n_cols * view.n_rows++);
    });
    if (view.n_rows == 0) continue;
    kernels::ScoreHeads(view, q, ScoreScale(dim), s);
    for (int64_t h = 0; h < n_heads; ++h) {
      r[h] = kernels::SoftmaxWeights(s + h * kStride, view.n_rows, state + h,
                                     weights + h * kStride);
    }
    kernels::AddValues(view, weights, r, acc);
  }

  for (int64_t h = 0; h < n_heads; ++h) {
    r[h] = WithSink(p, task.first_head + h, state[h]);
  }
  kernels::FinishHeads(acc, r, view.n_heads, view.n_cols,
                       p.o.row<uint16_t>(task.token) + task.first_head * dim);
}

// A task is one token and as many heads as keep the whole team busy: they share
// the decoded rows.
void CpuBackend::SparseAttention(const ops::SparseAttentionParams& p) {
  const int64_t n_tokens = p.q.n_rows();
  const int64_t n_heads = p.q.dim(1);
  const int64_t n_threads = pool_->n_threads();
  const int64_t groups = std::clamp<int64_t>(
      (n_threads + n_tokens - 1) / n_tokens,
      (n_heads + kMaxHeadGroup - 1) / kMaxHeadGroup, n_heads);
  const int64_t group = (n_heads + groups - 1) / groups;
  const int64_t tasks_per_token = (n_heads + group - 1) / group;
  const bool bf16 =
      numerics_.official() && p.q.dtype() == DType::kBF16 &&
      p.o.dtype() == DType::kBF16 && kernels::HasBf16Attention(p.q.dim(2)) &&
      numerics_.attention_tile <= static_cast<int>(kernels::kTileRows);
  Parallel(n_tokens * tasks_per_token, [&](size_t i, int thread) {
    HeadTask task;
    task.token = static_cast<int64_t>(i) / tasks_per_token;
    task.first_head = static_cast<int64_t>(i) % tasks_per_token * group;
    task.n_heads = std::min(group, n_heads - task.first_head);
    if (bf16) {
      AttendInBf16(p, task, thread);
    } else {
      AttendInF32(p, task, thread);
    }
  });
}

}  // namespace belay::cpu
