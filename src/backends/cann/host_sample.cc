// SPDX-License-Identifier: Apache-2.0
#include "backends/cann/host_sample.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace belay::cann {
namespace {

struct Token {
  int32_t id = 0;
  float logit = 0;
  double p = 0;  // relative to the likeliest
};

float AfterPenalties(float logit, const ops::SampleRow& row,
                     int32_t n_generated) {
  float l = logit > 0 ? logit / row.repetition_penalty
                      : logit * row.repetition_penalty;
  if (n_generated > 0) {
    l -= row.presence_penalty;
    const float by = row.frequency_penalty * static_cast<float>(n_generated);
    l -= by;
  }
  return l;
}

void Correct(const ops::SampleRow& row, std::span<float> logits) {
  bool has_draft = false;
  for (const ops::SeenToken& seen : row.seen) {
    const bool drafted = seen.token == row.draft;
    has_draft = has_draft || drafted;
    float& l = logits[static_cast<size_t>(seen.token)];
    l = AfterPenalties(l, row, seen.n_generated + (drafted ? 1 : 0));
  }
  if (row.draft >= 0 && !has_draft) {
    float& l = logits[static_cast<size_t>(row.draft)];
    l = AfterPenalties(l, row, 1);
  }
  for (const auto& [token, bias] : row.biases) {
    logits[static_cast<size_t>(token)] += bias;
  }
}

// Finite and wanted ones, likeliest first, ties to the lower id.
template <typename Wanted>
std::vector<Token> Ranked(std::span<const float> logits, const Wanted& wanted) {
  std::vector<Token> list;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!std::isfinite(logits[id]) || !wanted(id)) continue;
    list.push_back({static_cast<int32_t>(id), logits[id], 0});
  }
  std::stable_sort(
      list.begin(), list.end(),
      [](const Token& a, const Token& b) { return a.logit > b.logit; });
  return list;
}

double MassOf(std::span<const Token> list) {
  double mass = 0;
  for (const Token& token : list) mass += token.p;
  return mass;
}

// The shortest run of first tokens with at least (or, `beyond`, more than) the
// mass.
size_t RunWith(std::span<const Token> list, double mass, bool beyond) {
  double sum = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    sum += list[i].p;
    if (beyond ? sum > mass : sum >= mass) return i + 1;
  }
  return list.size();
}

int32_t Draw(const ops::SampleRow& row, std::vector<Token> list) {
  if (list.empty()) return -1;
  if (row.temperature == 0.0f) return list.front().id;
  const double top = list.front().logit;
  for (Token& token : list) {
    token.p =
        std::exp((static_cast<double>(token.logit) - top) / row.temperature);
  }
  if (row.top_k > 0 && static_cast<size_t>(row.top_k) < list.size()) {
    list.resize(static_cast<size_t>(row.top_k));
  }
  if (row.top_p < 1.0f) {
    list.resize(RunWith(list, row.top_p * MassOf(list), false));
  }
  while (list.size() > 1 && list.back().p < row.min_p) list.pop_back();
  const double u = UniformFrom(row.seed, static_cast<uint64_t>(row.position));
  return list[RunWith(list, u * MassOf(list), true) - 1].id;
}

void AddLogProbabilities(const ops::SampleRow& row,
                         std::span<const float> logits, HostSampled* out) {
  const std::vector<Token> ranked = Ranked(logits, [](size_t) { return true; });
  const double top = ranked.front().logit;
  double sum = 0;
  for (const float l : logits) {
    if (std::isfinite(l)) sum += std::exp(l - top);
  }
  const auto logprob = [&](float l) {
    return static_cast<float>(l - top - std::log(sum));
  };
  out->logprob = logprob(logits[static_cast<size_t>(out->id)]);
  for (size_t i = 0; i < static_cast<size_t>(row.n_top); ++i) {
    const bool there = i < ranked.size();
    out->top_ids.push_back(there ? ranked[i].id : -1);
    out->top_logprobs.push_back(there ? logprob(ranked[i].logit) : 0.0f);
  }
}

}  // namespace

bool IsPlainGreedy(const ops::SampleRow& row) {
  return row.temperature == 0.0f && row.n_top < 0 && row.seen.empty() &&
         row.draft < 0 && row.biases.empty() && row.allowed.empty();
}

HostSampled SampleOnHost(const ops::SampleRow& row,
                         std::span<const float> logits) {
  std::vector<float> corrected(logits.begin(), logits.end());
  Correct(row, corrected);
  const auto allowed = [&](size_t id) {
    return row.allowed.empty() ||
           ((row.allowed[id / 64] >> (id % 64)) & 1u) != 0;
  };
  HostSampled out;
  out.id = Draw(row, Ranked(corrected, allowed));
  if (row.n_top >= 0 && out.id >= 0) AddLogProbabilities(row, logits, &out);
  return out;
}

}  // namespace belay::cann
