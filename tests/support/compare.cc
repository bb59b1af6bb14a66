// SPDX-License-Identifier: Apache-2.0
#include "support/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "base/float_formats.h"

namespace belay::test {
namespace {

std::vector<double> LogSoftmax(const float* x, int64_t n) {
  const double max = *std::max_element(x, x + n);
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += std::exp(x[i] - max);
  std::vector<double> y(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    y[static_cast<size_t>(i)] = x[i] - max - std::log(sum);
  }
  return y;
}

int64_t ArgMax(const float* x, int64_t n) {
  return std::max_element(x, x + n) - x;
}

// How far the best value is above the second best.
float Lead(const float* x, int64_t n) {
  float best = -std::numeric_limits<float>::infinity();
  float second = best;
  for (int64_t i = 0; i < n; ++i) {
    second = std::max(second, std::min(best, x[i]));
    best = std::max(best, x[i]);
  }
  return best - second;
}

}  // namespace

LogitDiff CompareLogits(ConstTensorView golden, ConstTensorView got) {
  BELAY_CHECK(golden.n_elements() == got.n_elements());
  const int64_t vocab = golden.dim(golden.shape().rank() - 1);
  LogitDiff diff;
  diff.n_rows = golden.n_elements() / vocab;
  const float* g = golden.as<float>().data();
  const float* t = got.as<float>().data();
  int64_t n_same = 0, n_clear = 0, n_clear_same = 0;
  for (int64_t r = 0; r < diff.n_rows; ++r, g += vocab, t += vocab) {
    if (!std::all_of(t, t + vocab, [](float v) { return std::isfinite(v); })) {
      diff.max_abs = std::numeric_limits<double>::infinity();
      return diff;
    }
    for (int64_t i = 0; i < vocab; ++i) {
      diff.max_abs =
          std::max(diff.max_abs, std::abs(static_cast<double>(g[i]) - t[i]));
    }
    const std::vector<double> lg = LogSoftmax(g, vocab);
    const std::vector<double> lt = LogSoftmax(t, vocab);
    double kl = 0;
    for (size_t i = 0; i < lg.size(); ++i) {
      kl += std::exp(lg[i]) * (lg[i] - lt[i]);
    }
    diff.kl_mean += kl / static_cast<double>(diff.n_rows);
    diff.kl_max = std::max(diff.kl_max, kl);
    const bool same = ArgMax(g, vocab) == ArgMax(t, vocab);
    n_same += same;
    if (Lead(g, vocab) > 2e-4f) {
      ++n_clear;
      n_clear_same += same;
    }
  }
  diff.top1 = static_cast<double>(n_same) / static_cast<double>(diff.n_rows);
  if (n_clear > 0) {
    diff.top1_clear =
        static_cast<double>(n_clear_same) / static_cast<double>(n_clear);
  }
  return diff;
}

double EqualExpertSets(ConstTensorView golden, ConstTensorView got,
                       ConstTensorView margin, float floor) {
  BELAY_CHECK(golden.shape() == got.shape());
  const int64_t k = golden.dim(golden.shape().rank() - 1);
  const int64_t n_sets = golden.n_elements() / k;
  BELAY_CHECK(margin.empty() || margin.n_elements() == n_sets);
  const int32_t* g = golden.as<int32_t>().data();
  const int32_t* t = got.as<int32_t>().data();
  int64_t n_looked = 0, n_equal = 0;
  for (int64_t i = 0; i < n_sets; ++i, g += k, t += k) {
    if (!margin.empty() && !(margin.as<float>().data()[i] > floor)) continue;
    ++n_looked;
    n_equal +=
        std::multiset<int32_t>(g, g + k) == std::multiset<int32_t>(t, t + k);
  }
  BELAY_CHECK(n_looked > 0);
  return static_cast<double>(n_equal) / static_cast<double>(n_looked);
}

HiddenDiff CompareHidden(ConstTensorView golden, ConstTensorView got) {
  BELAY_CHECK(golden.dtype() == DType::kBF16 && got.dtype() == DType::kBF16);
  BELAY_CHECK(golden.shape() == got.shape());
  HiddenDiff diff;
  double d2_all = 0, g2_all = 0;
  for (int64_t t = 0; t < golden.n_rows(); ++t) {
    double d2 = 0, g2 = 0;
    for (int64_t i = 0; i < golden.row_elements(); ++i) {
      const double g = F32FromBf16(golden.row<uint16_t>(t)[i]);
      const double d = g - F32FromBf16(got.row<uint16_t>(t)[i]);
      d2 += d * d;
      g2 += g * g;
    }
    diff.worst_token = std::max(diff.worst_token, std::sqrt(d2 / g2));
    diff.exact += d2 == 0;
    d2_all += d2;
    g2_all += g2;
  }
  diff.exact /= static_cast<double>(golden.n_rows());
  diff.rel_rms = std::sqrt(d2_all / g2_all);
  return diff;
}

}  // namespace belay::test
