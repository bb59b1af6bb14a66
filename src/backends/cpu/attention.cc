// SPDX-License-Identifier: Apache-2.0
// SparseAttention: straight from cache rows, which are decoded tile by tile.
#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "backends/cpu/backend.h"
#include "backends/cpu/rows.h"

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

 private:
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

}  // namespace

void CpuBackend::AttendToken(const ops::SparseAttentionParams& p, int64_t t,
                             int64_t first_head, int64_t n_heads,
                             int thread) const {
  const int64_t dim = p.q.dim(2);
  const int64_t tile = numerics_.attention_tile;
  Scratch scratch = workspace_.thread(thread);
  float* rows = scratch.Take<float>(tile * dim);
  float* s = scratch.Take<float>(tile);
  float* q = scratch.Take<float>(n_heads * dim);
  float* acc = scratch.Take<float>(n_heads * dim);
  auto* state = scratch.Take<kernels::OnlineSoftmax>(n_heads);
  Load(p.q, t, first_head * dim, n_heads * dim, q);
  std::fill_n(acc, n_heads * dim, 0.0f);
  std::fill_n(state, n_heads, kernels::OnlineSoftmax{kMinusInfinity, 0.0f});
  const auto scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));

  const Candidates candidates(p, t);
  for (int64_t first = 0; first < candidates.n(); first += tile) {
    // Masked candidates keep their place in the tiles but weigh exactly 0, so
    // they are left out of the arithmetic.
    int64_t n = 0;
    const int64_t end = std::min(first + tile, candidates.n());
    for (int64_t c = first; c < end; ++c) {
      const ops::RowFormat* format = nullptr;
      const std::byte* row = candidates.Row(c, &format);
      if (row != nullptr) DecodeRow(*format, row, rows + dim * n++);
    }
    if (n == 0) continue;
    const kernels::RowsView view = {rows, static_cast<size_t>(dim),
                                    static_cast<size_t>(n),
                                    static_cast<size_t>(dim)};
    for (int64_t h = 0; h < n_heads; ++h) {
      kernels::DotRows(q + h * dim, view, s);
      for (int64_t j = 0; j < n; ++j) s[j] *= scale;
      kernels::SoftmaxTile({.rows = view,
                            .s = s,
                            .round_p = numerics_.official(),
                            .state = state + h,
                            .acc = acc + h * dim});
    }
  }

  const auto sink = p.sink.as<float>();
  for (int64_t h = 0; h < n_heads; ++h) {
    // The sink joins the sum, never the maximum. Without any candidate the
    // maximum is -inf and the quotient 0 / inf.
    const float total =
        state[h].sum +
        std::exp(sink[static_cast<size_t>(first_head + h)] - state[h].max);
    float* o = acc + h * dim;
    for (int64_t d = 0; d < dim; ++d) o[d] /= total;
  }
  Store(acc, n_heads * dim, p.o, t, first_head * dim);
}

// A task is one token and as many heads as keep the whole team busy: they share
// the decoded rows.
void CpuBackend::SparseAttention(const ops::SparseAttentionParams& p) {
  const int64_t n_tokens = p.q.n_rows();
  const int64_t n_heads = p.q.dim(1);
  const int64_t wanted = int64_t{2} * pool_->n_threads();
  const int64_t groups = std::clamp<int64_t>(
      (wanted + n_tokens - 1) / n_tokens,
      (n_heads + kMaxHeadGroup - 1) / kMaxHeadGroup, n_heads);
  const int64_t group = (n_heads + groups - 1) / groups;
  const int64_t tasks_per_token = (n_heads + group - 1) / group;
  Parallel(n_tokens * tasks_per_token, [&](size_t task, int thread) {
    const int64_t t = static_cast<int64_t>(task) / tasks_per_token;
    const int64_t first = static_cast<int64_t>(task) % tasks_per_token * group;
    AttendToken(p, t, first, std::min(group, n_heads - first), thread);
  });
}

}  // namespace belay::cpu
