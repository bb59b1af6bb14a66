// SPDX-License-Identifier: Apache-2.0
// Sample: as ops/sample.h says, in double from the corrected logits on.
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

float Penalised(float logit, const ops::SampleRow& row, int32_t n_generated) {
  const float r = row.repetition_penalty;
  float l = logit > 0 ? logit / r : logit * r;
  if (n_generated == 0) return l;
  l -= row.presence_penalty;
  const float frequency =
      row.frequency_penalty * static_cast<float>(n_generated);
  return l - frequency;
}

std::vector<float> Corrected(const ops::SampleParams& p, int64_t row) {
  const float* logits = p.logits.row<float>(row);
  std::vector<float> corrected(logits, logits + p.logits.dim(1));
  const ops::SampleRow& r = p.rows[static_cast<size_t>(row)];
  std::vector<ops::SeenToken> seen(r.seen.begin(), r.seen.end());
  if (r.draft >= 0) {
    const auto same = std::find_if(
        seen.begin(), seen.end(),
        [&](const ops::SeenToken& s) { return s.token == r.draft; });
    if (same == seen.end()) {
      seen.push_back({r.draft, 1});
    } else {
      ++same->n_generated;
    }
  }
  for (const ops::SeenToken& s : seen) {
    float& l = corrected[static_cast<size_t>(s.token)];
    l = Penalised(l, r, s.n_generated);
  }
  for (const auto& [token, bias] : r.biases) {
    corrected[static_cast<size_t>(token)] += bias;
  }
  return corrected;
}

bool IsAllowed(const ops::SampleRow& row, size_t id) {
  return row.allowed.empty() || ((row.allowed[id / 64] >> (id % 64)) & 1u) != 0;
}

// Finite ones, likeliest first, ties to the lower id.
std::vector<Kept> Sorted(std::span<const float> logits) {
  std::vector<Kept> kept;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!std::isfinite(logits[id])) continue;
    kept.push_back({static_cast<int32_t>(id), logits[id], 0.0});
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

int32_t SampleOne(const ops::SampleRow& row, std::span<const float> corrected) {
  std::vector<Kept> kept = Sorted(corrected);
  std::erase_if(kept, [&](const Kept& k) {
    return !IsAllowed(row, static_cast<size_t>(k.id));
  });
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

void LogProbabilities(const ops::SampleParams& p, int64_t r, int32_t id) {
  const auto n_top = static_cast<size_t>(p.rows[static_cast<size_t>(r)].n_top);
  const std::span<const float> logits(p.logits.row<float>(r),
                                      static_cast<size_t>(p.logits.dim(1)));
  const std::vector<Kept> sorted = Sorted(logits);
  const double max = sorted[0].logit;
  double sum = 0.0;
  for (const float l : logits) {
    if (std::isfinite(l)) sum += std::exp(l - max);
  }
  const auto logprob = [&](float l) {
    return static_cast<float>(l - max - std::log(sum));
  };
  *p.logprobs.row<float>(r) = logprob(logits[static_cast<size_t>(id)]);
  for (size_t i = 0; i < n_top; ++i) {
    const bool exists = i < sorted.size();
    p.top_ids.row<int32_t>(r)[i] = exists ? sorted[i].id : -1;
    p.top_logprobs.row<float>(r)[i] = exists ? logprob(sorted[i].logit) : 0.0f;
  }
}

}  // namespace

void RefBackend::Sample(const ops::SampleParams& p) {
  for (int64_t r = 0; r < p.logits.n_rows(); ++r) {
    const ops::SampleRow& row = p.rows[static_cast<size_t>(r)];
    const int32_t id = SampleOne(row, Corrected(p, r));
    p.ids.as<int32_t>()[static_cast<size_t>(r)] = id;
    if (row.n_top >= 0 && id >= 0) LogProbabilities(p, r, id);
  }
}

}  // namespace belay::ref
