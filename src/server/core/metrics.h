// SPDX-License-Identifier: Apache-2.0
// What GET /metrics tells, in Prometheus' text format 0.0.4.
#ifndef BELAY_SERVER_CORE_METRICS_H_
#define BELAY_SERVER_CORE_METRICS_H_

#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace belay::server {

// Seconds in fixed buckets.
class Histogram {
 public:
  static constexpr std::array<double, 19> kBounds = {
      0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1,
      2,     5,     10,    20,   30,   60,   120, 300, 600};

  void Observe(double seconds);
  // Appends the lines of one family, with HELP and TYPE.
  void Write(const char* name, const char* help, std::string* out) const;

 private:
  std::array<uint64_t, kBounds.size() + 1> counts_{};
  double sum_ = 0;
};

// What was measured of one finished answer.
struct AnswerTimes {
  double ttft_s = -1;  // -1 = no token came
  double tpot_s = -1;  // between tokens, on average; -1 = less than two
  double e2e_s = 0;
  int64_t n_prompt_tokens = 0;
  int64_t n_cached_tokens = 0;
  int64_t n_completion_tokens = 0;
};

// What is read when somebody asks.
struct Gauges {
  engine::EngineStats engine;
  int n_connections = 0;
  int n_live = 0;
  bool ready = false;
  double loaded = 0;
  double stalled_s = 0;
  std::vector<std::pair<std::string, uint64_t>> memory_bytes;
};

// Any thread.
class Metrics {
 public:
  void CountRequest(const std::string& path, int status);
  void CountError(const std::string& id);
  void CountGone();  // a client that left before its answer ended
  void AddAnswer(const AnswerTimes& times, const std::string& finish);
  // Time that the server itself took of a first token: from the whole request
  // to its submission, and from the engine's event to the write.
  void ObserveOverhead(double seconds);

  std::string Text(const Gauges& gauges) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  std::map<std::string, uint64_t> errors_;
  std::map<std::string, uint64_t> finishes_;
  uint64_t n_gone_ = 0;
  uint64_t n_prompt_tokens_ = 0;
  uint64_t n_cached_tokens_ = 0;
  uint64_t n_completion_tokens_ = 0;
  Histogram ttft_;
  Histogram tpot_;
  Histogram e2e_;
  Histogram overhead_;
};

}  // namespace belay::server

#endif  // BELAY_SERVER_CORE_METRICS_H_
