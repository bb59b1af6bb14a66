// SPDX-License-Identifier: Apache-2.0
// A decode step on the fast back end asks the heap for nothing: counted at
// malloc itself, on all threads, between two Step() calls. A program of its
// own, since it replaces the C library's malloc family.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "support/stepper.h"
#include "support/test_model.h"
#include "support/value.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> n_allocations{0};

void CountOne() {
  if (counting.load(std::memory_order_relaxed)) n_allocations.fetch_add(1);
}

}  // namespace

// glibc's own names behind the public ones; operator new ends in malloc.
extern "C" {
void* __libc_malloc(size_t);
void* __libc_calloc(size_t, size_t);
void* __libc_realloc(void*, size_t);
void* __libc_memalign(size_t, size_t);
void __libc_free(void*);

void* malloc(size_t n) noexcept {
  CountOne();
  return __libc_malloc(n);
}
void* calloc(size_t n, size_t size) noexcept {
  CountOne();
  return __libc_calloc(n, size);
}
void* realloc(void* p, size_t n) noexcept {
  CountOne();
  return __libc_realloc(p, n);
}
void* memalign(size_t alignment, size_t n) noexcept {
  CountOne();
  return __libc_memalign(alignment, n);
}
void* aligned_alloc(size_t alignment, size_t n) noexcept {
  CountOne();
  return __libc_memalign(alignment, n);
}
int posix_memalign(void** out, size_t alignment, size_t n) noexcept {
  CountOne();
  *out = __libc_memalign(alignment, n);
  return *out == nullptr ? ENOMEM : 0;
}
void free(void* p) noexcept { __libc_free(p); }
}

namespace belay::test {
namespace {

// Allocations during fn(), on any thread.
template <typename Fn>
int64_t Count(const Fn& fn) {
  n_allocations = 0;
  counting = true;
  fn();
  counting = false;
  return n_allocations;
}

TEST(AllocationCounterTest, Counts) {
  EXPECT_EQ(Count([] {}), 0);
  EXPECT_GE(Count([] { delete new volatile int(3); }), 1);
  EXPECT_GE(Count([] { std::free(std::calloc(1, 100)); }), 1);
  static std::unique_ptr<std::vector<int>> kept;
  EXPECT_EQ(Count([] { kept = std::make_unique<std::vector<int>>(10); }), 2);
}

engine::Request MakeRequest(const TestModel& model, int64_t n_prompt,
                            float temperature) {
  engine::Request request;
  request.prompt = RandomTokens(n_prompt, model.config().vocab_size, 5);
  request.max_tokens = 1000;
  request.sampling.temperature = temperature;
  request.sampling.top_k = temperature > 0 ? 20 : 0;
  request.sampling.top_p = temperature > 0 ? 0.9f : 1.0f;
  return request;
}

// Steps until every request decodes.
void Prefill(engine::Engine& engine, int64_t n_prompt_tokens) {
  while (engine.stats().n_prefill_tokens < n_prompt_tokens) {
    Value(engine.Step());
  }
  Value(engine.Step());
}

// Crosses a block of 4 and of 128 and a page border: all that a decode step
// does now and then.
void ExpectNoneInDecode(engine::Engine& engine) {
  for (int step = 0; step < 40; ++step) {
    bool ok = false;
    const int64_t n = Count([&] { ok = engine.Step().ok(); });
    ASSERT_TRUE(ok);
    ASSERT_EQ(n, 0) << "in decode step " << step;
  }
}

class NoAllocationTest : public ::testing::TestWithParam<bool> {};

TEST_P(NoAllocationTest, Decode) {
  TestModel model("data/demo", {.backend = "cpu"});
  auto engine =
      Value(engine::Engine::Create(model.parts<engine::EngineParts>(),
                                   {.n_slots = 1,
                                    .max_tokens_per_step = 64,
                                    .max_context = 1200,
                                    .n_draft_tokens = GetParam() ? 3 : 0}));
  Value(engine->Submit(MakeRequest(model, 100, 0)));
  Prefill(*engine, 100);
  ExpectNoneInDecode(*engine);
}

TEST_P(NoAllocationTest, MixedBatch) {
  TestModel model("data/demo", {.backend = "cpu"});
  auto engine =
      Value(engine::Engine::Create(model.parts<engine::EngineParts>(),
                                   {.n_slots = 3,
                                    .max_tokens_per_step = 16,
                                    .max_context = 1200,
                                    .n_draft_tokens = GetParam() ? 3 : 0}));
  Value(engine->Submit(MakeRequest(model, 110, 0)));
  Value(engine->Submit(MakeRequest(model, 20, 0.8f)));
  Prefill(*engine, 130);
  // The third prompt is still being read in chunks while two decode.
  Value(engine->Submit(MakeRequest(model, 200, 1.0f)));
  Value(engine->Step());  // admits it
  ExpectNoneInDecode(*engine);
}

// Penalties, bias, log probabilities and a constraint ask for nothing either,
// nor does the page that joins the prefix cache on the way.
class AnyToken final : public engine::TokenConstraint {
 public:
  void Allowed(std::span<uint64_t> bits) override {
    std::fill(bits.begin(), bits.end(), ~uint64_t{0});
  }
  void Accept(int32_t) override {}
  bool Done() const override { return false; }
};

TEST_P(NoAllocationTest, EverySetting) {
  TestModel model("data/demo", {.backend = "cpu"});
  auto engine =
      Value(engine::Engine::Create(model.parts<engine::EngineParts>(),
                                   {.n_slots = 2,
                                    .max_tokens_per_step = 64,
                                    .max_context = 1200,
                                    .n_draft_tokens = GetParam() ? 3 : 0,
                                    .prefix_cache_bytes = size_t{4} << 20}));
  engine::Request request = MakeRequest(model, 100, 0.8f);
  request.sampling.presence_penalty = 0.5f;
  request.sampling.frequency_penalty = 0.25f;
  request.sampling.repetition_penalty = 1.1f;
  request.sampling.logit_bias = {{5, 1.0f}, {6, -1.0f}};
  request.n_top_logprobs = 20;
  Value(engine->Submit(request));
  request.prompt[0] ^= 1;
  request.constraint = std::make_shared<AnyToken>();
  Value(engine->Submit(request));
  Prefill(*engine, 200);
  ExpectNoneInDecode(*engine);
  EXPECT_EQ(engine->stats().n_resume_points, 2);
}

INSTANTIATE_TEST_SUITE_P(All, NoAllocationTest, ::testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "Speculative" : "Plain";
                         });

}  // namespace
}  // namespace belay::test
