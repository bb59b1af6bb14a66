// SPDX-License-Identifier: Apache-2.0
// IndexerSelect: which compressed rows a token attends to.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "backends/ref/backend.h"
#include "backends/ref/matmul.h"
#include "backends/ref/quant.h"
#include "backends/ref/rope.h"
#include "backends/ref/rows.h"

namespace belay::ref {
namespace {

// The best `out.size()` rows, highest score first, ties to the lower row; -1
// where there are fewer.
void SelectTop(std::span<const float> scores, std::span<int32_t> out) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
  });
  std::fill(out.begin(), out.end(), -1);
  std::copy_n(order.begin(), std::min(order.size(), out.size()), out.begin());
}

}  // namespace

// score(j) = round(sum_h round(relu(round(q_h . k_j)) * w_h)).
std::vector<float> RefBackend::IndexScores(const Matrix& q,
                                           std::span<const float> w,
                                           const Matrix& keys,
                                           int64_t n_visible) const {
  std::vector<float> scores;
  for (int64_t j = 0; j < n_visible; ++j) {
    double sum = 0.0;
    for (int64_t h = 0; h < q.n_rows(); ++h) {
      const float s = Round(static_cast<float>(Dot(q.row(h), keys.row(j))));
      sum += Round(std::max(s, 0.0f) * w[static_cast<size_t>(h)]);
    }
    scores.push_back(Round(static_cast<float>(sum)));
  }
  return scores;
}

void RefBackend::IndexerSelect(const ops::IndexerSelectParams& p) {
  const int64_t n_heads = p.n_index_heads;
  const int64_t dim = p.index_dim;
  Matrix q = MatMul(numerics_, AsRef(p.wq_b), Load(p.qr));
  Round(q);
  Matrix w = MatMul(numerics_, AsRef(p.weights_proj), Load(p.x));
  Round(w);
  const auto w_scale = static_cast<float>(
      1.0 / std::sqrt(static_cast<double>(dim) * static_cast<double>(n_heads)));

  for (const ops::Span& span : p.batch.spans) {
    const int64_t n_rows = (span.start_pos + span.n_tokens) / p.keys.ratio;
    Matrix keys(n_rows, dim);
    for (int64_t j = 0; j < n_rows; ++j) {
      DecodeRow(p.keys.format, PagedRow(p.keys, p.batch, span.slot, j),
                keys.row(j));
    }
    for (int32_t i = 0; i < span.n_tokens; ++i) {
      const int32_t t = span.first_token + i;
      const int32_t position = span.start_pos + i;
      const Rotation rotation(p.rope, position);
      Matrix heads(n_heads, dim);
      for (int64_t h = 0; h < n_heads; ++h) {
        const std::span<float> head = heads.row(h);
        std::copy_n(q.row(t).begin() + h * dim, dim, head.begin());
        rotation.Apply(head);
        Round(head);
        Hadamard(head);
        Round(head);
        if (numerics_.official()) {
          Fp4ActQuantInPlace(head, numerics_.index_group);
        }
      }
      for (float& v : w.row(t)) v = Round(v * w_scale);
      const std::vector<float> scores =
          IndexScores(heads, w.row(t), keys, (position + 1) / p.keys.ratio);
      SelectTop(scores, {p.selection.row<int32_t>(t),
                         static_cast<size_t>(p.selection.dim(1))});
      if (p.scores.empty()) continue;
      float* out = p.scores.row<float>(t);
      std::fill_n(out, p.scores.dim(1),
                  -std::numeric_limits<float>::infinity());
      std::copy(scores.begin(), scores.end(), out);
    }
  }
}

}  // namespace belay::ref
