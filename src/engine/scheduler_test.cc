// SPDX-License-Identifier: Apache-2.0
// Who runs when: shares of the batch, priorities, preemption, deadlines, the
// bounded queue and the memory guard.
#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "engine/testing/engine_fixture.h"

namespace belay::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SchedulerTest : public EngineTest {};

// A long prompt that came first does not hold up a short one.
TEST_F(SchedulerTest, PromptsShareTheBudgetEvenly) {
  const auto engine =
      Make({.n_slots = 3, .max_tokens_per_step = 30, .max_context = 1024});
  const RequestId large = Submit(*engine, Prompt(600), 4);
  Step(*engine);
  const RequestId small = Submit(*engine, Prompt(20, 1), 4);
  const RequestId tiny = Submit(*engine, Prompt(4, 2), 4);
  Step(*engine);  // 4 for the tiny one, 13 for each of the others
  EXPECT_EQ(answers_[tiny].tokens.size(), 1u);
  Step(*engine);  // 1 decodes; 7 finish the small one, 22 go to the large one
  EXPECT_EQ(answers_[small].tokens.size(), 1u);
  EXPECT_EQ(engine->stats().n_prefill_tokens, 30 + 30 + 7 + 22);
  Drain(*engine);
  EXPECT_EQ(answers_[large].tokens, Expected(Prompt(600), 4));
  EXPECT_EQ(answers_[small].tokens, Expected(Prompt(20, 1), 4));
}

TEST_F(SchedulerTest, PrefillIsBoundedWhileOthersDecode) {
  const auto engine = Make({.n_slots = 2,
                            .max_tokens_per_step = 100,
                            .max_context = 1024,
                            .prefill_tokens_per_step = 8});
  Submit(*engine, Prompt(90), 50);
  Step(*engine);
  EXPECT_EQ(engine->stats().n_prefill_tokens, 90) << "nobody decodes yet";
  Submit(*engine, Prompt(60, 1), 5);
  Step(*engine);
  EXPECT_EQ(engine->stats().n_prefill_tokens, 98);
  Drain(*engine);
}

TEST_F(SchedulerTest, HigherPrioritiesComeFirst) {
  const auto engine = Make({.n_slots = 1, .max_context = 256});
  const RequestId running = Submit(*engine, Prompt(10), 20);
  Step(*engine);
  const RequestId low = Submit(*engine, Prompt(11), 3);
  Request urgent = {.prompt = Prompt(12), .max_tokens = 3};
  urgent.priority = 5;
  const RequestId high = Submit(*engine, urgent);
  Step(*engine);  // takes the slot of the running one
  EXPECT_EQ(answers_[high].tokens.size(), 1u);
  EXPECT_EQ(engine->stats().n_preemptions, 1);
  while (answers_[running].finish == FinishReason::kNone) {
    EXPECT_TRUE(answers_[low].tokens.empty());
    Step(*engine);
  }
  EXPECT_EQ(answers_[high].finish, FinishReason::kLength);
  Drain(*engine);
  EXPECT_EQ(answers_[running].tokens, Expected(Prompt(10), 20));
  EXPECT_EQ(answers_[high].tokens, Expected(Prompt(12), 3));
  EXPECT_EQ(answers_[low].tokens, Expected(Prompt(11), 3));
}

// A head start for each level, no more: the low one comes first in the end, and
// keeps its place from then on.
TEST_F(SchedulerTest, LowPrioritiesDoNotStarve) {
  const auto engine =
      Make({.n_slots = 1, .max_context = 256, .priority_seconds = 10});
  Request low = {.prompt = Prompt(10), .max_tokens = 5};
  low.priority = -2;
  const RequestId patient = Submit(*engine, low);
  // Somebody more urgent comes before each step.
  std::vector<RequestId> urgent;
  int n_before = 0;
  for (int second = 0; second < 60; second += 3) {
    Request request = {.prompt = Prompt(12, second), .max_tokens = 1};
    request.priority = 1;
    urgent.push_back(Submit(*engine, request));
    Step(*engine);
    if (answers_[patient].tokens.empty()) ++n_before;
    environment_.now += seconds(3);
  }
  // Three levels: those of the first 30 seconds go before it.
  EXPECT_EQ(n_before, 10);
  EXPECT_EQ(answers_[patient].tokens, Expected(Prompt(10), 5));
  Drain(*engine);
  for (size_t i = 0; i < urgent.size(); ++i) {
    EXPECT_EQ(answers_[urgent[i]].tokens,
              Expected(Prompt(12, static_cast<int32_t>(3 * i)), 1));
  }
}

// Of those that run, one that has aged is not put back for a newcomer; a later
// one is, wherever it stands.
TEST_F(SchedulerTest, AgeProtectsAPlaceInTheBatch) {
  const auto engine = Make({.n_slots = 2, .max_context = 256});
  const RequestId old = Submit(*engine, Prompt(10), 30);
  Step(*engine);
  environment_.now += seconds(60);
  const RequestId young = Submit(*engine, Prompt(11), 30);
  Step(*engine);
  std::vector<RequestId> urgent;
  for (int32_t i = 0; i < 2; ++i) {
    Request request = {.prompt = Prompt(12, i), .max_tokens = 3};
    request.priority = 4;  // 40 s: before the young one, behind the old one
    urgent.push_back(Submit(*engine, request));
  }
  Step(*engine);
  EXPECT_EQ(engine->stats().n_preemptions, 1);
  EXPECT_EQ(answers_[old].tokens.size(), 3u);
  EXPECT_EQ(answers_[young].tokens.size(), 1u);
  EXPECT_EQ(answers_[urgent[0]].tokens.size(), 1u);
  EXPECT_TRUE(answers_[urgent[1]].tokens.empty());
  Drain(*engine);
  EXPECT_EQ(engine->stats().n_preemptions, 1);
  EXPECT_EQ(answers_[old].tokens, Expected(Prompt(10), 30));
  EXPECT_EQ(answers_[young].tokens, Expected(Prompt(11), 30));
}

// Four sequences that need two pages in the end, and five pages: the youngest
// give way and come back, with and without a prefix cache, drafts and sampling.
TEST_F(SchedulerTest, PreemptedRequestsGoOnAsIfNothingHadBeen) {
  for (const bool speculative : {false, true}) {
    for (const size_t cache_bytes : {size_t{0}, size_t{1} << 20}) {
      answers_.clear();
      const auto run = [&](const EngineOptions& options) {
        const auto engine = Make(options);
        std::vector<Tokens> got;
        std::vector<RequestId> ids;
        for (int32_t i = 0; i < 4; ++i) {
          const SamplingParams hot = {
              .temperature = i % 2 == 0 ? 0.0f : 1.2f,
              .seed = 5,
              .frequency_penalty = i == 3 ? 0.5f : 0.0f};
          ids.push_back(Submit(*engine, Prompt(100, i), 100, hot));
        }
        answers_.clear();
        Drain(*engine);
        for (const RequestId id : ids) got.push_back(answers_[id].tokens);
        return std::make_pair(got, engine->stats().n_preemptions);
      };
      EngineOptions options = {.n_slots = 1,
                               .max_context = 256,
                               .n_draft_tokens = speculative ? 1 : 0,
                               .prefix_cache_bytes = cache_bytes};
      const auto alone = run(options);
      EXPECT_EQ(alone.second, 0);
      options.n_slots = 4;
      options.n_pages = 5;
      const auto crowded = run(options);
      EXPECT_GT(crowded.second, 0);
      EXPECT_EQ(crowded.first, alone.first);
    }
  }
}

TEST_F(SchedulerTest, TheOldestIsNeverPreempted) {
  const auto engine = Make({.n_slots = 3, .max_context = 384, .n_pages = 3});
  std::vector<RequestId> ids;
  for (int32_t i = 0; i < 3; ++i) {
    ids.push_back(Submit(*engine, Prompt(100, i), 250));
  }
  // It generates one token in each step from its prefill on.
  for (size_t n = 1; n <= 250; ++n) {
    Step(*engine);
    ASSERT_EQ(answers_[ids[0]].tokens.size(), n);
  }
  Drain(*engine);
  for (int32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(answers_[ids[static_cast<size_t>(i)]].tokens,
              Expected(Prompt(100, i), 250));
  }
}

TEST_F(SchedulerTest, CancelsWhatWasPreempted) {
  const auto engine = Make({.n_slots = 2, .max_context = 384, .n_pages = 4});
  const RequestId first = Submit(*engine, Prompt(100), 250);
  const RequestId second = Submit(*engine, Prompt(100, 1), 250);
  for (int i = 0; i < 240 && engine->stats().n_preemptions == 0; ++i) {
    Step(*engine);
  }
  ASSERT_EQ(engine->stats().n_preemptions, 1);
  EXPECT_EQ(engine->stats().n_waiting, 1);
  const size_t n = answers_[second].tokens.size();
  EXPECT_GT(n, 100u);
  engine->Cancel(second);
  Step(*engine);
  EXPECT_EQ(answers_[second].finish, FinishReason::kCancelled);
  EXPECT_EQ(answers_[second].tokens.size(), n);
  Drain(*engine);
  EXPECT_EQ(answers_[first].tokens, Expected(Prompt(100), 250));
  EXPECT_EQ(engine->stats().n_free_pages, 4);
}

TEST_F(SchedulerTest, DeadlinesEndWaitingAndRunningRequests) {
  const auto engine = Make({.n_slots = 1, .max_context = 256});
  Request request = {.prompt = Prompt(10), .max_tokens = 100};
  request.deadline = environment_.now + seconds(2);
  const RequestId running = Submit(*engine, request);
  request.deadline = environment_.now + seconds(1);
  const RequestId waiting = Submit(*engine, request);
  const RequestId patient = Submit(*engine, Prompt(10, 2), 5);
  Step(*engine);
  environment_.now += seconds(1);
  Step(*engine);
  EXPECT_EQ(answers_[waiting].finish, FinishReason::kDeadline);
  EXPECT_EQ(answers_[running].finish, FinishReason::kNone);
  environment_.now += seconds(1);
  Step(*engine);
  EXPECT_EQ(answers_[running].finish, FinishReason::kDeadline);
  EXPECT_EQ(answers_[running].tokens.size(), 2u);
  Drain(*engine);
  EXPECT_EQ(answers_[patient].tokens, Expected(Prompt(10, 2), 5));
}

TEST_F(SchedulerTest, AFullQueueRefuses) {
  const auto engine = Make({.n_slots = 1, .max_context = 256, .max_queue = 2});
  Submit(*engine, Prompt(5), 30);
  Step(*engine);
  Submit(*engine, Prompt(5), 3);
  const RequestId last = Submit(*engine, Prompt(5), 3);
  const Status refused =
      engine->Submit({.prompt = Prompt(5), .max_tokens = 3}).status();
  EXPECT_EQ(ErrorOf(refused), "ENG-006");
  EXPECT_EQ(ErrorFactsOf(refused).what, "retry after 1 s");
  EXPECT_EQ(engine->stats().n_refused, 1);
  EXPECT_EQ(engine->stats().n_waiting, 2);
  EXPECT_EQ(engine->stats().n_running, 1);
  engine->Cancel(last);
  Step(*engine);
  EXPECT_TRUE(engine->Submit({.prompt = Prompt(5), .max_tokens = 3}).ok());
  Drain(*engine);
  EXPECT_EQ(engine->stats().n_finished, 4);
}

TEST_F(SchedulerTest, TheRetryTimeIsThatOfARunningRequest) {
  const auto engine = Make({.n_slots = 2, .max_context = 256});
  Submit(*engine, Prompt(5), 5);
  while (engine->HasWork()) {
    Step(*engine);
    environment_.now += seconds(3);
  }
  // Admitted in the first of five steps, ended in the last: 12 s; two slots.
  EXPECT_EQ(engine->stats().retry_after_seconds, 6.0);
}

// Down a step at each look while memory is short, and up again in calm.
TEST_F(SchedulerTest, TheMemoryGuardGivesUpAndRecovers) {
  const auto engine = Make({.n_slots = 4,
                            .max_context = 512,
                            .prefix_cache_bytes = 1 << 20,
                            .reserve_bytes = 1000});
  std::vector<RequestId> ids;
  Ask(*engine, Prompt(300, 9), 3);
  EXPECT_EQ(engine->stats().n_cached_pages, 2);
  for (int32_t i = 0; i < 4; ++i) {
    ids.push_back(Submit(*engine, Prompt(200, i), 200));
  }
  const auto look = [&] {
    environment_.now += milliseconds(100);
    Step(*engine);
  };
  look();
  EXPECT_EQ(engine->stats().n_running, 4);
  EXPECT_EQ(engine->stats().guard, GuardState::kNormal);

  environment_.available = 999;
  Step(*engine);
  EXPECT_EQ(engine->stats().guard, GuardState::kNormal) << "looks seldom";
  look();
  EXPECT_EQ(engine->stats().guard, GuardState::kNoPrefixes);
  EXPECT_EQ(engine->stats().n_cached_pages, 0);
  EXPECT_EQ(engine->stats().n_running, 4);
  look();
  EXPECT_EQ(engine->stats().guard, GuardState::kSmallBatch);
  EXPECT_EQ(engine->stats().n_running, 2);
  for (int i = 0; i < 3; ++i) look();
  EXPECT_EQ(engine->stats().n_running, 1) << "never none";
  EXPECT_EQ(engine->stats().available_bytes, 999);

  environment_.available = 1249;  // better, but not calm
  for (int i = 0; i < 30; ++i) look();
  EXPECT_EQ(engine->stats().batch_limit, 1);
  environment_.available = 1250;
  for (int i = 0; i < 10; ++i) look();
  EXPECT_EQ(engine->stats().batch_limit, 2);
  for (int i = 0; i < 20; ++i) look();
  EXPECT_EQ(engine->stats().batch_limit, 4);
  EXPECT_EQ(engine->stats().guard, GuardState::kNormal);
  EXPECT_EQ(engine->stats().n_running, 4);
  Drain(*engine);
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answers_[ids[static_cast<size_t>(i)]].tokens,
              Expected(Prompt(200, i), 200));
  }
  EXPECT_GT(engine->stats().n_cached_pages, 0) << "keeps prefixes again";
}

TEST(EnvironmentTest, TheMachineSaysWhatItHas) {
  const Environment machine;
  EXPECT_GT(machine.AvailableBytes(), 1 << 20);
  EXPECT_GT(machine.Now(), Clock::time_point{});
}

}  // namespace
}  // namespace belay::engine
