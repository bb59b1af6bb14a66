// SPDX-License-Identifier: Apache-2.0
// The canary finds what it should, and the engine's thread keeps its promises.
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/error_ids.h"
#include "gtest/gtest.h"
#include "server/core/canary.h"
#include "server/core/fake_engine.h"
#include "server/core/metrics.h"
#include "server/core/runner.h"

namespace belay::server {
namespace {

constexpr int32_t kEos = 1;

// Depends on the whole prefix, the seed and nothing else, and ends by itself
// after 20 tokens.
int32_t Sound(const FakeEngine::Running& running, size_t /*n_running*/) {
  uint64_t hash = running.request.sampling.temperature > 0
                      ? running.request.sampling.seed
                      : 1;
  for (const int32_t token : running.request.prompt) {
    hash = hash * 31 + static_cast<uint64_t>(token);
  }
  for (const int32_t token : running.tokens) {
    hash = hash * 31 + static_cast<uint64_t>(token);
  }
  hash ^= hash >> 17;
  if (running.tokens.size() >= 20) return kEos;
  return static_cast<int32_t>(300 + hash % 1000);
}

ModelInfo Info() {
  ModelInfo info;
  info.name = "fake";
  info.tokenizer = *text::Tokenizer::Open("data/demo");
  info.eos_ids = {kEos};
  info.vocab_size = 2560;
  info.max_context = 1024;
  info.n_slots = 2;
  return info;
}

// The id of the first finding that is no success, or "".
std::string Canary(const FakeEngine::Next& next, bool* is_warning = nullptr) {
  FakeEngine engine(next);
  const auto findings = RunCanary(
      engine, Info(), [](const std::string&) {}, [] { return false; });
  EXPECT_FALSE(engine.HasWork());
  for (const CanaryFinding& finding : findings) {
    if (finding.status.ok()) continue;
    if (is_warning != nullptr) *is_warning = finding.is_warning;
    return ErrorIdOf(finding.status);
  }
  EXPECT_EQ(findings.size(), 5u);
  return "";
}

TEST(CanaryTest, ASoundModelPasses) { EXPECT_EQ(Canary(Sound), ""); }

TEST(CanaryTest, NanFromACertainLengthOn) {
  EXPECT_EQ(Canary([](const auto& running, size_t n) {
              return running.request.prompt.size() >= 4 ? -1
                                                        : Sound(running, n);
            }),
            kSrvCanaryNotFinite.id);
}

TEST(CanaryTest, AnswersThatChange) {
  int n_calls = 0;
  EXPECT_EQ(Canary([&n_calls](const auto&, size_t) {
              return 300 + ++n_calls % 1000;
            }),
            kSrvCanaryNotRepeatable.id);
}

TEST(CanaryTest, AnswersThatDependOnNeighbours) {
  EXPECT_EQ(Canary([](const auto& running, size_t n) {
              return Sound(running, n) + (n > 1 ? 1 : 0);
            }),
            kSrvCanaryBatch.id);
}

TEST(CanaryTest, LoopsAreAWarning) {
  bool is_warning = false;
  EXPECT_EQ(Canary(
                [](const auto& running, size_t) {
                  return static_cast<int32_t>(300 + running.tokens.size() % 3);
                },
                &is_warning),
            kSrvCanaryRepetition.id);
  EXPECT_TRUE(is_warning);
}

TEST(CanaryTest, MarkersAreAWarning) {
  bool is_warning = false;
  EXPECT_EQ(Canary(
                [](const auto& running, size_t n) {
                  // <|begin_of_sentence|> in the middle.
                  return running.tokens.size() == 5 ? 0 : Sound(running, n);
                },
                &is_warning),
            kSrvCanaryMarkers.id);
  EXPECT_TRUE(is_warning);
}

TEST(CanaryTest, Loops) {
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 40; ++i) tokens.push_back(i);
  EXPECT_FALSE(IsLoop(tokens));
  for (int i = 0; i < 14; ++i) {
    tokens.push_back(7);
    tokens.push_back(8);
  }
  EXPECT_TRUE(IsLoop(tokens));
  tokens.push_back(9);
  EXPECT_FALSE(IsLoop(tokens));
}

class RunnerTest : public ::testing::Test {
 protected:
  void StartRunner(int32_t max_queue = 4) {
    RunnerOptions options;
    options.max_queue = max_queue;
    options.canary = CanaryMode::kOff;
    options.log = [this](const std::string& line) { Note(line); };
    runner_ = std::make_unique<Runner>(
        std::move(options),
        [this](const std::function<void(double)>& progress) -> StatusOr<Model> {
          progress(0.5);
          Model model;
          auto engine = std::make_unique<FakeEngine>(Sound);
          engine_ = engine.get();
          model.engine = std::move(engine);
          model.info = Info();
          return model;
        });
    Wait([&] { return runner_->readiness().stage == Stage::kReady; });
  }

  static void Wait(const std::function<bool()>& done) {
    for (int i = 0; i < 5000 && !done(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(done());
  }

  void Note(const std::string& line) {
    const std::lock_guard lock(mutex_);
    log_.push_back(line);
  }
  std::vector<std::string> Log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

  std::shared_ptr<Channel> MakeChannel() {
    return std::make_shared<Channel>([this] { ++n_wakes_; });
  }

  static engine::Request Ask(int32_t n_tokens) {
    engine::Request request;
    request.prompt = {5, 6, 7};
    request.max_tokens = n_tokens;
    return request;
  }

  std::atomic<int> n_wakes_{0};
  FakeEngine* engine_ = nullptr;
  std::mutex mutex_;
  std::vector<std::string> log_;
  std::unique_ptr<Runner> runner_;
};

TEST_F(RunnerTest, TokensComeInOrder) {
  StartRunner();
  const auto channel = MakeChannel();
  ASSERT_TRUE(runner_->Submit({Ask(7), Ask(3)}, channel).ok());
  Wait([&] { return runner_->n_live() == 0; });
  std::vector<int32_t> tokens[2];
  int n_ends = 0;
  for (const TokenEvent& event : channel->Take()) {
    tokens[event.choice].push_back(event.token);
    n_ends += event.finish == engine::FinishReason::kLength ? 1 : 0;
  }
  EXPECT_EQ(tokens[0].size(), 7u);
  EXPECT_EQ(tokens[1].size(), 3u);
  EXPECT_EQ(n_ends, 2);
  // A reader that does not come is not called again and again.
  EXPECT_EQ(n_wakes_, 1);
}

TEST_F(RunnerTest, AFullQueueRefusesAllOrNothing) {
  StartRunner(/*max_queue=*/1);  // beside two that run
  engine_->is_paused = true;
  const auto channel = MakeChannel();
  ASSERT_TRUE(runner_->Submit({Ask(1), Ask(1)}, channel).ok());
  EXPECT_EQ(ErrorIdOf(runner_->Submit({Ask(1), Ask(1)}, channel).status()),
            kEngQueueFull.id);
  EXPECT_EQ(runner_->n_live(), 2);
  EXPECT_TRUE(runner_->Submit({Ask(1)}, channel).ok());
  engine_->is_paused = false;
  Wait([&] { return runner_->n_live() == 0; });
}

TEST_F(RunnerTest, CancelledJobsAreSilent) {
  StartRunner();
  const auto channel = MakeChannel();
  engine_->is_paused = true;
  const auto job = runner_->Submit({Ask(1000), Ask(1000)}, channel);
  ASSERT_TRUE(job.ok());
  runner_->Cancel(*job);
  Wait([&] { return runner_->n_live() == 0; });
  EXPECT_TRUE(channel->Take().empty());
}

TEST_F(RunnerTest, OneChoiceIsCancelledAlone) {
  StartRunner();
  const auto channel = MakeChannel();
  engine_->is_paused = true;
  const auto job = runner_->Submit({Ask(15), Ask(15)}, channel);
  ASSERT_TRUE(job.ok());
  runner_->CancelChoice(*job, 0);
  Wait([&] { return runner_->n_live() == 1; });
  engine_->is_paused = false;
  Wait([&] { return runner_->n_live() == 0; });
  size_t n_tokens = 0;
  for (const TokenEvent& event : channel->Take()) {
    if (event.choice == 1 && event.token >= 0) ++n_tokens;
  }
  EXPECT_EQ(n_tokens, 15u);
}

TEST_F(RunnerTest, BadRequestsHurtNobodyElse) {
  StartRunner();
  const auto channel = MakeChannel();
  engine::Request bad = Ask(1);
  bad.sampling.temperature = -1;
  ASSERT_TRUE(runner_->Submit({bad, Ask(2)}, channel).ok());
  Wait([&] { return runner_->n_live() == 0; });
  const auto events = channel->Take();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(ErrorIdOf(events[0].error), kArgBadSampling.id);
  EXPECT_EQ(events[2].finish, engine::FinishReason::kLength);
}

TEST_F(RunnerTest, FaultsEndWhatRanAndNothingElse) {
  StartRunner();
  const auto channel = MakeChannel();
  engine_->is_paused = true;
  ASSERT_TRUE(runner_->Submit({Ask(9)}, channel).ok());
  engine_->n_faults = 1;
  engine_->is_paused = false;
  Wait([&] { return runner_->n_live() == 0; });
  const auto events = channel->Take();
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events.back().error.message(), "the device is gone");
  ASSERT_TRUE(runner_->Submit({Ask(2)}, channel).ok());
  Wait([&] { return runner_->n_live() == 0; });
  EXPECT_EQ(channel->Take().size(), 2u);
  EXPECT_EQ(runner_->readiness().stage, Stage::kReady);
}

// Also without work: what the engine keeps is given back when others need it.
TEST_F(RunnerTest, TheLogSaysWhatTheMemoryGuardDoes) {
  StartRunner();
  engine_->guard = engine::GuardState::kNoPrefixes;
  Wait([&] { return Log().size() == 1; });
  engine_->batch_limit = 1;
  engine_->guard = engine::GuardState::kSmallBatch;
  Wait([&] { return Log().size() == 2; });
  engine_->batch_limit = 2;
  Wait([&] { return Log().size() == 3; });
  engine_->guard = engine::GuardState::kNormal;
  Wait([&] { return Log().size() == 4; });
  const auto log = Log();
  const char* const want[] = {"no_prefixes, 2", "small_batch, 1",
                              "small_batch, 2", "normal, 2"};
  for (size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ(log[i].find(std::string("memory guard: ") + want[i]), 0u)
        << log[i];
  }
}

TEST_F(RunnerTest, EndsWithWorkLeft) {
  StartRunner();
  engine_->is_paused = true;
  const auto channel = MakeChannel();
  const int n_before = engine_->n_steps;
  ASSERT_TRUE(runner_->Submit({Ask(9)}, channel).ok());
  // The next step may have begun before the request came.
  Wait([&] { return engine_->n_steps > n_before + 1; });
  runner_.reset();
  const auto events = channel->Take();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(ErrorIdOf(events[0].error), kApiDraining.id);
}

TEST(RunnerLoadTest, FailuresAreKept) {
  Runner runner({}, [](const auto&) -> StatusOr<Model> {
    return MakeError(kCkptNotFound, ErrorFacts{});
  });
  for (int i = 0; i < 5000 && runner.readiness().stage != Stage::kFailed; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(ErrorIdOf(runner.readiness().error), kCkptNotFound.id);
  EXPECT_EQ(ErrorIdOf(runner.Submit({}, nullptr).status()), kApiNotReady.id);
}

TEST(MetricsTest, HistogramsAddUp) {
  Metrics metrics;
  metrics.AddAnswer({.ttft_s = 0.015, .tpot_s = -1, .e2e_s = 1000}, "stop");
  metrics.CountRequest("/infer", 200);
  metrics.CountError("API-002");
  const std::string text = metrics.Text({});
  for (const char* line :
       {"belay_ttft_seconds_bucket{le=\"0.01\"} 0\n",
        "belay_ttft_seconds_bucket{le=\"0.02\"} 1\n",
        "belay_ttft_seconds_bucket{le=\"+Inf\"} 1\n",
        "belay_ttft_seconds_sum 0.015\n", "belay_tpot_seconds_count 0\n",
        "belay_e2e_seconds_bucket{le=\"600\"} 0\n",
        "belay_e2e_seconds_bucket{le=\"+Inf\"} 1\n",
        "belay_http_requests_total{path=\"/infer\",status=\"200\"} 1\n",
        "belay_errors_total{id=\"API-002\"} 1\n",
        "belay_answers_total{finish=\"stop\"} 1\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace belay::server
