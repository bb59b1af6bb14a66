// SPDX-License-Identifier: Apache-2.0
// What an engine says at /metrics, in Prometheus' text format.
#ifndef BELAY_TOOLKIT_TOP_METRICS_H_
#define BELAY_TOOLKIT_TOP_METRICS_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace belay::top {

// Samples by name and labels as they stand: "a_total", "pages{state=\"used\"}".
// Lines of another kind are passed over; at most 10000 samples are kept, none
// with a name beyond 512 bytes.
std::map<std::string, double> ParseMetrics(std::string_view text);

struct EngineState {
  std::string kind;  // "belay", "vllm", "sglang"
  // Nothing: the engine does not say.
  std::optional<double> running, waiting, batch_limit;
  std::optional<double> cache_use;  // 0 to 1, what can be given back left out
  std::optional<double> cached;     // 0 to 1: unused prefixes
  // Counters since the engine's start.
  std::optional<double> generated_tokens, prompt_tokens;
  std::optional<double> prefix_hits, prefix_misses;
  bool guard_is_active = false;  // the memory guard of a belay server
};

// Nothing when no engine that we know wrote this. Of several (one a rank of
// data parallelism) counters and counts are added, cache use is the highest.
std::optional<EngineState> EngineFrom(
    const std::map<std::string, double>& samples);

}  // namespace belay::top

#endif  // BELAY_TOOLKIT_TOP_METRICS_H_
