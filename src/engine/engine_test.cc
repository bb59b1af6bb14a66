// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/ref/ref.h"
#include "engine/testing/engine_fixture.h"

namespace belay::engine {

std::unique_ptr<ops::Backend> MakeSamplingBackend() {
  return ref::Create({}).value();
}

namespace {

TEST_F(EngineTest, AnswersOneRequest) {
  const auto engine = Make({});
  EXPECT_FALSE(engine->HasWork());
  const RequestId id = Submit(*engine, Prompt(10), 20);
  EXPECT_TRUE(engine->HasWork());
  Drain(*engine);
  EXPECT_EQ(answers_[id].tokens, Expected(Prompt(10), 20));
  EXPECT_EQ(answers_[id].finish, FinishReason::kLength);
  EXPECT_EQ(engine->stats().n_prefill_tokens, 10);
  EXPECT_EQ(engine->stats().n_decode_tokens, 19);  // the first is prefill's
  EXPECT_EQ(engine->stats().n_steps, 20);
  EXPECT_EQ(engine->stats().n_drafts, 0);
}

// More requests than slots, prompts in chunks beside decoding sequences, pages
// that go from one sequence to the next.
TEST_F(EngineTest, ManyRequestsGetTheirOwnAnswers) {
  for (const bool speculative : {false, true}) {
    for (const int32_t max_tokens_per_step : {1, 7, 512}) {
      answers_.clear();
      const auto engine = Make({.n_slots = 3,
                                .max_tokens_per_step = max_tokens_per_step,
                                .max_context = 400,
                                .n_pages = 6,
                                .n_draft_tokens = speculative ? 1 : 0});
      std::map<RequestId, Tokens> expected;
      for (int32_t i = 0; i < 12; ++i) {
        const Tokens prompt = Prompt(1 + i * 23 % 150, i);
        const RequestId id = Submit(*engine, prompt, 5 + i * 11 % 140);
        expected[id] = Expected(prompt, 5 + i * 11 % 140);
      }
      Drain(*engine);
      for (const auto& [id, tokens] : expected) {
        EXPECT_EQ(answers_[id].tokens, tokens) << "request " << id;
        EXPECT_EQ(answers_[id].finish, FinishReason::kLength);
      }
    }
  }
}

TEST_F(EngineTest, AdmitsInOrderEvenWhenASmallerOneWouldFit) {
  const auto engine = Make({.n_slots = 3, .max_context = 512, .n_pages = 4});
  const RequestId first = Submit(*engine, Prompt(200), 50);  // 2 pages
  const RequestId large = Submit(*engine, Prompt(300), 50);  // 3 pages
  const RequestId small = Submit(*engine, Prompt(3), 2);     // 1 page
  while (answers_[first].finish == FinishReason::kNone) {
    Step(*engine);
    ASSERT_TRUE(answers_[large].tokens.empty() ||
                answers_[first].finish != FinishReason::kNone);
    ASSERT_TRUE(answers_[small].tokens.empty());
  }
  Drain(*engine);
  EXPECT_EQ(answers_[large].tokens, Expected(Prompt(300), 50));
  EXPECT_EQ(answers_[small].tokens, Expected(Prompt(3), 2));
}

TEST_F(EngineTest, PagesAndSlotsComeBack) {
  const auto engine = Make({.n_slots = 2, .max_context = 256, .n_pages = 2});
  // Each needs all pages, so that one page lost would block the next for ever.
  for (int32_t i = 0; i < 10; ++i) {
    const RequestId id = Submit(*engine, Prompt(200, i), 10);
    if (i % 3 == 1) {
      Step(*engine);
      engine->Cancel(id);
    }
    Drain(*engine);
    EXPECT_EQ(answers_[id].finish,
              i % 3 == 1 ? FinishReason::kCancelled : FinishReason::kLength);
  }
}

TEST_F(EngineTest, StopIdEndsAndIsEmitted) {
  const Tokens plain = Expected(Prompt(10), 20);
  const int32_t stop = plain[7];
  Tokens until_stop;
  for (const int32_t token : plain) {
    until_stop.push_back(token);
    if (token == stop) break;
  }
  for (const bool speculative : {false, true}) {
    answers_.clear();
    const auto engine = Make({.n_draft_tokens = speculative ? 1 : 0});
    const RequestId id = Submit(*engine, Prompt(10), 20, {}, {stop, 999});
    Drain(*engine);
    EXPECT_EQ(answers_[id].tokens, until_stop);
    EXPECT_EQ(answers_[id].finish, FinishReason::kStop);
  }
}

TEST_F(EngineTest, TheContextEndsAnAnswer) {
  for (const bool speculative : {false, true}) {
    answers_.clear();
    const auto engine =
        Make({.max_context = 128, .n_draft_tokens = speculative ? 1 : 0});
    const RequestId id = Submit(*engine, Prompt(120), 1000);
    const RequestId last = Submit(*engine, Prompt(127), 1000);
    Drain(*engine);
    EXPECT_EQ(answers_[id].tokens, Expected(Prompt(120), 8));
    EXPECT_EQ(answers_[id].finish, FinishReason::kLength);
    EXPECT_EQ(answers_[last].tokens, Expected(Prompt(127), 1));
  }
}

TEST_F(EngineTest, CancelsInEveryState) {
  const auto engine =
      Make({.n_slots = 1, .max_tokens_per_step = 4, .max_context = 64});
  const RequestId decoding = Submit(*engine, Prompt(4), 30);
  Step(*engine);
  Step(*engine);
  EXPECT_EQ(answers_[decoding].tokens.size(), 2u);

  // Waiting, not even the first in the queue: the event comes with the next
  // step all the same.
  const RequestId waiting = Submit(*engine, Prompt(5, 1), 3);
  const RequestId behind = Submit(*engine, Prompt(6, 2), 3);
  engine->Cancel(behind);
  Step(*engine);
  EXPECT_EQ(answers_[behind].finish, FinishReason::kCancelled);
  EXPECT_EQ(answers_[decoding].tokens.size(), 3u);

  engine->Cancel(decoding);
  Step(*engine);
  EXPECT_EQ(answers_[decoding].finish, FinishReason::kCancelled);
  EXPECT_EQ(answers_[decoding].tokens.size(), 3u);

  // `waiting` has taken the slot, and has read a part of its prompt.
  engine->Cancel(waiting);
  Step(*engine);
  EXPECT_EQ(answers_[waiting].finish, FinishReason::kCancelled);
  EXPECT_TRUE(answers_[waiting].tokens.empty());
  EXPECT_FALSE(engine->HasWork());

  engine->Cancel(waiting);  // ended: nothing happens
  engine->Cancel(12345);    // never was
  EXPECT_TRUE(Step(*engine).empty());
}

TEST_F(EngineTest, RefusesBadRequests) {
  const auto engine = Make({.max_context = 256, .n_pages = 1});
  const auto refused = [&](Tokens prompt, int32_t max_tokens = 128,
                           SamplingParams sampling = {}) {
    Request request;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.sampling = sampling;
    return ErrorOf(engine->Submit(std::move(request)).status());
  };
  EXPECT_EQ(refused({}), "ARG-004");
  EXPECT_EQ(refused({1, kScriptVocab}), "ARG-003");
  EXPECT_EQ(refused({-1}), "ARG-003");
  EXPECT_EQ(refused(Prompt(256)), "ENG-001");
  EXPECT_EQ(refused(Prompt(100), 100), "ENG-001") << "two pages of one";
  const std::vector<SamplingParams> bad = {
      {.temperature = -1},
      {.temperature = std::nanf("")},
      {.top_k = -1},
      {.top_p = 0},
      {.top_p = 1.5f},
      {.min_p = -0.1f},
      {.min_p = 1.5f},
      {.temperature = INFINITY},
      {.presence_penalty = 2.1f},
      {.frequency_penalty = std::nanf("")},
      {.repetition_penalty = 0},
      {.repetition_penalty = INFINITY},
      {.logit_bias = {{1, 1.0f}, {2, 100.5f}}},
  };
  for (const SamplingParams& sampling : bad) {
    EXPECT_EQ(refused({1}, 1, sampling), "ARG-007")
        << sampling.temperature << " " << sampling.top_k << " "
        << sampling.top_p << " " << sampling.min_p;
  }
  EXPECT_FALSE(engine->HasWork());
}

TEST_F(EngineTest, RefusesPlansThatCannotHold) {
  EXPECT_EQ(ErrorOf(Create({.max_context = 4097}).status()), "ENG-001");
  EXPECT_EQ(ErrorOf(Create({.n_slots = 0}).status()), "ARG-001");
  EXPECT_EQ(ErrorOf(Create({.max_context = 0}).status()), "ARG-001");

  const size_t needed = Make({.max_context = 1024})->layout().total_bytes;
  EXPECT_TRUE(Create({.max_context = 1024, .budget_bytes = needed}).ok());
  const Status tight =
      Create({.max_context = 1024, .budget_bytes = needed - 1}).status();
  EXPECT_EQ(ErrorOf(tight), "ENG-003");
  EXPECT_NE(ErrorFactsOf(tight).what.find("1 bytes are missing"),
            std::string::npos)
      << ErrorFactsOf(tight).what;

  model_.weights.mtp.clear();
  EXPECT_EQ(ErrorOf(Create({.n_draft_tokens = 1}).status()), "ENG-005");
  EXPECT_TRUE(Create({}).ok());
}

TEST_F(EngineTest, NoFiniteLogitEndsOneRequestOnly) {
  for (const bool speculative : {false, true}) {
    answers_.clear();
    const auto engine =
        Make({.n_slots = 2, .n_draft_tokens = speculative ? 1 : 0});
    const RequestId bad = Submit(*engine, {3, kPoison}, 5);
    const RequestId good = Submit(*engine, Prompt(9), 5);
    Drain(*engine);
    EXPECT_EQ(answers_[bad].finish, FinishReason::kError);
    EXPECT_TRUE(answers_[bad].tokens.empty());
    EXPECT_EQ(answers_[good].tokens, Expected(Prompt(9), 5));
  }
}

TEST_F(EngineTest, ADeviceFaultIsTheStatusOfTheStep) {
  const auto engine = Make({});
  Submit(*engine, Prompt(3), 5);
  backend_.fault = absl::InternalError("lost");
  EXPECT_EQ(engine->Step().status(), backend_.fault);
}

// A draft is wrong at every third position; the answer stays, and the counts
// are what the script says.
TEST_F(EngineTest, SpeculativeCountsDrafts) {
  const auto engine = Make({.max_context = 512, .n_draft_tokens = 1});
  const RequestId id = Submit(*engine, Prompt(10), 100);
  Drain(*engine);
  EXPECT_EQ(answers_[id].tokens, Expected(Prompt(10), 100));
  const EngineStats& stats = engine->stats();
  EXPECT_GT(stats.n_accepted, 0);
  EXPECT_LT(stats.n_accepted, stats.n_drafts);
  // Every accepted draft saves one of the 100 steps.
  EXPECT_EQ(stats.n_steps, 100 - stats.n_accepted);
}

// The further guesses of a step are wrong more often and cost rows in the
// rings; the answer stays, alone and beside others.
TEST_F(EngineTest, MoreDraftsChangeNothing) {
  const auto engine =
      Make({.n_slots = 3, .max_context = 512, .n_draft_tokens = 4});
  std::vector<RequestId> ids;
  for (int32_t i = 0; i < 5; ++i) {
    ids.push_back(Submit(*engine, Prompt(10 + 40 * i, i), 60 + i));
  }
  Drain(*engine);
  for (int32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(answers_[ids[static_cast<size_t>(i)]].tokens,
              Expected(Prompt(10 + 40 * i, i), 60 + i));
  }
  const EngineStats& stats = engine->stats();
  EXPECT_GT(stats.drafts_by_position[1], 0);
  EXPECT_LE(stats.drafts_by_position[1], stats.accepted_by_position[0]);
}

TEST_F(EngineTest, SeedsReproduceWhateverElseRuns) {
  const SamplingParams hot = {
      .temperature = 1.5f, .top_k = 50, .top_p = 0.95f, .seed = 42};
  const auto run = [&](EngineOptions options, int32_t n_others) {
    answers_.clear();
    const auto engine = Make(options);
    for (int32_t i = 0; i < n_others; ++i) {
      Submit(*engine, Prompt(20 + i, i), 30, {.temperature = 1, .seed = 7});
    }
    const RequestId id = Submit(*engine, Prompt(33), 60, hot);
    Drain(*engine);
    return answers_[id].tokens;
  };
  const Tokens alone = run({.n_slots = 1}, 0);
  EXPECT_NE(alone, Expected(Prompt(33), 60)) << "sampling is not greedy";
  EXPECT_EQ(run({.n_slots = 1}, 0), alone);
  EXPECT_EQ(run({.n_slots = 4, .max_tokens_per_step = 16}, 3), alone);
  EXPECT_EQ(run({.n_slots = 2, .n_draft_tokens = 1}, 3), alone);

  answers_.clear();
  const auto engine = Make({});
  SamplingParams other = hot;
  other.seed = 43;
  const RequestId id = Submit(*engine, Prompt(33), 60, other);
  Drain(*engine);
  EXPECT_NE(answers_[id].tokens, alone);
}

}  // namespace
}  // namespace belay::engine
