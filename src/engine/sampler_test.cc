// SPDX-License-Identifier: Apache-2.0
// Penalties, bias, log probabilities and constraints, from request to event.
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <vector>

#include "engine/testing/engine_fixture.h"

namespace belay::engine {
namespace {

class SamplerTest : public EngineTest {
 protected:
  // The scripted model's logits after `tokens`.
  static std::vector<float> Logits(const Tokens& tokens) {
    uint64_t hash = 0;
    for (const int32_t token : tokens) hash = ScriptHash(hash, token);
    std::vector<float> logits(kScriptVocab);
    for (int32_t v = 0; v < kScriptVocab; ++v) {
      logits[static_cast<size_t>(v)] =
          static_cast<float>(ScriptHash(hash, v + 1000) >> 40) * 0x1p-24f;
    }
    logits[static_cast<size_t>(ScriptNext(hash))] = 3;
    return logits;
  }

  // Greedy decoding by hand, with the formula of OpenAI's documentation and
  // the repetition penalty.
  static Tokens Greedy(Tokens tokens, int32_t n, const SamplingParams& p) {
    std::map<int32_t, int> counts;
    std::set<int32_t> seen(tokens.begin(), tokens.end());
    Tokens answer;
    while (n-- > 0) {
      std::vector<float> logits = Logits(tokens);
      for (size_t v = 0; v < logits.size(); ++v) {
        const auto id = static_cast<int32_t>(v);
        float& l = logits[v];
        if (seen.count(id) > 0) {
          l = l > 0 ? l / p.repetition_penalty : l * p.repetition_penalty;
        }
        if (counts.count(id) == 0) continue;
        l -= p.presence_penalty;
        l -= p.frequency_penalty * static_cast<float>(counts[id]);
      }
      for (const auto& [id, bias] : p.logit_bias) {
        logits[static_cast<size_t>(id)] += bias;
      }
      const auto best = static_cast<int32_t>(
          std::max_element(logits.begin(), logits.end()) - logits.begin());
      ++counts[best];
      seen.insert(best);
      tokens.push_back(best);
      answer.push_back(best);
    }
    return answer;
  }
};

TEST_F(SamplerTest, PenaltiesAndBias) {
  const std::vector<SamplingParams> cases = {
      {.presence_penalty = 2.0f, .logit_bias = {{5, 0.5f}}},
      {.frequency_penalty = 1.9f},
      {.repetition_penalty = 5.0f, .logit_bias = {{kPoison, -100.0f}}},
      {.presence_penalty = -1.0f,
       .frequency_penalty = 2.0f,
       .repetition_penalty = 1.5f},
      {.logit_bias = {{5, 2.5f}, {90, -100.0f}, {5, 0.25f}}},
      {.frequency_penalty = 0.8f, .logit_bias = {{5, 2.5f}}}};
  for (const bool speculative : {false, true}) {
    for (size_t i = 0; i < cases.size(); ++i) {
      SCOPED_TRACE(i);
      const auto engine = Make({.n_slots = 2,
                                .max_context = 512,
                                .n_draft_tokens = speculative ? 1 : 0});
      const RequestId id = Submit(*engine, Prompt(60), 80, cases[i]);
      const RequestId plain = Submit(*engine, Prompt(40, 1), 80);
      answers_.clear();
      Drain(*engine);
      EXPECT_EQ(answers_[id].tokens, Greedy(Prompt(60), 80, cases[i]));
      EXPECT_NE(answers_[id].tokens, Expected(Prompt(60), 80));
      EXPECT_EQ(answers_[plain].tokens, Expected(Prompt(40, 1), 80));
      if (speculative) {
        EXPECT_GT(engine->stats().n_accepted, 20);
      }
    }
  }
}

TEST_F(SamplerTest, LogProbabilitiesAreTheModelsOwn) {
  for (const bool speculative : {false, true}) {
    const auto engine = Make({.n_slots = 2,
                              .max_context = 512,
                              .n_draft_tokens = speculative ? 1 : 0});
    Request request = {.prompt = Prompt(30), .max_tokens = 20};
    request.sampling.logit_bias = {{7, 1.0f}};
    request.sampling.temperature = 0.5f;
    request.n_top_logprobs = 3;
    const RequestId id = Submit(*engine, request);
    const RequestId other = Submit(*engine, Prompt(20, 1), 20);
    Tokens tokens = Prompt(30);
    while (engine->HasWork()) {
      const auto events = engine->Step();
      ASSERT_TRUE(events.ok());
      for (const Event& event : *events) {
        if (event.request == other) {
          EXPECT_TRUE(event.top.empty());
          EXPECT_EQ(event.logprob, 0.0f);
          continue;
        }
        ASSERT_EQ(event.request, id);
        const std::vector<float> logits = Logits(tokens);
        double sum = 0;
        for (const float l : logits) sum += std::exp(static_cast<double>(l));
        const auto logprob = [&](int32_t token) {
          return static_cast<float>(
              static_cast<double>(logits[static_cast<size_t>(token)]) -
              std::log(sum));
        };
        EXPECT_NEAR(event.logprob, logprob(event.token), 1e-5);
        std::vector<int32_t> order(kScriptVocab);
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
          return logits[static_cast<size_t>(a)] >
                 logits[static_cast<size_t>(b)];
        });
        ASSERT_EQ(event.top.size(), 3u);
        for (size_t i = 0; i < 3; ++i) {
          EXPECT_EQ(event.top[i].token, order[i]);
          EXPECT_NEAR(event.top[i].logprob, logprob(order[i]), 1e-5);
        }
        tokens.push_back(event.token);
      }
    }
    EXPECT_EQ(tokens.size(), 50u);
  }
}

// Only multiples of `step`, each larger than the one before, up to 90.
class Rising final : public TokenConstraint {
 public:
  explicit Rising(int32_t step) : step_(step) {}
  void Allowed(std::span<uint64_t> bits) override {
    std::fill(bits.begin(), bits.end(), uint64_t{0});
    for (int32_t t = last_ + step_; t < kScriptVocab; t += step_) {
      bits[static_cast<size_t>(t / 64)] |= uint64_t{1} << (t % 64);
    }
  }
  void Accept(int32_t token) override {
    EXPECT_GT(token, last_);
    EXPECT_EQ(token % step_, 0);
    last_ = token;
  }
  bool Done() const override { return last_ >= 90; }

 private:
  int32_t step_;
  int32_t last_ = 0;
};

TEST_F(SamplerTest, ConstraintsHoldAndEnd) {
  for (const bool speculative : {false, true}) {
    // Too few pages: the constrained one, the youngest, is preempted once.
    const auto engine = Make({.n_slots = 2,
                              .max_context = 256,
                              .n_pages = 3,
                              .n_draft_tokens = speculative ? 1 : 0});
    const RequestId plain = Submit(*engine, Prompt(100), 100);
    Request request = {.prompt = Prompt(128, 3), .max_tokens = 60};
    request.constraint = std::make_shared<Rising>(3);
    const RequestId id = Submit(*engine, request);
    Drain(*engine);
    EXPECT_EQ(engine->stats().n_preemptions, 1);
    EXPECT_EQ(answers_[plain].tokens, Expected(Prompt(100), 100));
    EXPECT_EQ(answers_[id].finish, FinishReason::kStop);
    EXPECT_GE(answers_[id].tokens.back(), 90);

    // By hand: the best of what is allowed.
    Tokens tokens = Prompt(128, 3);
    int32_t last = 0;
    for (const int32_t got : answers_[id].tokens) {
      const std::vector<float> logits = Logits(tokens);
      int32_t best = last + 3;
      for (int32_t t = best; t < kScriptVocab; t += 3) {
        if (logits[static_cast<size_t>(t)] >
            logits[static_cast<size_t>(best)]) {
          best = t;
        }
      }
      EXPECT_EQ(got, best);
      last = best;
      tokens.push_back(best);
    }
  }
}

class Nothing final : public TokenConstraint {
 public:
  void Allowed(std::span<uint64_t> bits) override {
    std::fill(bits.begin(), bits.end(), uint64_t{0});
  }
  void Accept(int32_t) override { ADD_FAILURE(); }
  bool Done() const override { return false; }
};

TEST_F(SamplerTest, AConstraintThatAllowsNothingIsAnError) {
  const auto engine = Make({.n_slots = 2});
  Request request = {.prompt = Prompt(10), .max_tokens = 60};
  request.constraint = std::make_shared<Nothing>();
  const RequestId id = Submit(*engine, request);
  const RequestId plain = Submit(*engine, Prompt(9), 10);
  Drain(*engine);
  EXPECT_EQ(answers_[id].finish, FinishReason::kError);
  EXPECT_TRUE(answers_[id].tokens.empty());
  EXPECT_EQ(answers_[plain].tokens, Expected(Prompt(9), 10));
}

TEST_F(SamplerTest, RefusesWhatCannotBe) {
  const auto engine = Make({});
  Request request = {.prompt = Prompt(10)};
  request.n_top_logprobs = 21;
  EXPECT_EQ(ErrorOf(engine->Submit(request).status()), "ARG-007");
  request.n_top_logprobs = -2;
  EXPECT_EQ(ErrorOf(engine->Submit(request).status()), "ARG-007");
  request.n_top_logprobs = 20;
  request.sampling.logit_bias = {{kScriptVocab, 1.0f}};
  EXPECT_EQ(ErrorOf(engine->Submit(request).status()), "ARG-003");
  request.sampling.logit_bias = {};
  request.adapter = 0;
  EXPECT_EQ(ErrorOf(engine->Submit(request).status()), "ENG-007");
  request.adapter = -1;
  EXPECT_TRUE(engine->Submit(request).ok());
}

}  // namespace
}  // namespace belay::engine
