// SPDX-License-Identifier: Apache-2.0
// 500 requests at random: arrival, cancellation, prompts that share prefixes,
// few cache pages (so that requests are preempted), drafts, sampling, penalties
// and log probabilities. Every answer is, token for token and bit for bit, that
// of the same request alone on an engine that keeps nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/golden_set.h"
#include "support/sanitized.h"
#include "support/stepper.h"
#include "support/test_model.h"
#include "support/value.h"

namespace belay::test {
namespace {

using engine::Engine;
using engine::EngineOptions;
using engine::FinishReason;
using engine::Request;
using engine::RequestId;
using Tokens = std::vector<int32_t>;

struct Answer {
  Tokens tokens;
  std::vector<float> logprobs;  // of the tokens and of the likeliest
  FinishReason finish = FinishReason::kNone;
  bool operator==(const Answer&) const = default;
};

class Random {
 public:
  explicit Random(uint32_t seed) : rng_(seed) {}
  // In [0, n).
  int32_t Below(int32_t n) {
    return static_cast<int32_t>(rng_() % static_cast<uint32_t>(n));
  }

 private:
  std::mt19937 rng_;
};

// Prompts of a few page-sized pieces in common, then something of their own.
Request RandomRequest(Random& random, int64_t vocab) {
  Request request;
  const int32_t n_shared = random.Below(3);
  for (int32_t piece = 0; piece < n_shared; ++piece) {
    const Tokens shared =
        RandomTokens(random.Below(4) == 0 ? 60 : 128, vocab,
                     static_cast<uint64_t>(piece * 10 + random.Below(2)));
    request.prompt.insert(request.prompt.end(), shared.begin(), shared.end());
  }
  // A third of them grows into another page, for which somebody may have to go.
  const int32_t n_own =
      random.Below(3) == 0 ? 116 + random.Below(12) : 1 + random.Below(20);
  const Tokens own =
      RandomTokens(n_own, vocab, static_cast<uint64_t>(random.Below(1 << 20)));
  request.prompt.insert(request.prompt.end(), own.begin(), own.end());
  request.max_tokens = 1 + random.Below(12);
  request.cache_salt = static_cast<uint64_t>(random.Below(2));
  request.priority = random.Below(8) == 0 ? 1 : 0;
  if (random.Below(2) == 0) {
    request.sampling.temperature = 0.9f;
    request.sampling.top_p = 0.95f;
    request.sampling.seed = static_cast<uint64_t>(random.Below(1000));
  }
  if (random.Below(4) == 0) {
    request.sampling.frequency_penalty = 0.5f;
    request.sampling.repetition_penalty = 1.1f;
  }
  if (random.Below(4) == 0) request.n_top_logprobs = random.Below(4);
  return request;
}

class Session {
 public:
  explicit Session(std::unique_ptr<Engine> engine)
      : engine_(std::move(engine)) {}

  RequestId Submit(const Request& request) {
    return Value(engine_->Submit(request));
  }
  void Step() {
    for (const engine::Event& event : Value(engine_->Step())) {
      Answer& answer = answers[event.request];
      EXPECT_EQ(answer.finish, FinishReason::kNone) << "after its end";
      answer.finish = event.finish;
      if (event.token < 0) continue;
      answer.tokens.push_back(event.token);
      answer.logprobs.push_back(event.logprob);
      for (const engine::TokenLogprob& top : event.top) {
        answer.logprobs.push_back(static_cast<float>(top.token));
        answer.logprobs.push_back(top.logprob);
      }
    }
  }
  void Drain() {
    while (engine_->HasWork()) Step();
  }
  Engine& engine() { return *engine_; }

  std::map<RequestId, Answer> answers;

 private:
  std::unique_ptr<Engine> engine_;
};

struct Case {
  std::string model;
  bool speculative;
};

class ServingTest : public ::testing::TestWithParam<Case> {
 protected:
  ServingTest()
      : model_(GetParam().model == "demo"
                   ? "data/demo"
                   : GoldenFolder() + "/" + GetParam().model,
               {.backend = BackendNames().back()}) {}

  std::unique_ptr<Engine> Make(const EngineOptions& options) {
    return Value(Engine::Create(model_.parts<engine::EngineParts>(), options));
  }

  TestModel model_;
};

TEST_P(ServingTest, AsIfAlone) {
  // Of each of the four cases.
  constexpr int kRequests = kSanitized ? 40 : 500 / 4;
  Random random(GetParam().speculative ? 11 : 12);
  std::vector<Request> requests;
  for (int i = 0; i < kRequests; ++i) {
    requests.push_back(RandomRequest(random, model_.config().vocab_size));
  }

  // A back end serves one engine at a time: first all alone, then all at once.
  std::vector<Answer> alone;
  {
    Session session(Make({.n_slots = 1, .max_context = 512}));
    for (const Request& request : requests) {
      const RequestId id = session.Submit(request);
      session.Drain();
      alone.push_back(session.answers[id]);
    }
  }

  Session session(Make({.n_slots = 5,
                        .max_tokens_per_step = 170,
                        .max_context = 512,
                        .n_pages = 6,
                        .n_draft_tokens = GetParam().speculative ? 3 : 0,
                        .prefill_tokens_per_step = 90,
                        .prefix_cache_bytes = size_t{2} << 20}));
  std::map<RequestId, size_t> index;
  std::map<RequestId, bool> cancelled;
  for (size_t i = 0; i < requests.size(); ++i) {
    index[session.Submit(requests[i])] = i;
    for (int32_t steps = random.Below(5); steps > 0; --steps) session.Step();
    if (random.Below(8) > 0) continue;
    const RequestId victim =
        1 + static_cast<RequestId>(random.Below(static_cast<int32_t>(i) + 1));
    if (session.answers[victim].finish != FinishReason::kNone) continue;
    session.engine().Cancel(victim);
    cancelled[victim] = true;
  }
  session.Drain();

  for (const auto& [id, i] : index) {
    SCOPED_TRACE(i);
    const Answer& got = session.answers[id];
    if (!cancelled[id]) {
      ASSERT_EQ(got, alone[i]);
      continue;
    }
    // What came before the cancellation was right.
    ASSERT_EQ(got.finish, FinishReason::kCancelled);
    ASSERT_LE(got.tokens.size(), alone[i].tokens.size());
    EXPECT_TRUE(std::equal(got.tokens.begin(), got.tokens.end(),
                           alone[i].tokens.begin()));
  }
  const engine::EngineStats& stats = session.engine().stats();
  EXPECT_GT(stats.n_preemptions, kSanitized ? 0 : 3);
  EXPECT_GT(stats.n_prefix_hits, kSanitized ? 0 : 5);
  EXPECT_GT(cancelled.size(), kSanitized ? 0u : 3u);
  EXPECT_EQ(stats.n_finished, kRequests);
  EXPECT_EQ(stats.n_free_pages + stats.n_cached_pages, 6);
  std::printf(
      "  %lld preemptions, %lld hits, %lld cached tokens, %lld of %lld "
      "drafts right\n",
      static_cast<long long>(stats.n_preemptions),
      static_cast<long long>(stats.n_prefix_hits),
      static_cast<long long>(stats.n_prefix_tokens),
      static_cast<long long>(stats.n_accepted),
      static_cast<long long>(stats.n_drafts));
}

INSTANTIATE_TEST_SUITE_P(
    All, ServingTest,
    ::testing::Values(Case{"tiny_fp4", false}, Case{"tiny_fp4", true},
                      Case{"demo", false}, Case{"demo", true}),
    [](const auto& test) {
      return test.param.model + (test.param.speculative ? "_drafts" : "");
    });

}  // namespace
}  // namespace belay::test
