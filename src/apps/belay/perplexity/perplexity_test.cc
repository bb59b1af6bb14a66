// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/perplexity/perplexity.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "apps/belay/trace/trace.h"
#include "backends/registry.h"
#include "base/error_ids.h"
#include "checkpoint/checkpoint.h"

namespace belay::apps {
namespace {

TEST(PerplexityTest, NllOfEqualLogitsIsTheLogOfTheirNumber) {
  const std::vector<float> logits(8, 3.0f);
  EXPECT_NEAR(NegativeLogLikelihood(logits, 5), std::log(8.0), 1e-12);
  const std::vector<float> far = {0.0f, 1000.0f};
  EXPECT_NEAR(NegativeLogLikelihood(far, 0), 1000.0, 1e-9);
}

class DemoPerplexityTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = checkpoint::Checkpoint::Open("data/demo");
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = std::move(opened).value();
    pool_ = ThreadPool::Create(1).value();
    backend_ = backends::Create("cpu", ops::Numerics{}, pool_.get()).value();
    auto weights = model::BindWeights(
        checkpoint_->config(), spec::Rank{},
        [&](std::string_view name) {
          return checkpoint_->Slice(name, spec::Rank{});
        },
        *backend_);
    ASSERT_TRUE(weights.ok()) << weights.status();
    weights_ = std::move(weights).value();
    for (int32_t i = 0; i < 200; ++i) tokens_.push_back(5 + i * 37 % 2000);
  }

  PerplexityParts parts() {
    return {&checkpoint_->config(), weights_.get(), backend_.get(),
            &communicator_};
  }

  std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<ops::Backend> backend_;
  std::unique_ptr<model::ModelWeights> weights_;
  ops::SingleRank communicator_;
  std::vector<int32_t> tokens_;
};

// The logits of a trace, judged by hand: two windows of 96, so that one window
// takes more than one step and the second starts anew.
TEST_F(DemoPerplexityTest, EqualsTheTrace) {
  const int64_t window = 96;
  double sum = 0;
  int64_t n = 0;
  for (int64_t first : {int64_t{0}, window}) {
    trace::TraceOptions options;
    options.prompt.assign(tokens_.begin() + first,
                          tokens_.begin() + first + window);
    auto trace = trace::RunTrace({&checkpoint_->config(),
                                  weights_.get(),
                                  backend_.get(),
                                  &communicator_,
                                  {}},
                                 options);
    ASSERT_TRUE(trace.ok()) << trace.status();
    const int64_t vocab = checkpoint_->config().vocab_size;
    const float* logits = (*trace)["logits_all"].data<float>();
    for (int64_t i = window / 2 - 1; i + 1 < window; ++i, ++n) {
      sum += NegativeLogLikelihood(
          {logits + i * vocab, static_cast<size_t>(vocab)},
          options.prompt[static_cast<size_t>(i + 1)]);
    }
  }
  int64_t calls = 0;
  const auto result = MeasurePerplexity(
      parts(), tokens_, window, [&](const Perplexity&, int64_t n_windows) {
        EXPECT_EQ(n_windows, 2);
        return ++calls > 0;
      });
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(result->n_tokens, n);
  EXPECT_NEAR(result->mean_nll, sum / static_cast<double>(n), 1e-9);
}

TEST_F(DemoPerplexityTest, SaysWhatIsWrong) {
  const auto go_on = [](const Perplexity&, int64_t) { return true; };
  const auto id = [&](int64_t window) {
    return ErrorIdOf(
        MeasurePerplexity(parts(), tokens_, window, go_on).status());
  };
  EXPECT_EQ(id(1), kArgUsage.id);
  EXPECT_EQ(id(201), kArgUsage.id);
  tokens_[7] = 1 << 20;
  EXPECT_EQ(id(64), kArgTokenOutOfRange.id);
  tokens_[7] = 7;
  EXPECT_EQ(ErrorIdOf(MeasurePerplexity(
                          parts(), tokens_, 64,
                          [](const Perplexity&, int64_t) { return false; })
                          .status()),
            kSysInterrupted.id);
}

}  // namespace
}  // namespace belay::apps
