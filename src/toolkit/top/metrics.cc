// SPDX-License-Identifier: Apache-2.0
#include "toolkit/top/metrics.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <sstream>

namespace belay::top {
namespace {

using Samples = std::map<std::string, double>;

constexpr size_t kMaxSamples = 10000;
constexpr size_t kMaxName = 512;

// Sum, or the highest, of all samples of a name, whatever their labels.
std::optional<double> All(const Samples& samples, const std::string& name,
                          bool highest = false) {
  std::optional<double> all;
  for (auto at = samples.lower_bound(name);
       at != samples.end() && at->first.starts_with(name); ++at) {
    if (at->first.size() > name.size() && at->first[name.size()] != '{') {
      continue;  // a longer name
    }
    all = !all      ? at->second
          : highest ? std::max(*all, at->second)
                    : *all + at->second;
  }
  return all;
}

std::optional<double> First(const Samples& samples,
                            std::initializer_list<const char*> names,
                            bool highest = false) {
  for (const char* name : names) {
    if (const auto found = All(samples, name, highest)) return found;
  }
  return std::nullopt;
}

double Or0(const std::optional<double>& value) { return value.value_or(0); }

EngineState Belay(const Samples& samples) {
  EngineState state;
  state.kind = "belay";
  state.running = All(samples, "belay_requests_running");
  state.waiting = All(samples, "belay_requests_waiting");
  state.batch_limit = All(samples, "belay_batch_limit");
  state.generated_tokens = All(samples, "belay_generated_tokens_total");
  state.prompt_tokens = All(samples, "belay_prefill_tokens_total");
  state.prefix_hits = All(samples, "belay_prefix_hits_total");
  state.prefix_misses = All(samples, "belay_prefix_misses_total");
  const auto pages = [&](const char* kind) {
    return Or0(
        All(samples, std::string("belay_cache_pages{state=\"") + kind + "\"}"));
  };
  const double used = pages("used"), cached = pages("cached");
  const double all = used + cached + pages("free");
  if (all > 0) {
    state.cache_use = used / all;
    state.cached = cached / all;
  }
  for (const auto& [name, value] : samples) {
    state.guard_is_active |= name.starts_with("belay_memory_guard{") &&
                             name != "belay_memory_guard{state=\"normal\"}" &&
                             value == 1;
  }
  return state;
}

// Names of several releases; the older ones say "gpu" also on NPUs.
EngineState Vllm(const Samples& samples) {
  EngineState state;
  state.kind = "vllm";
  state.running = All(samples, "vllm:num_requests_running");
  state.waiting = All(samples, "vllm:num_requests_waiting");
  state.cache_use = First(
      samples, {"vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"}, true);
  state.generated_tokens = All(samples, "vllm:generation_tokens_total");
  state.prompt_tokens = All(samples, "vllm:prompt_tokens_total");
  state.prefix_hits = First(samples, {"vllm:prefix_cache_hits_total",
                                      "vllm:gpu_prefix_cache_hits_total"});
  const auto queries = First(samples, {"vllm:prefix_cache_queries_total",
                                       "vllm:gpu_prefix_cache_queries_total"});
  if (queries && state.prefix_hits) {
    state.prefix_misses = *queries - *state.prefix_hits;
  }
  return state;
}

EngineState Sglang(const Samples& samples) {
  EngineState state;
  state.kind = "sglang";
  state.running = All(samples, "sglang:num_running_reqs");
  state.waiting = All(samples, "sglang:num_queue_reqs");
  state.cache_use = All(samples, "sglang:token_usage", true);
  state.generated_tokens = All(samples, "sglang:generation_tokens_total");
  state.prompt_tokens = All(samples, "sglang:prompt_tokens_total");
  return state;
}

}  // namespace

// "name{label=\"value with } and blanks\"} 1.5 1700000000"
Samples ParseMetrics(std::string_view text) {
  Samples samples;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    size_t end = line.find_first_of("{ \t");
    if (end == std::string::npos || end == 0) continue;
    if (line[end] == '{') {
      bool is_quoted = false;
      for (++end; end < line.size(); ++end) {
        if (line[end] == '\\' && is_quoted) {
          ++end;
        } else if (line[end] == '"') {
          is_quoted = !is_quoted;
        } else if (line[end] == '}' && !is_quoted) {
          break;
        }
      }
      if (end >= line.size()) continue;
      ++end;
    }
    if (end > kMaxName || samples.size() >= kMaxSamples) continue;
    const char* start = line.c_str() + end;
    char* stop = nullptr;
    const double value = std::strtod(start, &stop);
    if (stop == start || !std::isfinite(value)) continue;
    samples[line.substr(0, end)] = value;
  }
  return samples;
}

std::optional<EngineState> EngineFrom(const Samples& samples) {
  if (All(samples, "belay_requests_running")) return Belay(samples);
  if (All(samples, "vllm:num_requests_running")) return Vllm(samples);
  if (All(samples, "sglang:num_running_reqs")) return Sglang(samples);
  return std::nullopt;
}

}  // namespace belay::top
