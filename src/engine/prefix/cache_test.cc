// SPDX-License-Identifier: Apache-2.0
// Prefixes that are found again: how much is reused, by whom, and that nobody
// can tell from the answers.
#include "engine/prefix/cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

#include "engine/testing/engine_fixture.h"

namespace belay::engine {
namespace {

class PrefixCacheTest : public EngineTest {
 protected:
  // An engine whose cache has `n` resume points.
  std::unique_ptr<Engine> MakeWith(int64_t n, EngineOptions options) {
    options.prefix_cache_bytes = 1 << 20;
    const size_t point = Make(options)->layout().resume_point_bytes;
    options.prefix_cache_bytes = point * static_cast<size_t>(n);
    return Make(options);
  }
};

TEST_F(PrefixCacheTest, PrefillsOnlyTheRest) {
  for (const bool speculative : {false, true}) {
    for (const int32_t max_tokens_per_step : {16, 100, 128, 512}) {
      const auto engine =
          MakeWith(20, {.max_tokens_per_step = max_tokens_per_step,
                        .max_context = 1024,
                        .n_pages = 16,
                        .n_draft_tokens = speculative ? 1 : 0});
      const Tokens prompt = Prompt(700);
      EXPECT_EQ(Ask(*engine, prompt, 10).n_cached_tokens, 0);
      for (int32_t k = 0; k <= 5; ++k) {
        SCOPED_TRACE(k);
        // Shares k pages and a part of the next.
        Tokens other(prompt.begin(), prompt.begin() + 128 * k + 50);
        other = Concat(other, Prompt(30, 9 + k));
        const int64_t before = engine->stats().n_prefill_tokens;
        const Answer answer = Ask(*engine, other, 10);
        EXPECT_EQ(answer.tokens, Expected(other, 10));
        EXPECT_EQ(answer.n_cached_tokens, 128 * k);
        EXPECT_EQ(engine->stats().n_prefill_tokens - before, 80);
      }
      EXPECT_EQ(engine->stats().n_prefix_hits, 5);
      EXPECT_EQ(engine->stats().n_prefix_misses, 2);
      EXPECT_EQ(engine->stats().n_prefix_tokens, 128 * (1 + 2 + 3 + 4 + 5));
    }
  }
}

TEST_F(PrefixCacheTest, LeavesAtLeastOneTokenToCompute) {
  const auto engine = MakeWith(8, {.max_context = 512});
  for (const int32_t n : {256, 257}) {
    const Tokens prompt = Prompt(n);
    EXPECT_EQ(Ask(*engine, prompt, 5).tokens, Expected(prompt, 5));
    const Answer again = Ask(*engine, prompt, 5);
    EXPECT_EQ(again.tokens, Expected(prompt, 5));
    EXPECT_EQ(again.n_cached_tokens, n == 256 ? 128 : 256);
  }
}

// The next turn of a chat: prompt, answer and a new question.
TEST_F(PrefixCacheTest, AnswersArePrefixesToo) {
  for (const bool speculative : {false, true}) {
    const auto engine = MakeWith(
        8, {.max_context = 1024, .n_draft_tokens = speculative ? 1 : 0});
    Tokens prompt = Prompt(100);
    prompt = Concat(prompt, Ask(*engine, prompt, 300).tokens);
    prompt = Concat(prompt, Prompt(20, 3));
    const Answer answer = Ask(*engine, prompt, 10);
    EXPECT_EQ(answer.n_cached_tokens, 384);
    EXPECT_EQ(answer.tokens, Expected(prompt, 10));
  }
}

// Equal to the last id of a page, other salts, and a prompt whose second page
// is the first page of another: nothing but a true prefix is ever reused.
TEST_F(PrefixCacheTest, NobodySeesAnothersTokens) {
  const auto engine = MakeWith(32, {.max_context = 1024, .n_pages = 40});
  const Tokens secret = Prompt(400, 7);
  Request request = {.prompt = secret, .max_tokens = 5};
  request.cache_salt = 1;
  EXPECT_EQ(Ask(*engine, request).n_cached_tokens, 0);
  for (const uint64_t salt : {0, 2}) {
    request.cache_salt = salt;
    const Answer answer = Ask(*engine, request);
    EXPECT_EQ(answer.n_cached_tokens, 0) << "salt " << salt;
    EXPECT_EQ(answer.tokens, Expected(secret, 5));
  }
  request.cache_salt = 1;
  EXPECT_EQ(Ask(*engine, request).n_cached_tokens, 384);

  for (const int32_t at : {0, 1, 126, 127, 128, 255}) {
    SCOPED_TRACE(at);
    Request near = request;
    near.prompt[static_cast<size_t>(at)] ^= 1;
    const Answer answer = Ask(*engine, near);
    EXPECT_EQ(answer.n_cached_tokens, at / 128 * 128);
    EXPECT_EQ(answer.tokens, Expected(near.prompt, 5));
  }
  Request shifted = request;  // its pages 1, 2 are pages 0, 1 of the secret
  shifted.prompt = Concat(Prompt(128, 50), secret);
  EXPECT_EQ(Ask(*engine, shifted).n_cached_tokens, 0);
  Request tail = request;  // begins with the secret's second page
  tail.prompt.assign(secret.begin() + 128, secret.end());
  const Answer answer = Ask(*engine, tail);
  EXPECT_EQ(answer.n_cached_tokens, 0);
  EXPECT_EQ(answer.tokens, Expected(tail.prompt, 5));
}

// Two that run at once share pages; the first to end must not take them away.
TEST_F(PrefixCacheTest, SharedPagesLiveAsLongAsTheirLastUser) {
  const auto engine =
      MakeWith(16, {.n_slots = 3, .max_context = 512, .n_pages = 9});
  const Tokens prompt = Prompt(300);
  Ask(*engine, prompt, 2);
  const RequestId brief = Submit(*engine, Concat(prompt, {1}), 3);
  const RequestId lasting = Submit(*engine, Concat(prompt, {2}), 150);
  while (answers_[brief].finish == FinishReason::kNone) Step(*engine);
  // Others need all other pages, again and again.
  for (int32_t i = 0; i < 6; ++i) Submit(*engine, Prompt(350, 20 + i), 20);
  Drain(*engine);
  EXPECT_EQ(answers_[lasting].n_cached_tokens, 256);
  EXPECT_EQ(answers_[lasting].tokens, Expected(Concat(prompt, {2}), 150));
}

TEST_F(PrefixCacheTest, TheLongestUnusedPrefixGoes) {
  const auto engine = MakeWith(16, {.max_context = 512, .n_pages = 6});
  Ask(*engine, Prompt(200, 1), 2);  // 1 full page each
  Ask(*engine, Prompt(200, 2), 2);
  Ask(*engine, Prompt(200, 1), 2);
  Ask(*engine, Prompt(500, 3), 2);  // 4 pages: leaves 2
  EXPECT_EQ(Ask(*engine, Prompt(200, 1), 2).n_cached_tokens, 128);
  Ask(*engine, Prompt(500, 4), 2);
  EXPECT_EQ(Ask(*engine, Prompt(200, 1), 2).n_cached_tokens, 128);
  EXPECT_EQ(Ask(*engine, Prompt(200, 2), 2).n_cached_tokens, 0);
}

// Four points for ten pages: they lie apart, and the end of the prompt has one.
TEST_F(PrefixCacheTest, ResumePointsAreThinned) {
  const auto engine = MakeWith(4, {.max_context = 2048});
  const Tokens prompt = Prompt(1300);
  Ask(*engine, prompt, 2);
  EXPECT_EQ(engine->stats().n_resume_points, 4);
  EXPECT_EQ(Ask(*engine, prompt, 2).n_cached_tokens, 1280);
  for (const int32_t n : {1200, 900, 600}) {
    SCOPED_TRACE(n);
    Tokens part(prompt.begin(), prompt.begin() + n);
    const Answer answer = Ask(*engine, part, 5);
    EXPECT_EQ(answer.tokens, Expected(part, 5));
    EXPECT_GE(answer.n_cached_tokens, n - 512 - 128);
  }
}

TEST_F(PrefixCacheTest, OffByDefault) {
  const auto engine = Make({.max_context = 512});
  Ask(*engine, Prompt(300), 2);
  EXPECT_EQ(Ask(*engine, Prompt(300), 2).n_cached_tokens, 0);
  EXPECT_EQ(engine->stats().n_cached_pages, 0);
  EXPECT_EQ(engine->stats().n_prefix_misses, 0);
}

// Prompts that are random mixtures of few pieces, few pages and points, two
// salts, all slots busy: every answer as if alone.
TEST_F(PrefixCacheTest, RandomPrefixes) {
  std::mt19937 random(4);
  const auto draw = [&](uint32_t n) {
    return static_cast<int32_t>(random() % n);
  };
  for (const bool speculative : {false, true}) {
    const auto engine = MakeWith(9, {.n_slots = 3,
                                     .max_tokens_per_step = 150,
                                     .max_context = 900,
                                     .n_pages = 16,
                                     .n_draft_tokens = speculative ? 1 : 0});
    std::map<RequestId, Request> requests;
    answers_.clear();
    for (int32_t i = 0; i < 150; ++i) {
      Request request = {.max_tokens = 1 + draw(40)};
      request.cache_salt = static_cast<uint64_t>(draw(2));
      for (int32_t piece = draw(6) + 1; piece > 0; --piece) {
        request.prompt =
            Concat(request.prompt, Prompt(64 + 64 * draw(2), draw(2)));
      }
      request.prompt = Concat(request.prompt, Prompt(draw(20), draw(50)));
      requests[Submit(*engine, request)] = request;
      for (int32_t steps = draw(12); steps > 0; --steps) Step(*engine);
    }
    Drain(*engine);
    for (const auto& [id, request] : requests) {
      ASSERT_EQ(answers_[id].tokens,
                Expected(request.prompt, request.max_tokens));
    }
    EXPECT_GT(engine->stats().n_prefix_hits, 20);
    EXPECT_EQ(engine->stats().n_free_pages + engine->stats().n_cached_pages,
              16);
  }
}

}  // namespace
}  // namespace belay::engine
