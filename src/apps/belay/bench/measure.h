// SPDX-License-Identifier: Apache-2.0
// One line of `belay bench`: a whole model, prefill or decode, at one context
// and batch.
#ifndef BELAY_APPS_BELAY_BENCH_MEASURE_H_
#define BELAY_APPS_BELAY_BENCH_MEASURE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "apps/belay/bench/bandwidth.h"
#include "apps/belay/model/loaded_model.h"
#include "base/error.h"

namespace belay::apps {

struct BenchCase {
  bool prefill = false;
  int64_t context = 0;    // tokens in the cache when the clock starts
  int64_t batch = 1;      // sequences; 1 for prefill
  int64_t n_tokens = 32;  // prompt tokens; or steps of decoding a repetition
  int repetitions = 5;
  int64_t tokens_per_step = 512;
  std::vector<int32_t> tokens = {};  // of prompts, in turn; none: random ones
};

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};
Spread SpreadOf(std::vector<double> values);  // at least one

struct BenchResult {
  BenchCase what;
  Spread tokens_per_second;   // of all sequences together
  Spread bandwidth;           // GB/s, measured before each repetition
  Spread share;               // bytes a step must read x steps a second, of it
  double bytes_per_step = 0;  // spec/cost.h: weights and cache rows, each once
  double flops_per_token = 0;
};

// Runs a case. Errors: those of the engine (ARG-003: a token that the model has
// not); SYS-004.
StatusOr<BenchResult> Measure(const BenchCase& what, LoadedModel& model,
                              const Bandwidth& bandwidth);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_BENCH_MEASURE_H_
