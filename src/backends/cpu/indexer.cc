// SPDX-License-Identifier: Apache-2.0
// IndexerSelect: which compressed rows a token attends to.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/backend.h"
#include "backends/cpu/rows.h"
#include "kernels/attention.h"
#include "kernels/quantize.h"
#include "kernels/vector.h"

namespace belay::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// Keys that are decoded at a time, and the rows of one scoring task.
constexpr int64_t kKeyTile = 64;
constexpr int64_t kRowsPerTask = 512;

struct Scored {
  float score;
  int32_t row;
};

bool Better(const Scored& a, const Scored& b) {
  return a.score > b.score || (a.score == b.score && a.row < b.row);
}

// The best `k` rows, best first, ties to the lower row; -1 where there are
// fewer. A heap of k with the worst on top: rows come in ascending order, so an
// equal score never displaces.
void SelectTop(const float* scores, int64_t n, int64_t k, Scored* heap,
               int32_t* out) {
  const int64_t n_first = std::min(n, k);
  for (int64_t j = 0; j < n_first; ++j) {
    heap[j] = {scores[j], static_cast<int32_t>(j)};
  }
  std::make_heap(heap, heap + n_first, Better);
  for (int64_t j = n_first; j < n; ++j) {
    if (!(scores[j] > heap[0].score)) continue;
    std::pop_heap(heap, heap + n_first, Better);
    heap[n_first - 1] = {scores[j], static_cast<int32_t>(j)};
    std::push_heap(heap, heap + n_first, Better);
  }
  std::sort_heap(heap, heap + n_first, Better);
  for (int64_t i = 0; i < k; ++i) out[i] = i < n_first ? heap[i].row : -1;
}

}  // namespace

// The heads of one token, rotated, transformed, quantised; and their weights.
void CpuBackend::PrepareQuery(const ops::IndexerSelectParams& p, int64_t t,
                              float* q, float* w) const {
  const int64_t dim = p.index_dim;
  const auto n = static_cast<size_t>(dim);
  const auto positions = p.batch.positions.as<int32_t>();
  const Rotation rotation(p.rope, positions[static_cast<size_t>(t)]);
  const auto scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
  const auto w_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim) *
                                         static_cast<double>(p.n_index_heads)));
  for (int64_t h = 0; h < p.n_index_heads; ++h) {
    float* head = q + h * dim;
    Round(head, dim);
    rotation.Apply(head, dim);
    Round(head, dim);
    kernels::Hadamard(head, n, scale);
    Round(head, dim);
    if (numerics_.official()) {
      kernels::QuantizeE2m1(head, n, static_cast<size_t>(numerics_.index_group),
                            head);
    }
    w[h] = Round(Round(w[h]) * w_scale);
  }
}

// score(j) = round(sum_h round(relu(round(q_h . k_j)) * w_h)), heads in order.
void CpuBackend::ScoreRows(const ops::IndexerSelectParams& p,
                           const ScoreTask& task, int thread) const {
  const int64_t dim = p.index_dim;
  const ops::Span& span = SpanOf(p.batch, task.token);
  Scratch scratch = workspace_.thread(thread);
  float* keys = scratch.Take<float>(kKeyTile * dim);
  float* dots = scratch.Take<float>(kKeyTile);
  for (int64_t first = task.begin; first < task.end; first += kKeyTile) {
    const int64_t n = std::min(kKeyTile, task.end - first);
    for (int64_t j = 0; j < n; ++j) {
      DecodeRow(p.keys.format, PagedRow(p.keys, p.batch, span.slot, first + j),
                keys + j * dim);
    }
    const kernels::RowsView view = {keys, static_cast<size_t>(dim),
                                    static_cast<size_t>(n),
                                    static_cast<size_t>(dim)};
    float* scores = task.scores + first;
    std::fill_n(scores, n, 0.0f);
    for (int64_t h = 0; h < p.n_index_heads; ++h) {
      kernels::DotRows(task.q + h * dim, view, dots);
      kernels::AddIndexScores(dots, static_cast<size_t>(n), task.w[h],
                              numerics_.official(), scores);
    }
    Round(scores, n);
  }
}

void CpuBackend::IndexerSelect(const ops::IndexerSelectParams& p) {
  const int64_t n_tokens = p.x.n_rows();
  const int64_t n_heads = p.n_index_heads;
  const int64_t dim = p.index_dim;
  const int64_t k = p.selection.dim(1);
  Scratch shared = workspace_.shared();
  float* q = shared.Take<float>(n_tokens * n_heads * dim);
  float* w = shared.Take<float>(n_tokens * n_heads);
  Project(AsCpu(p.wq_b), p.qr,
          TensorView(q, DType::kF32, {n_tokens, n_heads * dim}));
  Project(AsCpu(p.weights_proj), p.x,
          TensorView(w, DType::kF32, {n_tokens, n_heads}));
  Parallel(n_tokens, [&](size_t i, int) {
    const auto t = static_cast<int64_t>(i);
    PrepareQuery(p, t, q + t * n_heads * dim, w + t * n_heads);
  });

  const auto positions = p.batch.positions.as<int32_t>();
  const auto visible = [&](int64_t t) -> int64_t {
    return (positions[static_cast<size_t>(t)] + 1) / p.keys.ratio;
  };
  int64_t most = 1;
  for (int64_t t = 0; t < n_tokens; ++t) most = std::max(most, visible(t));
  // As many tokens at a time as the score buffer holds.
  const int64_t n_group = std::min(
      n_tokens, std::max<int64_t>(1, workspace_.index_score_floats() / most));
  float* scores = shared.Take<float>(n_group * most);
  const int64_t tiles = (most + kRowsPerTask - 1) / kRowsPerTask;

  for (int64_t first = 0; first < n_tokens; first += n_group) {
    const int64_t n = std::min(n_group, n_tokens - first);
    Parallel(n * tiles, [&](size_t task, int thread) {
      const int64_t i = static_cast<int64_t>(task) / tiles;
      const int64_t begin = static_cast<int64_t>(task) % tiles * kRowsPerTask;
      const int64_t end = std::min(begin + kRowsPerTask, visible(first + i));
      const int64_t t = first + i;
      ScoreRows(p,
                {t, begin, end, q + t * n_heads * dim, w + t * n_heads,
                 scores + i * most},
                thread);
    });
    Parallel(n, [&](size_t i, int thread) {
      const auto at = static_cast<int64_t>(i);
      const int64_t t = first + at;
      const int64_t n_rows = visible(t);
      auto* heap = workspace_.thread(thread).Take<Scored>(k);
      SelectTop(scores + at * most, n_rows, k, heap,
                p.selection.row<int32_t>(t));
      if (p.scores.empty()) return;
      float* out = p.scores.row<float>(t);
      std::fill_n(out, p.scores.dim(1), kMinusInfinity);
      std::copy_n(scores + at * most, n_rows, out);
    });
  }
}

}  // namespace belay::cpu
