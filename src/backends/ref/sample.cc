// SPDX-License-Identifier: Apache-2.0
// Sample: as ops/sample.h says, in double from the logits on.
#include <algorithm>
#include <cmath>

#include "backends/ref/backend.h"
#include "base/random.h"

namespace belay::ref {
namespace {

struct Kept {
  int32_t id = 0;
  float logit = 0.0f;
  double p = 0.0;  // relative to the likeliest token, whose p is 1
};

// The tokens that may be drawn, likeliest first, ties to the lower id.
std::vector<Kept> Candidates(const ops::SampleParams& p, int64_t row) {
  const float* logits = p.logits.row<float>(row);
  std::vector<float> biased(logits, logits + p.logits.dim(1));
  for (const ops::LogitBias& b : p.biases) {
    if (b.row == row) biased[static_cast<size_t>(b.token)] += b.bias;
  }
  std::vector<Kept> kept;
  for (size_t id = 0; id < biased.size(); ++id) {
    if (!p.allowed.empty()) {
      const auto word =
          static_cast<uint32_t>(p.allowed.row<int32_t>(row)[id / 32]);
      if (((word >> (id % 32)) & 1u) == 0) continue;
    }
    if (!std::isfinite(biased[id])) continue;
    kept.push_back({static_cast<int32_t>(id), biased[id], 0.0});
  }
  std::stable_sort(kept.begin(), kept.end(), [](const Kept& a, const Kept& b) {
    return a.logit > b.logit;
  });
  return kept;
}

double Total(std::span<const Kept> kept) {
  double total = 0.0;
  for (const Kept& k : kept) total += k.p;
  return total;
}

// How many of the first tokens sum to more than `mass` (`or_equal`: at least);
// all when none do.
size_t PrefixWith(std::span<const Kept> kept, double mass, bool or_equal) {
  double sum = 0.0;
  for (size_t i = 0; i < kept.size(); ++i) {
    sum += kept[i].p;
    if (sum > mass || (or_equal && sum == mass)) return i + 1;
  }
  return kept.size();
}

int32_t SampleOne(const ops::SampleRow& row, std::vector<Kept> kept) {
  if (kept.empty()) return -1;
  if (row.temperature == 0.0f) return kept[0].id;
  for (Kept& k : kept) {
    k.p = std::exp((static_cast<double>(k.logit) - kept[0].logit) /
                   row.temperature);
  }
  if (row.top_k > 0 && static_cast<size_t>(row.top_k) < kept.size()) {
    kept.resize(static_cast<size_t>(row.top_k));
  }
  if (row.top_p < 1.0f) {
    kept.resize(PrefixWith(kept, row.top_p * Total(kept), true));
  }
  while (kept.size() > 1 && kept.back().p < row.min_p) kept.pop_back();
  const auto counter = static_cast<uint64_t>(row.position);
  const double u = UniformFrom(row.seed, counter);
  return kept[PrefixWith(kept, u * Total(kept), false) - 1].id;
}

}  // namespace

void RefBackend::Sample(const ops::SampleParams& p) {
  for (int64_t r = 0; r < p.logits.n_rows(); ++r) {
    p.ids.as<int32_t>()[static_cast<size_t>(r)] =
        SampleOne(p.rows[static_cast<size_t>(r)], Candidates(p, r));
  }
}

}  // namespace belay::ref
