// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/perplexity/perplexity.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>

#include "base/error_ids.h"
#include "engine/step_inputs.h"
#include "model/forward.h"
#include "model/state.h"
#include "spec/layout.h"

namespace belay::apps {
namespace {

// Tokens a pass; also the rows of logits, which are the largest buffer.
constexpr int64_t kStepTokens = 128;

// Running mean and variance (Welford).
class Mean {
 public:
  void Add(double x) {
    ++n_;
    const double delta = x - mean_;
    mean_ += delta / static_cast<double>(n_);
    m2_ += delta * (x - mean_);
  }
  int64_t n() const { return n_; }
  double mean() const { return mean_; }
  double std_error() const {
    if (n_ < 2) return 0;
    const auto n = static_cast<double>(n_);
    return std::sqrt(m2_ / (n - 1) / n);
  }

 private:
  int64_t n_ = 0;
  double mean_ = 0;
  double m2_ = 0;
};

Status Check(const spec::ModelConfig& config, std::span<const int32_t> tokens,
             int64_t window) {
  const auto n_tokens = static_cast<int64_t>(tokens.size());
  if (window < 2 || n_tokens < window) {
    return MakeError(kArgUsage, {.where = "--window",
                                 .what = "",
                                 .expected = "2 .. " + std::to_string(n_tokens),
                                 .got = std::to_string(window)});
  }
  for (const int32_t token : tokens) {
    if (token >= 0 && token < config.vocab_size) continue;
    return MakeError(
        kArgTokenOutOfRange,
        {.where = "text",
         .what = "",
         .expected = "0 .. " + std::to_string(config.vocab_size - 1),
         .got = std::to_string(token)});
  }
  if (window <= config.max_positions) return absl::OkStatus();
  return MakeError(kEngContextTooLong,
                   {.where = "--window",
                    .what = "",
                    .expected = "<= " + std::to_string(config.max_positions),
                    .got = std::to_string(window)});
}

// One sequence slot that windows run through, one after another.
class Reader {
 public:
  static StatusOr<std::unique_ptr<Reader>> Create(const PerplexityParts& parts,
                                                  int64_t window) {
    spec::LayoutOptions options;
    options.max_tokens = std::min(kStepTokens, window);
    options.max_logit_rows = options.max_tokens;
    options.max_context = window;
    model::SetFormats(*parts.backend, &options);
    BELAY_ASSIGN_OR_RETURN(
        spec::Layout layout,
        spec::MakeLayout(*parts.config, spec::Rank{}, options));
    BELAY_ASSIGN_OR_RETURN(
        auto state, model::CreateState(*parts.config, layout, *parts.backend));
    return std::unique_ptr<Reader>(new Reader(parts, layout, std::move(state)));
  }

  // Judges tokens [judge_from, n) of a window.
  Status Read(std::span<const int32_t> window, int64_t judge_from, Mean& mean) {
    const auto n_window = static_cast<int64_t>(window.size());
    for (int64_t first = 0; first < n_window; first += inputs_.max_tokens()) {
      const int64_t n = std::min(inputs_.max_tokens(), n_window - first);
      inputs_.Clear();
      inputs_.AddSpan(
          0, static_cast<int32_t>(first),
          window.subspan(static_cast<size_t>(first), static_cast<size_t>(n)));
      // The logits after token i judge token i + 1.
      const int64_t begin = std::max<int64_t>(judge_from - 1, first);
      const int64_t end = std::min(first + n, n_window - 1);
      for (int64_t i = begin; i < end; ++i) {
        inputs_.AddLogitRow(static_cast<int32_t>(i - first));
      }
      model::Forward(context_, inputs_.Upload(*parts_.backend));
      BELAY_RETURN_IF_ERROR(Judge(window, begin, end, mean));
    }
    return absl::OkStatus();
  }

 private:
  Reader(const PerplexityParts& parts, const spec::Layout& layout,
         std::unique_ptr<model::State> state)
      : parts_(parts),
        state_(std::move(state)),
        inputs_(layout, state_->step),
        context_{.config = parts.config,
                 .weights = parts.weights,
                 .state = state_.get(),
                 .backend = parts.backend,
                 .communicator = parts.communicator,
                 .hooks = &hooks_} {
    std::vector<int32_t> pages(static_cast<size_t>(layout.max_pages_per_slot));
    std::iota(pages.begin(), pages.end(), 0);
    inputs_.SetPages(0, pages);
  }

  Status Judge(std::span<const int32_t> window, int64_t begin, int64_t end,
               Mean& mean) {
    if (begin >= end) return parts_.backend->Finish();
    const int64_t vocab = parts_.config->vocab_size;
    logits_.resize(static_cast<size_t>((end - begin) * vocab));
    parts_.backend->CopyOut(
        logits_.data(), state_->activations.ForTokens(0, end - begin).logits);
    BELAY_RETURN_IF_ERROR(parts_.backend->Finish());
    for (int64_t i = begin; i < end; ++i) {
      const std::span<const float> row(logits_.data() + (i - begin) * vocab,
                                       static_cast<size_t>(vocab));
      mean.Add(NegativeLogLikelihood(row, window[static_cast<size_t>(i + 1)]));
    }
    return absl::OkStatus();
  }

  const PerplexityParts& parts_;
  std::unique_ptr<model::State> state_;
  engine::StepInputs inputs_;
  model::Hooks hooks_;
  model::Context context_;
  std::vector<float> logits_;
};

}  // namespace

double Perplexity::value() const { return std::exp(mean_nll); }

double NegativeLogLikelihood(std::span<const float> logits, int32_t token) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max);
  return std::log(sum) + max - logits[static_cast<size_t>(token)];
}

StatusOr<Perplexity> MeasurePerplexity(
    const PerplexityParts& parts, std::span<const int32_t> tokens,
    int64_t window,
    const std::function<bool(const Perplexity&, int64_t n_windows)>& progress) {
  BELAY_RETURN_IF_ERROR(Check(*parts.config, tokens, window));
  BELAY_ASSIGN_OR_RETURN(const auto reader, Reader::Create(parts, window));
  const int64_t n_windows = static_cast<int64_t>(tokens.size()) / window;
  Perplexity result;
  Mean mean;
  for (int64_t w = 0; w < n_windows; ++w) {
    BELAY_RETURN_IF_ERROR(
        reader->Read(tokens.subspan(static_cast<size_t>(w * window),
                                    static_cast<size_t>(window)),
                     window / 2, mean));
    result = {.n_windows = w + 1,
              .n_tokens = mean.n(),
              .mean_nll = mean.mean(),
              .std_error = mean.std_error()};
    if (!progress(result, n_windows)) {
      return MakeError(kSysInterrupted, ErrorFacts{});
    }
  }
  return result;
}

}  // namespace belay::apps
