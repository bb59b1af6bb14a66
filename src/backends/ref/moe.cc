// SPDX-License-Identifier: Apache-2.0
// Route, RoutedExperts, SharedExpert.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "backends/ref/backend.h"
#include "backends/ref/matmul.h"

namespace belay::ref {
namespace {

// sqrt(softplus(v)), softplus(v) = v beyond torch's threshold of 20.
float GateScore(float logit) {
  const float softplus = logit > 20.0f ? logit : std::log1p(std::exp(logit));
  return std::sqrt(softplus);
}

// The k best of score + bias, highest first, ties to the lower id.
void ChooseByScore(std::span<const float> biased, std::span<int32_t> out) {
  std::vector<int32_t> order(biased.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return biased[static_cast<size_t>(a)] > biased[static_cast<size_t>(b)];
  });
  std::copy_n(order.begin(), out.size(), out.begin());
}

}  // namespace

void RefBackend::Route(const ops::RouteParams& p) {
  const Matrix logits = MatMul(numerics_, AsRef(p.gate), Load(p.x));
  Store(logits, p.logits);
  const auto k = static_cast<size_t>(p.experts.dim(1));
  for (int64_t t = 0; t < logits.n_rows(); ++t) {
    std::vector<float> score(logits.row(t).begin(), logits.row(t).end());
    for (float& s : score) s = GateScore(s);
    std::vector<float> biased = score;
    if (!p.bias.empty()) {
      for (size_t e = 0; e < biased.size(); ++e) {
        biased[e] += p.bias.as<float>()[e];
      }
    }
    if (!p.scores.empty()) StoreRow(biased, p.scores, t);

    const std::span<int32_t> chosen(p.experts.row<int32_t>(t), k);
    if (p.by == ops::RouteBy::kScore) ChooseByScore(biased, chosen);
    if (p.by == ops::RouteBy::kTable) {
      const int64_t* entry = p.table.row<int64_t>(p.token_ids.as<int32_t>()[t]);
      for (size_t i = 0; i < k; ++i) chosen[i] = static_cast<int32_t>(entry[i]);
    }
    float sum = 0.0f;
    for (const int32_t e : chosen) sum += score[static_cast<size_t>(e)];
    float* weights = p.weights.row<float>(t);
    for (size_t i = 0; i < k; ++i) {
      weights[i] = score[static_cast<size_t>(chosen[i])] / sum * p.route_scale;
    }
  }
}

// round(w2(round(silu(min(g, limit)) * clamp(u, +-limit) * weight))) for the
// rows of x; `weights` [n_rows] may be empty: no weight.
Matrix RefBackend::Expert(const RefExpert& expert, const Matrix& x,
                          std::span<const float> weights, float limit) const {
  Matrix gate = MatMul(numerics_, *expert.w1, x);
  Matrix up = MatMul(numerics_, *expert.w3, x);
  Round(gate);
  Round(up);
  for (int64_t t = 0; t < x.n_rows(); ++t) {
    const float weight =
        weights.empty() ? 1.0f : weights[static_cast<size_t>(t)];
    for (size_t i = 0; i < gate.row(t).size(); ++i) {
      const float g = std::min(gate.row(t)[i], limit);
      const float u = std::clamp(up.row(t)[i], -limit, limit);
      gate.row(t)[i] = g / (1.0f + std::exp(-g)) * u * weight;
    }
  }
  Round(gate);
  Matrix y = MatMul(numerics_, *expert.w2, gate);
  Round(y);
  return y;
}

void RefBackend::RoutedExperts(const ops::RoutedExpertsParams& p) {
  const RefExperts& experts = AsRef(p.experts);
  const Matrix x = Load(p.x);
  Matrix acc(x.n_rows(), x.n_cols());
  // Experts outside, tokens inside: every token sees its experts in ascending
  // id, and a weight is decoded once.
  for (int64_t local = 0; local < experts.n_local(); ++local) {
    std::vector<int64_t> tokens;
    std::vector<float> weights;
    for (int64_t t = 0; t < x.n_rows(); ++t) {
      for (int64_t i = 0; i < p.ids.dim(1); ++i) {
        if (p.ids.row<int32_t>(t)[i] != experts.first_expert() + local) {
          continue;
        }
        tokens.push_back(t);
        weights.push_back(p.weights.row<float>(t)[i]);
      }
    }
    if (tokens.empty()) continue;
    Matrix gathered(static_cast<int64_t>(tokens.size()), x.n_cols());
    for (size_t r = 0; r < tokens.size(); ++r) {
      const auto from = x.row(tokens[r]);
      std::copy(from.begin(), from.end(),
                gathered.row(static_cast<int64_t>(r)).begin());
    }
    const Matrix y =
        Expert(experts.expert(local), gathered, weights, p.swiglu_limit);
    for (size_t r = 0; r < tokens.size(); ++r) {
      const std::span<float> sum = acc.row(tokens[r]);
      for (size_t d = 0; d < sum.size(); ++d) {
        sum[d] += y.row(static_cast<int64_t>(r))[d];
      }
    }
  }
  Store(acc, p.acc);
}

void RefBackend::SharedExpert(const ops::SharedExpertParams& p) {
  Matrix y = Expert(AsRef(p.expert).expert(0), Load(p.x), {}, p.swiglu_limit);
  for (int64_t t = 0; t < y.n_rows(); ++t) {
    const float* acc = p.acc.row<float>(t);
    for (size_t d = 0; d < y.row(t).size(); ++d) y.row(t)[d] += acc[d];
  }
  Store(y, p.y);
}

}  // namespace belay::ref
