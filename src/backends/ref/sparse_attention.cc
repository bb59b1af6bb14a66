// SPDX-License-Identifier: Apache-2.0
// SparseAttention: window rows, then compressed rows, with a sink.
#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/ref/backend.h"
#include "backends/ref/matmul.h"
#include "backends/ref/rows.h"

namespace belay::ref {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// The candidates of one token in order; null = masked, but keeps its place in
// the tiles.
struct Candidate {
  const std::byte* row = nullptr;
  bool compressed = false;  // which format
};

std::vector<Candidate> CandidatesOf(const ops::SparseAttentionParams& p,
                                    const ops::Span& span, int32_t i) {
  std::vector<Candidate> list;
  const int32_t position = span.start_pos + i;
  // Always window_size slots: the valid ones, oldest first, then masked ones.
  const int32_t oldest = std::max(0, position - p.window_size + 1);
  for (int32_t pos = oldest; pos < oldest + p.window_size; ++pos) {
    if (pos > position) {
      list.push_back({});
    } else if (pos >= span.start_pos) {
      list.push_back(
          {p.fresh.row<std::byte>(span.first_token + pos - span.start_pos),
           false});
    } else {
      list.push_back({WindowRow(p.window, span.slot, pos), false});
    }
  }
  if (p.compressed.ratio == 0) return list;
  const auto compressed = [&](int64_t j) {
    return PagedRow(p.compressed, p.batch, span.slot, j);
  };
  if (p.selection.empty()) {
    for (int32_t j = 0; j < (position + 1) / p.compressed.ratio; ++j) {
      list.push_back({compressed(j), true});
    }
    return list;
  }
  const int32_t* chosen = p.selection.row<int32_t>(span.first_token + i);
  for (int64_t k = 0; k < p.selection.dim(1); ++k) {
    list.push_back({chosen[k] < 0 ? nullptr : compressed(chosen[k]), true});
  }
  return list;
}

}  // namespace

void RefBackend::Attend(std::span<const float> q, float sink,
                        const Matrix& rows, const std::vector<bool>& valid,
                        std::span<float> o) const {
  const auto scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(q.size())));
  const auto tile = static_cast<int64_t>(numerics_.attention_tile);
  float m = kMinusInfinity;
  double l = 0.0;
  std::vector<double> acc(q.size());
  for (int64_t first = 0; first < rows.n_rows(); first += tile) {
    const int64_t end = std::min(first + tile, rows.n_rows());
    std::vector<float> s(static_cast<size_t>(end - first), kMinusInfinity);
    float m_new = m;
    for (int64_t c = first; c < end; ++c) {
      if (!valid[static_cast<size_t>(c)]) continue;
      float& score = s[static_cast<size_t>(c - first)];
      score = static_cast<float>(Dot(q, rows.row(c))) * scale;
      m_new = std::max(m_new, score);
    }
    if (m_new == kMinusInfinity) continue;  // nothing valid yet
    const float r = std::exp(m - m_new);
    m = m_new;
    l *= r;
    for (double& v : acc) v *= r;
    for (int64_t c = first; c < end; ++c) {
      const float p = std::exp(s[static_cast<size_t>(c - first)] - m);
      if (p == 0.0f) continue;
      l += p;
      const double weight = Round(p);  // rounded for the values only
      const std::span<const float> v = rows.row(c);
      for (size_t d = 0; d < acc.size(); ++d) acc[d] += weight * v[d];
    }
  }
  l += std::exp(sink - m);  // in the sum, never in the maximum
  for (size_t d = 0; d < acc.size(); ++d) {
    o[d] = static_cast<float>(acc[d] / l);
  }
}

void RefBackend::SparseAttention(const ops::SparseAttentionParams& p) {
  const auto head_dim = static_cast<size_t>(p.q.dim(2));
  const auto sink = p.sink.as<float>();
  for (const ops::Span& span : p.batch.spans) {
    for (int32_t i = 0; i < span.n_tokens; ++i) {
      const std::vector<Candidate> list = CandidatesOf(p, span, i);
      Matrix rows(static_cast<int64_t>(list.size()), p.q.dim(2));
      std::vector<bool> valid(list.size());
      for (size_t c = 0; c < list.size(); ++c) {
        valid[c] = list[c].row != nullptr;
        if (!valid[c]) continue;
        const ops::RowFormat& format =
            list[c].compressed ? p.compressed.format : p.window.format;
        DecodeRow(format, list[c].row, rows.row(static_cast<int64_t>(c)));
      }
      const int64_t t = span.first_token + i;
      std::vector<float> q(sink.size() * head_dim);
      std::vector<float> o(q.size());
      LoadRow(p.q, t, q);
      for (size_t h = 0; h < sink.size(); ++h) {
        Attend(std::span(q).subspan(h * head_dim, head_dim), sink[h], rows,
               valid, std::span(o).subspan(h * head_dim, head_dim));
      }
      StoreRow(o, p.o, t);
    }
  }
}

}  // namespace belay::ref
