// SPDX-License-Identifier: Apache-2.0
// How surprised a model is by a text.
#ifndef BELAY_APPS_BELAY_PERPLEXITY_PERPLEXITY_H_
#define BELAY_APPS_BELAY_PERPLEXITY_PERPLEXITY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "model/weights.h"
#include "ops/backend.h"
#include "ops/communicator.h"
#include "spec/config.h"

namespace belay::apps {

struct PerplexityParts {
  const spec::ModelConfig* config = nullptr;
  const model::ModelWeights* weights = nullptr;
  ops::Backend* backend = nullptr;
  ops::Communicator* communicator = nullptr;
};

// Mean and spread of -log p(token | the tokens before it in its window), nats.
struct Perplexity {
  int64_t n_windows = 0;
  int64_t n_tokens = 0;  // that were judged
  double mean_nll = 0;
  double std_error = 0;  // of mean_nll
  double value() const;  // exp(mean_nll)
};

// Cuts `tokens` into windows of `window` tokens (the rest is left out), each a
// sequence of its own, and judges the second half of each, so that every judged
// token has at least window / 2 tokens before it: the rule of llama.cpp's
// perplexity tool, to be comparable. `progress` is called after each window
// with the result so far; when it returns false, SYS-004. Errors: ARG-001
// (window below 2 or fewer tokens than one window), ARG-003, ENG-001.
StatusOr<Perplexity> MeasurePerplexity(
    const PerplexityParts& parts, std::span<const int32_t> tokens,
    int64_t window,
    const std::function<bool(const Perplexity&, int64_t n_windows)>& progress);

// -log softmax(logits)[token], in double.
double NegativeLogLikelihood(std::span<const float> logits, int32_t token);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_PERPLEXITY_PERPLEXITY_H_
