// SPDX-License-Identifier: Apache-2.0
// Sample: as ops/sample.h says, in double from the logits on.
#include <algorithm>
#include <cmath>

#include "backends/cpu/backend.h"
#include "base/random.h"

namespace belay::cpu {
namespace {

struct Kept {
  double p;  // relative to the likeliest token, whose p is 1
  float logit;
  int32_t id;
};

bool Likelier(const Kept& a, const Kept& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
}

// Copies a row's logits and adds its corrections.
void Correct(const ops::SampleParams& p, int64_t row, float* biased) {
  std::copy_n(p.logits.row<float>(row), p.logits.dim(1), biased);
  for (const ops::LogitBias& b : p.biases) {
    if (b.row == row) biased[b.token] += b.bias;
  }
}

// The tokens that may be drawn, in order of id; their number.
int64_t Candidates(const ops::SampleParams& p, int64_t row, const float* biased,
                   Kept* kept) {
  int64_t n = 0;
  for (int64_t id = 0; id < p.logits.dim(1); ++id) {
    if (!p.allowed.empty()) {
      const auto word =
          static_cast<uint32_t>(p.allowed.row<int32_t>(row)[id / 32]);
      if (((word >> (id % 32)) & 1u) == 0) continue;
    }
    if (!std::isfinite(biased[id])) continue;
    kept[n++] = {0.0, biased[id], static_cast<int32_t>(id)};
  }
  return n;
}

double Total(const Kept* kept, int64_t n) {
  double total = 0.0;
  for (int64_t i = 0; i < n; ++i) total += kept[i].p;
  return total;
}

// How many of the first tokens sum to more than `mass` (`or_equal`: at least);
// all when none do.
int64_t PrefixWith(const Kept* kept, int64_t n, double mass, bool or_equal) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    sum += kept[i].p;
    if (sum > mass || (or_equal && sum == mass)) return i + 1;
  }
  return n;
}

int32_t SampleOne(const ops::SampleRow& row, Kept* kept, int64_t n) {
  if (n == 0) return -1;
  if (row.temperature == 0.0f) {
    return std::min_element(kept, kept + n, Likelier)->id;
  }
  if (row.top_k > 0 && row.top_k < n) {
    std::nth_element(kept, kept + row.top_k, kept + n, Likelier);
    n = row.top_k;
  }
  std::sort(kept, kept + n, Likelier);
  for (int64_t i = n - 1; i >= 0; --i) {
    kept[i].p = std::exp((static_cast<double>(kept[i].logit) - kept[0].logit) /
                         row.temperature);
  }
  if (row.top_p < 1.0f) {
    n = PrefixWith(kept, n, row.top_p * Total(kept, n), true);
  }
  while (n > 1 && kept[n - 1].p < row.min_p) --n;
  const double u = UniformFrom(row.seed, static_cast<uint64_t>(row.position));
  return kept[PrefixWith(kept, n, u * Total(kept, n), false) - 1].id;
}

}  // namespace

void CpuBackend::Sample(const ops::SampleParams& p) {
  Parallel(p.logits.n_rows(), [&](size_t r, int thread) {
    const auto row = static_cast<int64_t>(r);
    Scratch scratch = workspace_.thread(thread);
    float* biased = scratch.Take<float>(p.logits.dim(1));
    Kept* kept = scratch.Take<Kept>(p.logits.dim(1));
    Correct(p, row, biased);
    p.ids.as<int32_t>()[r] =
        SampleOne(p.rows[r], kept, Candidates(p, row, biased, kept));
  });
}

}  // namespace belay::cpu
