// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "capi/belay.h"

namespace belay {
namespace {

using testing::HasSubstr;

int Collect(void* user, belay_piece piece, const char* text, size_t n_bytes) {
  auto* out = static_cast<std::string*>(user);
  EXPECT_EQ(std::strlen(text), n_bytes);
  if (piece == BELAY_CONTENT) out->append(text, n_bytes);
  return 0;
}

class CapiTest : public testing::Test {
 protected:
  // One model for all tests: it is only read.
  static void SetUpTestSuite() {
    belay_model_options options;
    belay_model_options_init(&options);
    options.max_context = 1024;
    ASSERT_EQ(belay_model_load("data/demo", &options, &model_), BELAY_OK)
        << belay_last_error();
  }
  static void TearDownTestSuite() {
    belay_model_free(model_);
    model_ = nullptr;
  }
  void SetUp() override {
    ASSERT_EQ(belay_session_new(model_, &session_), BELAY_OK);
    belay_generate_options_init(&options_);
    options_.max_tokens = 12;
  }
  void TearDown() override { belay_session_free(session_); }

  belay_status Say(const char* role, const std::string& text) {
    return belay_session_message(session_, role, text.data(), text.size());
  }
  std::string Answer() {
    std::string text;
    EXPECT_EQ(belay_generate(session_, &options_, Collect, &text, &result_),
              BELAY_OK)
        << belay_last_error();
    return text;
  }

  static belay_model* model_;
  belay_session* session_ = nullptr;
  belay_generate_options options_ = {};
  belay_result result_ = {sizeof(belay_result), BELAY_STOP, 0, 0, 0};
};
belay_model* CapiTest::model_ = nullptr;

TEST_F(CapiTest, AnswersMessagesAndGoesOn) {
  ASSERT_EQ(Say("user", "What is error 507034?"), BELAY_OK);
  const std::string first = Answer();
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(result_.n_generated, 12);
  EXPECT_EQ(result_.finish, BELAY_LENGTH);
  EXPECT_EQ(belay_session_tokens(session_),
            result_.n_prompt + result_.n_generated);
  // Nothing to answer until there is a new message.
  EXPECT_EQ(belay_generate(session_, &options_, nullptr, nullptr, nullptr),
            BELAY_ERROR);
  EXPECT_STREQ(belay_last_error_id(), "CAPI-001");
  const int64_t n_before = result_.n_prompt;
  ASSERT_EQ(Say("user", "And 507035?"), BELAY_OK);
  Answer();
  EXPECT_GT(result_.n_prompt, n_before);

  // Greedy: another session says the same.
  belay_session* other = nullptr;
  ASSERT_EQ(belay_session_new(model_, &other), BELAY_OK);
  const std::string question = "What is error 507034?";
  ASSERT_EQ(
      belay_session_message(other, "user", question.data(), question.size()),
      BELAY_OK);
  std::string again;
  ASSERT_EQ(belay_generate(other, &options_, Collect, &again, nullptr),
            BELAY_OK);
  EXPECT_EQ(again, first);
  belay_session_free(other);
}

TEST_F(CapiTest, PlainTextGoesOnWhereItIs) {
  const std::string text = "Error 507034 is";
  ASSERT_EQ(belay_session_feed(session_, text.data(), text.size()), BELAY_OK);
  const int64_t n = belay_session_tokens(session_);
  EXPECT_GT(n, 0);
  Answer();
  EXPECT_EQ(result_.n_prompt, n);
  const int64_t n_after = belay_session_tokens(session_);
  Answer();  // the answer is part of the text
  EXPECT_EQ(result_.n_prompt, n_after);
  EXPECT_EQ(Say("user", "x"), BELAY_ERROR);
  EXPECT_STREQ(belay_last_error_id(), "CAPI-001");
}

TEST_F(CapiTest, TheCallbackCanEndIt) {
  ASSERT_EQ(Say("user", "Hello"), BELAY_OK);
  int n_calls = 0;
  const auto stop = [](void* user, belay_piece, const char*, size_t) {
    return ++*static_cast<int*>(user) == 2 ? 1 : 0;
  };
  options_.max_tokens = 200;
  ASSERT_EQ(belay_generate(session_, &options_, stop, &n_calls, &result_),
            BELAY_OK);
  EXPECT_EQ(result_.finish, BELAY_CANCELLED);
  EXPECT_LT(result_.n_generated, 200);
}

TEST_F(CapiTest, CancelFromTheCallbackEndsIt) {
  ASSERT_EQ(Say("user", "Hello"), BELAY_OK);
  const auto cancel = [](void* user, belay_piece, const char*, size_t) {
    belay_session_cancel(static_cast<belay_session*>(user));
    return 0;
  };
  options_.max_tokens = 200;
  ASSERT_EQ(belay_generate(session_, &options_, cancel, session_, &result_),
            BELAY_OK);
  EXPECT_EQ(result_.finish, BELAY_CANCELLED);
  // The next one is not affected.
  options_.max_tokens = 3;
  ASSERT_EQ(Say("user", "Again"), BELAY_OK);
  Answer();
  EXPECT_EQ(result_.n_generated, 3);
}

// Four threads on a batch of two: every answer is that of a session alone, and
// some of them ran side by side.
TEST(CapiBatchTest, SessionsGenerateAtOnce) {
  belay_model_options options;
  belay_model_options_init(&options);
  options.max_context = 512;
  options.max_batch = 2;
  belay_model* model = nullptr;
  ASSERT_EQ(belay_model_load("data/demo", &options, &model), BELAY_OK)
      << belay_last_error();
  const std::string questions[] = {"Hello!", "What is error 507034?",
                                   "Who are you?", "What is 43 + 37?"};
  struct Talk {
    std::string text;
    std::atomic<int>* n_running = nullptr;
    std::atomic<int>* n_most = nullptr;
    bool has_begun = false;
  };
  std::atomic<int> n_running{0};
  std::atomic<int> n_most{0};
  const auto on_text = [](void* user, belay_piece, const char* text,
                          size_t n_bytes) {
    auto* talk = static_cast<Talk*>(user);
    talk->text.append(text, n_bytes);
    if (!std::exchange(talk->has_begun, true)) ++*talk->n_running;
    *talk->n_most = std::max(talk->n_most->load(), talk->n_running->load());
    return 0;
  };
  const auto ask = [&](const std::string& question) {
    belay_session* session = nullptr;
    EXPECT_EQ(belay_session_new(model, &session), BELAY_OK);
    EXPECT_EQ(belay_session_message(session, "user", question.data(),
                                    question.size()),
              BELAY_OK);
    belay_generate_options generate;
    belay_generate_options_init(&generate);
    generate.max_tokens = 40;
    Talk talk = {.text = {}, .n_running = &n_running, .n_most = &n_most};
    EXPECT_EQ(belay_generate(session, &generate, on_text, &talk, nullptr),
              BELAY_OK)
        << belay_last_error();
    --n_running;
    belay_session_free(session);
    return talk.text;
  };
  std::vector<std::string> alone;
  for (const std::string& question : questions) alone.push_back(ask(question));
  EXPECT_EQ(n_most.load(), 1);
  for (int round = 0; round < 20 && n_most < 2; ++round) {
    std::vector<std::string> together(4);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] { together[i] = ask(questions[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(together, alone);
  }
  EXPECT_GE(n_most.load(), 2);
  belay_model_free(model);
}

TEST_F(CapiTest, ErrorsAreValuesWithAnId) {
  EXPECT_EQ(belay_generate(nullptr, nullptr, nullptr, nullptr, nullptr),
            BELAY_ERROR);
  EXPECT_STREQ(belay_last_error_id(), "CAPI-001");
  EXPECT_EQ(belay_session_feed(session_, nullptr, 3), BELAY_ERROR);
  EXPECT_EQ(Say("wizard", "x"), BELAY_ERROR);
  EXPECT_STREQ(belay_last_error_id(), "CHAT-003");
  options_.temperature = -1;
  ASSERT_EQ(Say("user", "x"), BELAY_OK);
  EXPECT_EQ(belay_generate(session_, &options_, nullptr, nullptr, nullptr),
            BELAY_ERROR);
  EXPECT_STREQ(belay_last_error_id(), "ARG-007");
  EXPECT_THAT(belay_last_error(), HasSubstr("temperature"));
  belay_model* none = nullptr;
  EXPECT_EQ(belay_model_load("/nowhere", nullptr, &none), BELAY_ERROR);
  EXPECT_EQ(none, nullptr);
  EXPECT_THAT(belay_last_error(), HasSubstr("/nowhere"));
  belay_session_free(nullptr);
  belay_model_free(nullptr);
  EXPECT_STRNE(belay_version(), "");
}

TEST_F(CapiTest, AnOlderCallersStructsWork) {
  // Only the first two members, as if the rest had not been invented yet.
  belay_generate_options old = {};
  old.struct_bytes = offsetof(belay_generate_options, temperature);
  old.max_tokens = 2;
  ASSERT_EQ(Say("user", "Hello"), BELAY_OK);
  ASSERT_EQ(belay_generate(session_, &old, nullptr, nullptr, &result_),
            BELAY_OK);
  EXPECT_LE(result_.n_generated, 2);
}

}  // namespace
}  // namespace belay
