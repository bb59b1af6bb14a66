// SPDX-License-Identifier: Apache-2.0
// What a load test does and what it found, as plain data.
#ifndef BELAY_TOOLKIT_LOADTEST_PLAN_H_
#define BELAY_TOOLKIT_LOADTEST_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace belay::loadtest {

// One request to make.
struct Prompt {
  std::string messages;    // JSON list, as the API takes it
  int32_t max_tokens = 0;  // 0 = the plan's
};

// One measurement: so many at once, or so many a second.
struct Level {
  int32_t concurrency = 0;  // closed loop: requests under way at any time
  double rate = 0;          // open loop: requests a second, Poisson; else 0
};

struct Slo {
  std::optional<double> ttft_s;
  std::optional<double> tpot_s;
  std::optional<double> e2e_s;
  double share = 0.9;  // of the requests that must meet all of the above

  bool is_set() const { return ttft_s || tpot_s || e2e_s; }
};

struct Plan {
  std::string url;
  std::string model;    // "" = the first that the server names
  std::string api_key;  // "" = none
  std::vector<Level> levels;
  int32_t n_requests = 32;  // of each closed level
  double seconds = 30;      // of each open level
  int32_t n_warmup = -1;    // requests before each level; -1 = its concurrency
  std::vector<Prompt> prompts;
  int32_t max_tokens = 128;
  double temperature = 0;
  bool ignore_eos =
      false;  // answers of exactly max_tokens, where the server can
  double timeout_s = 600;  // of one request
  uint64_t seed = 1;       // of the arrivals
  Slo slo;
};

enum class Outcome : uint8_t {
  kOk,
  kRefused,       // an HTTP status of 400 or more
  kNoConnection,  // none, or it broke before the first byte
  kCut,           // the stream ended before its end
  kTimeout,
  kMalformed,  // an answer that is not what the API says
  kStopped,    // by the user
};
const char* OutcomeName(Outcome outcome);

// What is wrong with the text of an answer. None of it is a matter of taste.
struct TextFault {
  bool repeats = false;  // the end says one thing over and over
  bool garbage = false;  // U+FFFD, control characters, leaked markers
  bool empty = false;    // nothing although tokens were counted
  std::string detail;
  bool any() const { return repeats || garbage || empty; }
};

// One request as it was seen from here. Seconds since the level began.
struct Sample {
  size_t prompt = 0;    // index into the plan's
  double due_s = 0;     // when it should have been sent
  double sent_s = 0;    // when it was
  double first_s = -1;  // the first piece of text; -1 = none came
  double end_s = 0;
  std::vector<float> gaps_s;  // between pieces of text
  Outcome outcome = Outcome::kOk;
  int status = 0;        // of HTTP
  std::string error_id;  // the catalogue id that the server gave
  std::string finish;    // finish_reason
  std::string text;      // reasoning and content
  int64_t n_prompt = 0;  // by the server's count
  int64_t n_cached = 0;
  int64_t n_completion = 0;
  TextFault fault;

  bool ok() const { return outcome == Outcome::kOk; }
  // From when it was due: a late client must not make a server look fast.
  double ttft_s() const { return first_s - due_s; }
  double e2e_s() const { return end_s - due_s; }
  // Of a token after the first; -1 with less than two.
  double tpot_s() const {
    return n_completion > 1 && first_s >= 0
               ? (end_s - first_s) / static_cast<double>(n_completion - 1)
               : -1;
  }
};

struct Percentiles {
  size_t n = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, max = 0;
};

struct LevelResult {
  Level level;
  double seconds = 0;  // from the first request to the last answer
  bool stopped = false;
  std::vector<Sample> samples;  // without the warm-up
  size_t n_warmup = 0;

  // By Summarize().
  size_t n_ok = 0;
  size_t n_good = 0;  // met the SLO, with sound text
  std::vector<std::pair<std::string, size_t>> errors;  // by kind, most first
  Percentiles ttft_s, tpot_s, gap_s, e2e_s;
  double requests_per_s = 0, output_tokens_per_s = 0, input_tokens_per_s = 0;
  double good_per_s = 0;
  double worst_lag_s = 0;  // of the client behind its own schedule
  size_t n_repeats = 0, n_garbage = 0, n_empty = 0, n_cut = 0;
  size_t n_differing = 0;  // prompts whose greedy answers are not the same
};

struct LoadReport {
  Plan plan;
  std::string model;
  std::string started;  // local time
  std::vector<LevelResult> levels;
  std::vector<Status> findings;
};

}  // namespace belay::loadtest

#endif  // BELAY_TOOLKIT_LOADTEST_PLAN_H_
