// SPDX-License-Identifier: Apache-2.0
#include "toolkit/loadtest/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <utility>

#include "base/error_ids.h"

namespace belay::loadtest {
namespace {

// A client that sends this much later than planned measures itself.
constexpr double kMaxLagS = 0.05;

bool MeetsSlo(const Sample& sample, const Slo& slo) {
  if (!sample.ok() || sample.fault.any()) return false;
  if (slo.ttft_s && !(sample.first_s >= 0 && sample.ttft_s() <= *slo.ttft_s)) {
    return false;
  }
  if (slo.tpot_s && sample.tpot_s() > *slo.tpot_s) return false;
  return !slo.e2e_s || sample.e2e_s() <= *slo.e2e_s;
}

std::string ErrorName(const Sample& sample) {
  if (sample.outcome == Outcome::kRefused) {
    return fmt::format("HTTP {}{}{}", sample.status,
                       sample.error_id.empty() ? "" : " ", sample.error_id);
  }
  return OutcomeName(sample.outcome);
}

// Prompts that were answered more than once, greedily, and not alike. Answers
// of different lengths by different limits cannot occur: a prompt has one.
size_t CountDiffering(const Plan& plan, const LevelResult& level) {
  if (plan.temperature > 0) return 0;
  std::map<size_t, const std::string*> first;
  std::map<size_t, bool> differs;
  for (const Sample& sample : level.samples) {
    if (!sample.ok()) continue;
    const auto [it, is_new] = first.try_emplace(sample.prompt, &sample.text);
    if (!is_new && *it->second != sample.text) differs[sample.prompt] = true;
  }
  return differs.size();
}

struct Finding {
  ErrorId id;
  size_t n = 0;
  std::string what;
};

std::string FirstFault(const LevelResult& level, bool TextFault::*kind) {
  for (const Sample& sample : level.samples) {
    if (sample.fault.*kind) return sample.fault.detail;
  }
  return "";
}

}  // namespace

const char* OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kOk:
      return "ok";
    case Outcome::kRefused:
      return "refused";
    case Outcome::kNoConnection:
      return "no connection";
    case Outcome::kCut:
      return "cut stream";
    case Outcome::kTimeout:
      return "timeout";
    case Outcome::kMalformed:
      return "malformed answer";
    case Outcome::kStopped:
      return "stopped";
  }
  return "";
}

std::string NameOf(const Level& level) {
  return level.rate > 0 ? fmt::format("{:g}/s", level.rate)
                        : fmt::format("{} at once", level.concurrency);
}

Percentiles PercentilesOf(std::vector<double> values) {
  Percentiles out;
  out.n = values.size();
  if (values.empty()) return out;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const auto rank =
        static_cast<size_t>(std::ceil(share * static_cast<double>(out.n)));
    return values[std::clamp<size_t>(rank, 1, out.n) - 1];
  };
  out.mean = std::accumulate(values.begin(), values.end(), 0.0) /
             static_cast<double>(out.n);
  out.p50 = at(0.5);
  out.p90 = at(0.9);
  out.p99 = at(0.99);
  out.max = values.back();
  return out;
}

void Summarize(const Plan& plan, LevelResult* level) {
  std::vector<double> ttft, tpot, gaps, e2e;
  std::map<std::string, size_t> errors;
  int64_t n_input = 0;
  int64_t n_output = 0;
  for (const Sample& sample : level->samples) {
    level->worst_lag_s =
        std::max(level->worst_lag_s, sample.sent_s - sample.due_s);
    level->n_cut += sample.outcome == Outcome::kCut;
    if (!sample.ok()) {
      if (sample.outcome != Outcome::kStopped) ++errors[ErrorName(sample)];
      continue;
    }
    ++level->n_ok;
    level->n_good += MeetsSlo(sample, plan.slo);
    level->n_repeats += sample.fault.repeats;
    level->n_garbage += sample.fault.garbage;
    level->n_empty += sample.fault.empty;
    n_input += sample.n_prompt;
    n_output += sample.n_completion;
    e2e.push_back(sample.e2e_s());
    if (sample.first_s >= 0) ttft.push_back(sample.ttft_s());
    if (sample.tpot_s() >= 0) tpot.push_back(sample.tpot_s());
    gaps.insert(gaps.end(), sample.gaps_s.begin(), sample.gaps_s.end());
  }
  level->errors.assign(errors.begin(), errors.end());
  std::stable_sort(
      level->errors.begin(), level->errors.end(),
      [](const auto& a, const auto& b) { return a.second > b.second; });
  level->ttft_s = PercentilesOf(std::move(ttft));
  level->tpot_s = PercentilesOf(std::move(tpot));
  level->gap_s = PercentilesOf(std::move(gaps));
  level->e2e_s = PercentilesOf(std::move(e2e));
  level->n_differing = CountDiffering(plan, *level);
  if (level->seconds <= 0) return;
  const auto per_s = [&](auto n) {
    return static_cast<double>(n) / level->seconds;
  };
  level->requests_per_s = per_s(level->n_ok);
  level->good_per_s = per_s(level->n_good);
  level->input_tokens_per_s = per_s(n_input);
  level->output_tokens_per_s = per_s(n_output);
}

std::vector<Status> FindingsOf(const Plan& plan,
                               const std::vector<LevelResult>& levels) {
  std::vector<Status> findings;
  for (const LevelResult& level : levels) {
    const size_t n = level.samples.size();
    size_t n_failed = 0;
    for (const auto& [kind, count] : level.errors) n_failed += count;
    n_failed -= level.n_cut;
    const std::vector<Finding> all = {
        {kLoadFailed, n_failed,
         level.errors.empty() ? "" : level.errors[0].first},
        {kLoadCut, level.n_cut, ""},
        {kLoadGarbage, level.n_garbage, FirstFault(level, &TextFault::garbage)},
        {kLoadRepeats, level.n_repeats, FirstFault(level, &TextFault::repeats)},
        {kLoadEmpty, level.n_empty, ""},
        {kLoadDiffers, level.n_differing, ""},
    };
    for (const Finding& finding : all) {
      if (finding.n == 0) continue;
      findings.push_back(
          MakeError(finding.id, {.where = NameOf(level.level),
                                 .what = finding.what,
                                 .expected = "0 of " + std::to_string(n),
                                 .got = std::to_string(finding.n)}));
    }
    const double share = level.n_ok == 0 ? 0
                                         : static_cast<double>(level.n_good) /
                                               static_cast<double>(n);
    if (plan.slo.is_set() && n > 0 && share < plan.slo.share) {
      findings.push_back(MakeError(
          kLoadSlo,
          {.where = NameOf(level.level),
           .what = "",
           .expected = fmt::format(">= {:.0f} %", 100 * plan.slo.share),
           .got = fmt::format("{:.1f} %", 100 * share)}));
    }
    if (level.level.rate > 0 && level.worst_lag_s > kMaxLagS) {
      findings.push_back(MakeError(
          kLoadClientLate,
          {.where = NameOf(level.level),
           .what = "",
           .expected = fmt::format("<= {:.0f} ms", 1000 * kMaxLagS),
           .got = fmt::format("{:.0f} ms", 1000 * level.worst_lag_s)}));
    }
  }
  return findings;
}

}  // namespace belay::loadtest
