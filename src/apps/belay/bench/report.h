// SPDX-License-Identifier: Apache-2.0
// What `belay bench` found, as a table, CSV, JSON and a page with curves.
#ifndef BELAY_APPS_BELAY_BENCH_REPORT_H_
#define BELAY_APPS_BELAY_BENCH_REPORT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/belay/bench/measure.h"

namespace belay::apps {

// What ran, and where: a speed means nothing without it.
struct BenchSubject {
  std::string model;
  std::string dtype;  // of the weights: "fp8+fp4", "fp8", "gguf"
  std::string backend;
  std::string numerics;
  std::string simd_target;
  int threads = 0;
  uint64_t weight_bytes = 0;
  double load_seconds = 0;
};

// "prefill" or "decode".
const char* NameOf(const BenchCase& what);

// Two lines: what runs, and the heads of the columns; `threads` is that word.
std::string TableHead(const BenchSubject& subject, const char* threads);
std::string TableRow(const BenchResult& result);

// A line of names and one for each result.
std::string ToCsv(const BenchSubject& subject,
                  const std::vector<BenchResult>& results);

nlohmann::ordered_json ToJson(const BenchSubject& subject,
                              const std::vector<BenchResult>& results);

// One HTML page that needs nothing else: curves of prefill over the length of
// the prompt and of decoding over context and batch (chart.h), each where there
// are at least two points of it, and the table.
std::string ToHtml(const BenchSubject& subject,
                   const std::vector<BenchResult>& results);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_BENCH_REPORT_H_
