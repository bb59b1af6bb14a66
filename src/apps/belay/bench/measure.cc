// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <utility>

#include "apps/belay/shell/interrupt.h"
#include "base/error_ids.h"
#include "engine/engine.h"
#include "spec/cost.h"

namespace belay::apps {
namespace {

// Steps before the clock starts: caches fill, threads wake.
constexpr int64_t kWarmUpSteps = 2;

struct Samples {
  std::vector<double> tokens_per_second;
  std::vector<double> bandwidth;
  std::vector<double> share;
};

class Runner {
 public:
  Runner(const BenchCase& what, LoadedModel& model, const Bandwidth& bandwidth)
      : what_(what), model_(model), bandwidth_(bandwidth) {}

  Status Start() {
    engine::EngineOptions options;
    options.n_slots = static_cast<int32_t>(what_.batch);
    options.max_tokens_per_step = static_cast<int32_t>(what_.tokens_per_step);
    options.max_context = prompt_tokens() + answer_tokens() + 1;
    BELAY_ASSIGN_OR_RETURN(
        engine_,
        engine::Engine::Create({&model_.config(), model_.weights.get(),
                                model_.backend.get(), &model_.communicator},
                               options));
    return absl::OkStatus();
  }

  // The prompt that leaves `context` tokens behind, or is measured.
  int64_t prompt_tokens() const {
    return what_.prefill ? what_.n_tokens : std::max<int64_t>(1, what_.context);
  }
  int64_t answer_tokens() const {
    return what_.prefill
               ? 1
               : kWarmUpSteps + 1 + what_.n_tokens * what_.repetitions;
  }

  Status Submit() {
    engine::Request request;
    std::uniform_int_distribution<int32_t> token(
        0, static_cast<int32_t>(model_.config().vocab_size) - 1);
    const std::vector<int32_t>& given = what_.tokens;
    for (int64_t i = 0; i < prompt_tokens(); ++i) {
      request.prompt.push_back(
          given.empty() ? token(rng_)
                        : given[static_cast<size_t>(i) % given.size()]);
    }
    request.max_tokens = static_cast<int32_t>(answer_tokens());
    return engine_->Submit(std::move(request)).status();
  }

  Status Step() {
    if (CatchInterrupts()) return MakeError(kSysInterrupted, ErrorFacts{});
    return engine_->Step().status();
  }

  // Each repetition is a prompt of its own.
  Status RunPrefill(double bytes, Samples& samples) {
    for (int r = -1; r < what_.repetitions; ++r) {  // the first one warms up
      const double gb_per_second = bandwidth_.Measure();
      BELAY_RETURN_IF_ERROR(Submit());
      const auto start = Clock::now();
      int64_t n_steps = 0;
      for (; engine_->HasWork(); ++n_steps) BELAY_RETURN_IF_ERROR(Step());
      if (r >= 0)
        Add(start, n_steps, what_.n_tokens, gb_per_second, bytes, samples);
    }
    return absl::OkStatus();
  }

  // All repetitions are parts of one answer.
  Status RunDecode(double bytes, Samples& samples) {
    for (int64_t i = 0; i < what_.batch; ++i) BELAY_RETURN_IF_ERROR(Submit());
    const int64_t n_prompt = what_.batch * prompt_tokens();
    while (engine_->stats().n_prefill_tokens < n_prompt) {
      BELAY_RETURN_IF_ERROR(Step());
    }
    for (int64_t i = 0; i < kWarmUpSteps; ++i) BELAY_RETURN_IF_ERROR(Step());
    for (int r = 0; r < what_.repetitions; ++r) {
      const double gb_per_second = bandwidth_.Measure();
      const auto start = Clock::now();
      for (int64_t i = 0; i < what_.n_tokens; ++i) {
        BELAY_RETURN_IF_ERROR(Step());
      }
      Add(start, what_.n_tokens, what_.n_tokens * what_.batch, gb_per_second,
          bytes, samples);
    }
    return absl::OkStatus();
  }

 private:
  using Clock = std::chrono::steady_clock;

  static void Add(Clock::time_point start, int64_t n_steps, int64_t n_tokens,
                  double gb_per_second, double bytes, Samples& samples) {
    const std::chrono::duration<double> elapsed = Clock::now() - start;
    const double seconds = elapsed.count();
    samples.tokens_per_second.push_back(static_cast<double>(n_tokens) /
                                        seconds);
    samples.bandwidth.push_back(gb_per_second);
    samples.share.push_back(bytes * static_cast<double>(n_steps) / seconds /
                            (gb_per_second * 1e9));
  }

  const BenchCase what_;
  LoadedModel& model_;
  const Bandwidth& bandwidth_;
  std::mt19937 rng_{1};
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace

Spread SpreadOf(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const double median = (values[(n - 1) / 2] + values[n / 2]) / 2;
  return {median, values.front(), values.back()};
}

StatusOr<BenchResult> Measure(const BenchCase& what, LoadedModel& model,
                              const Bandwidth& bandwidth) {
  const spec::ModelConfig& config = model.config();
  spec::StepShape shape;
  shape.n_sequences = what.batch;
  shape.n_tokens =
      what.prefill ? std::min(what.n_tokens, what.tokens_per_step) : 1;
  shape.context = what.context;
  const spec::StepCost cost =
      spec::CostOfStep(config, shape, spec::OfficialKvRow(config),
                       spec::OfficialIndexRow(config));
  Runner runner(what, model, bandwidth);
  BELAY_RETURN_IF_ERROR(runner.Start());
  Samples samples;
  BELAY_RETURN_IF_ERROR(what.prefill ? runner.RunPrefill(cost.bytes(), samples)
                                     : runner.RunDecode(cost.bytes(), samples));
  BenchResult result;
  result.what = what;
  result.tokens_per_second = SpreadOf(samples.tokens_per_second);
  result.bandwidth = SpreadOf(samples.bandwidth);
  result.share = SpreadOf(samples.share);
  result.bytes_per_step = cost.bytes();
  result.flops_per_token =
      cost.flops() / static_cast<double>(shape.n_sequences * shape.n_tokens);
  return result;
}

}  // namespace belay::apps
