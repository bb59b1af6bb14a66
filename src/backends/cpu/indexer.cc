// SPDX-License-Identifier: Apache-2.0
// IndexerSelect: which compressed rows a token attends to.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/backend.h"
#include "backends/cpu/rows.h"
#include "kernels/attention.h"
#include "kernels/attention_bf16.h"
#include "kernels/quantize.h"
#include "kernels/vector.h"

namespace belay::cpu {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// Keys that are decoded at a time, and the rows and tokens of one scoring task.
constexpr auto kKeyTile = static_cast<int64_t>(kernels::kTileRows);
constexpr int64_t kRowsPerTask = 512;
constexpr int64_t kTokensPerTask = 16;

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

struct IndexQueries {
  float* q = nullptr;       // [n_tokens, n_index_heads, index_dim]
  uint16_t* q16 = nullptr;  // the same in bf16, or null
  float* w = nullptr;       // [n_tokens, n_index_heads]
  float* scores = nullptr;  // [tokens of a group, stride] by row
  int64_t stride = 0;
};

// Tokens [first, first + n), whose scores start at row `at` of `scores`, and
// rows [begin, end).
struct ScoreTask {
  int64_t first = 0;
  int64_t n = 0;
  int64_t at = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

namespace {

// How many compressed rows a token sees.
int64_t Visible(const ops::IndexerSelectParams& p, int64_t t) {
  const auto positions = p.batch.positions.as<int32_t>();
  return (positions[static_cast<size_t>(t)] + 1) / p.keys.ratio;
}

// Decodes rows [first, first + n) of a slot.
void DecodeKeys(const ops::IndexerSelectParams& p, int32_t slot, int64_t first,
                int64_t n, float* keys) {
  for (int64_t j = 0; j < n; ++j) {
    DecodeRow(p.keys.format, PagedRow(p.keys, p.batch, slot, first + j),
              keys + j * p.index_dim);
  }
}

}  // namespace

// The heads of one token, rotated, transformed, quantised; and their weights.
void CpuBackend::PrepareQuery(const ops::IndexerSelectParams& p, int64_t t,
                              const IndexQueries& queries) const {
  const int64_t dim = p.index_dim;
  const auto n = static_cast<size_t>(dim);
  const auto positions = p.batch.positions.as<int32_t>();
  const Rotation rotation(p.rope, positions[static_cast<size_t>(t)]);
  const auto scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
  const auto w_scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim) *
                                         static_cast<double>(p.n_index_heads)));
  for (int64_t h = t * p.n_index_heads; h < (t + 1) * p.n_index_heads; ++h) {
    float* head = queries.q + h * dim;
    Round(head, dim);
    rotation.Apply(head, dim);
    Round(head, dim);
    kernels::Hadamard(head, n, scale);
    Round(head, dim);
    if (numerics_.official()) {
      kernels::QuantizeE2m1(head, n, static_cast<size_t>(numerics_.index_group),
                            head);
    }
    if (queries.q16 != nullptr) {
      kernels::F32ToBf16(head, n, queries.q16 + h * dim);
    }
    queries.w[h] = Round(Round(queries.w[h]) * w_scale);
  }
}

// score(j) = round(sum_h round(relu(round(q_h . k_j)) * w_h)), heads in order.
void CpuBackend::ScoreInF32(const ops::IndexerSelectParams& p,
                            const IndexQueries& queries, const ScoreTask& task,
                            int thread) const {
  const int64_t dim = p.index_dim;
  Scratch scratch = workspace_.thread(thread);
  float* keys = scratch.Take<float>(kKeyTile * dim);
  float* dots = scratch.Take<float>(kKeyTile);
  for (int64_t i = 0; i < task.n; ++i) {
    const int64_t t = task.first + i;
    const int64_t end = std::min(task.end, Visible(p, t));
    for (int64_t first = task.begin; first < end; first += kKeyTile) {
      const int64_t n = std::min(kKeyTile, end - first);
      DecodeKeys(p, SpanOf(p.batch, t).slot, first, n, keys);
      const kernels::RowsView view = {keys, static_cast<size_t>(dim),
                                      static_cast<size_t>(n),
                                      static_cast<size_t>(dim)};
      float* scores = queries.scores + (task.at + i) * queries.stride + first;
      std::fill_n(scores, n, 0.0f);
      for (int64_t h = t * p.n_index_heads; h < (t + 1) * p.n_index_heads;
           ++h) {
        kernels::DotRows(queries.q + h * dim, view, dots);
        kernels::AddIndexScores(dots, static_cast<size_t>(n), queries.w[h],
                                numerics_.official(), scores);
      }
      Round(scores, n);
    }
  }
}

// The same in official numerics, whose rows and queries are exact in bf16. All
// tokens of a slot use a decoded tile; rows that a token does not see get
// scores that nobody reads.
void CpuBackend::ScoreInBf16(const ops::IndexerSelectParams& p,
                             const IndexQueries& queries, const ScoreTask& task,
                             int thread) const {
  const int64_t dim = p.index_dim;
  Scratch scratch = workspace_.thread(thread);
  float* keys = scratch.Take<float>(kKeyTile * dim);
  uint16_t* tile = scratch.Take<uint16_t>(kKeyTile * dim);
  const int64_t end_token = task.first + task.n;
  for (int64_t first = task.begin; first < task.end; first += kKeyTile) {
    for (int64_t t = task.first; t < end_token;) {
      const ops::Span& span = SpanOf(p.batch, t);
      const int64_t end = std::min<int64_t>(
          end_token, int64_t{span.first_token} + span.n_tokens);
      // The last token of a span sees most.
      const int64_t n = std::min(kKeyTile, Visible(p, end - 1) - first);
      if (n > 0) {
        DecodeKeys(p, span.slot, first, n, keys);
        kernels::PackIndexTile(keys, static_cast<size_t>(n),
                               static_cast<size_t>(dim), tile);
      }
      for (; t < end; ++t) {
        if (Visible(p, t) <= first) continue;
        kernels::IndexScores(
            {.tile = tile,
             .n_cols = static_cast<size_t>(dim),
             .q = queries.q16 + t * p.n_index_heads * dim,
             .weights = queries.w + t * p.n_index_heads,
             .n_heads = static_cast<size_t>(p.n_index_heads),
             .scores = queries.scores +
                       (task.at + t - task.first) * queries.stride + first});
      }
    }
  }
}

void CpuBackend::IndexerSelect(const ops::IndexerSelectParams& p) {
  const int64_t n_tokens = p.x.n_rows();
  const int64_t n_heads = p.n_index_heads;
  const int64_t dim = p.index_dim;
  const int64_t k = p.selection.dim(1);
  const bool bf16 = numerics_.official() && kernels::HasBf16Attention(dim);
  Scratch shared = workspace_.shared();
  IndexQueries queries;
  queries.q = shared.Take<float>(n_tokens * n_heads * dim);
  queries.w = shared.Take<float>(n_tokens * n_heads);
  if (bf16) queries.q16 = shared.Take<uint16_t>(n_tokens * n_heads * dim);
  Project(AsCpu(p.wq_b), p.qr,
          TensorView(queries.q, DType::kF32, {n_tokens, n_heads * dim}));
  Project(AsCpu(p.weights_proj), p.x,
          TensorView(queries.w, DType::kF32, {n_tokens, n_heads}));
  Parallel(n_tokens, [&](size_t t, int) {
    PrepareQuery(p, static_cast<int64_t>(t), queries);
  });

  int64_t most = 1;
  for (int64_t t = 0; t < n_tokens; ++t) most = std::max(most, Visible(p, t));
  // As many tokens at a time as the score buffer holds, in whole tiles.
  queries.stride = (most + kKeyTile - 1) / kKeyTile * kKeyTile;
  const int64_t n_group = std::min(
      n_tokens,
      std::max<int64_t>(1, workspace_.index_score_floats() / queries.stride));
  queries.scores = shared.Take<float>(n_group * queries.stride);
  const int64_t tiles = (most + kRowsPerTask - 1) / kRowsPerTask;

  for (int64_t first = 0; first < n_tokens; first += n_group) {
    const int64_t n = std::min(n_group, n_tokens - first);
    const int64_t blocks = (n + kTokensPerTask - 1) / kTokensPerTask;
    Parallel(blocks * tiles, [&](size_t i, int thread) {
      ScoreTask task;
      task.at = static_cast<int64_t>(i) / tiles * kTokensPerTask;
      task.first = first + task.at;
      task.n = std::min(kTokensPerTask, n - task.at);
      task.begin = static_cast<int64_t>(i) % tiles * kRowsPerTask;
      task.end = std::min(task.begin + kRowsPerTask, most);
      if (bf16) {
        ScoreInBf16(p, queries, task, thread);
      } else {
        ScoreInF32(p, queries, task, thread);
      }
    });
    Parallel(n, [&](size_t i, int thread) {
      const auto at = static_cast<int64_t>(i);
      const int64_t t = first + at;
      const int64_t n_rows = Visible(p, t);
      const float* scores = queries.scores + at * queries.stride;
      auto* heap = workspace_.thread(thread).Take<Scored>(k);
      SelectTop(scores, n_rows, k, heap, p.selection.row<int32_t>(t));
      if (p.scores.empty()) return;
      float* out = p.scores.row<float>(t);
      std::fill_n(out, p.scores.dim(1), kMinusInfinity);
      std::copy_n(scores, n_rows, out);
    });
  }
}

}  // namespace belay::cpu
