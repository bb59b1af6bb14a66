// SPDX-License-Identifier: Apache-2.0
// An engine on the scripted model, and what it should answer.
#ifndef BELAY_ENGINE_TESTING_ENGINE_FIXTURE_H_
#define BELAY_ENGINE_TESTING_ENGINE_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/scripted_backend.h"
#include "ops/communicator.h"

namespace belay::engine {

using Tokens = std::vector<int32_t>;

// What greedy decoding answers, without an engine.
inline Tokens Expected(const Tokens& prompt, int32_t n) {
  uint64_t hash = 0;
  for (const int32_t token : prompt) hash = ScriptHash(hash, token);
  Tokens answer;
  for (int32_t i = 0; i < n; ++i) {
    answer.push_back(ScriptNext(hash));
    hash = ScriptHash(hash, answer.back());
  }
  return answer;
}

inline Tokens Prompt(int32_t n, int32_t seed = 0) {
  Tokens tokens;
  for (int32_t i = 0; i < n; ++i) {
    tokens.push_back((seed * 31 + i * 7 + i * i) % kPoison);
  }
  return tokens;
}

inline Tokens Concat(Tokens a, const Tokens& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

struct Answer {
  Tokens tokens;
  std::vector<float> logprobs;
  FinishReason finish = FinishReason::kNone;
  int32_t n_cached_tokens = -1;  // of the first event
};

// A back end to sample with (engine_test.cc).
std::unique_ptr<ops::Backend> MakeSamplingBackend();

// Time and memory as a test wants them.
class FakeEnvironment final : public Environment {
 public:
  Clock::time_point Now() const override { return now; }
  int64_t AvailableBytes() const override { return available; }

  Clock::time_point now{std::chrono::hours(1)};
  int64_t available = int64_t{1} << 40;
};

class EngineTest : public ::testing::Test {
 protected:
  EngineTest() : backend_(*sampler_) {}

  StatusOr<std::unique_ptr<Engine>> Create(const EngineOptions& options) {
    return Engine::Create({.config = &model_.config,
                           .weights = &model_.weights,
                           .backend = &backend_,
                           .communicator = &single_,
                           .environment = &environment_},
                          options);
  }
  // Forgets the answers of the engine before: ids begin again.
  std::unique_ptr<Engine> Make(const EngineOptions& options) {
    answers_.clear();
    auto engine = Create(options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return std::move(engine).value();
  }

  static RequestId Submit(Engine& engine, Request request) {
    const auto id = engine.Submit(std::move(request));
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(0);
  }
  static RequestId Submit(Engine& engine, Tokens prompt, int32_t max_tokens,
                          SamplingParams sampling = {}, Tokens stop = {}) {
    return Submit(engine, {.prompt = std::move(prompt),
                           .max_tokens = max_tokens,
                           .sampling = std::move(sampling),
                           .stop_ids = std::move(stop)});
  }

  // One step's events, put to the answers.
  std::vector<Event> Step(Engine& engine) {
    const auto events = engine.Step();
    EXPECT_TRUE(events.ok()) << events.status();
    if (!events.ok()) return {};
    for (const Event& event : *events) {
      Answer& answer = answers_[event.request];
      EXPECT_EQ(answer.finish, FinishReason::kNone) << "after its end";
      if (answer.n_cached_tokens < 0) {
        answer.n_cached_tokens = event.n_cached_tokens;
      } else {
        EXPECT_EQ(event.n_cached_tokens, 0) << "said once";
      }
      if (event.token >= 0) {
        answer.tokens.push_back(event.token);
        answer.logprobs.push_back(event.logprob);
      }
      answer.finish = event.finish;
    }
    return {events->begin(), events->end()};
  }
  void Drain(Engine& engine) {
    for (int i = 0; engine.HasWork(); ++i) {
      ASSERT_LT(i, 20000);
      Step(engine);
    }
  }
  // Runs one request to its end.
  Answer Ask(Engine& engine, Request request) {
    const RequestId id = Submit(engine, std::move(request));
    Drain(engine);
    return answers_[id];
  }
  Answer Ask(Engine& engine, Tokens prompt, int32_t max_tokens) {
    return Ask(engine, {.prompt = std::move(prompt), .max_tokens = max_tokens});
  }

  const std::unique_ptr<ops::Backend> sampler_ = MakeSamplingBackend();
  ScriptedModel model_;
  ScriptedBackend backend_;
  ops::SingleRank single_;
  FakeEnvironment environment_;
  std::map<RequestId, Answer> answers_;
};

inline std::string ErrorOf(const Status& status) { return ErrorIdOf(status); }

}  // namespace belay::engine

#endif  // BELAY_ENGINE_TESTING_ENGINE_FIXTURE_H_
