// SPDX-License-Identifier: Apache-2.0
// The load test against a server whose every fault is known, and its
// arithmetic against samples made by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/error_ids.h"
#include "diag/catalogue.h"
#include "http/server.h"
#include "toolkit/loadtest/prompts.h"
#include "toolkit/loadtest/report.h"
#include "toolkit/loadtest/runner.h"
#include "toolkit/loadtest/summary.h"
#include "toolkit/loadtest/text_check.h"

namespace belay::loadtest {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

std::string Chunk(const std::string& text) {
  const Json json = {{"choices", {{{"delta", {{"content", text}}}}}}};
  return "data: " + json.dump() + "\n\n";
}
std::string End(int n_tokens) {
  const Json stop = {
      {"choices", {{{"delta", Json::object()}, {"finish_reason", "stop"}}}}};
  const Json usage = {
      {"choices", Json::array()},
      {"usage", {{"prompt_tokens", 10}, {"completion_tokens", n_tokens}}}};
  return "data: " + stop.dump() + "\n\ndata: " + usage.dump() +
         "\n\ndata: [DONE]\n\n";
}

// Does what the prompt says.
class FakeServer {
 public:
  FakeServer() {
    auto server = http::Server::Create(
        {}, [this](http::Request request,
                   std::shared_ptr<http::Responder> responder) {
          Handle(request, std::move(responder));
        });
    BELAY_CHECK(server.ok());
    server_ = std::move(*server);
  }
  ~FakeServer() {
    server_.reset();
    for (std::thread& thread : threads_) thread.join();
  }
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(server_->port());
  }
  int most_at_once() const { return most_; }
  int n_requests() const { return n_requests_; }

 private:
  void Handle(const http::Request& request,
              std::shared_ptr<http::Responder> responder) {
    if (request.path == "/v1/models") {
      http::Response response;
      response.body = R"({"data":[{"id":"fake"}]})";
      return responder->Send(std::move(response));
    }
    ++n_requests_;
    const Json body = Json::parse(request.body);
    const std::string wish = body["messages"][0]["content"];
    const std::lock_guard<std::mutex> lock(mutex_);
    threads_.emplace_back(
        [this, wish, responder] { Answer(wish, *responder); });
  }

  void Answer(const std::string& wish, http::Responder& responder) {
    most_ = std::max(most_.load(), ++n_at_once_);
    Write(wish, responder);
    --n_at_once_;
  }

  static void Write(const std::string& wish, http::Responder& responder) {
    if (wish == "refuse") {
      http::Response response;
      response.status = 429;
      response.body = R"({"error":{"code":"ENG-006","message":"full"}})";
      return responder.Send(std::move(response));
    }
    http::Response head;
    head.content_type = "text/event-stream";
    responder.Begin(std::move(head));
    if (wish == "nothing") {
      responder.Write(End(5));
      return responder.End();
    }
    if (wish == "slow") {
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
    }
    if (wish == "hang") {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));
    }
    responder.Write(Chunk("Hello"));
    if (wish == "slow") {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (wish == "garbage") responder.Write(Chunk("a\xef\xbf\xbd"));
    if (wish == "repeat") {
      for (int i = 0; i < 40; ++i) responder.Write(Chunk(" the same"));
      responder.Write(End(41));
      return responder.End();
    }
    if (wish == "cut") return responder.Abort();
    responder.Write(Chunk(" world"));
    if (wish == "unfinished") {
      responder.Write("data: [DONE]\n\n");
    } else {
      responder.Write(End(3));
    }
    responder.End();
  }

  std::unique_ptr<http::Server> server_;
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::atomic<int> n_at_once_{0};
  std::atomic<int> most_{0};
  std::atomic<int> n_requests_{0};
};

Plan PlanFor(const FakeServer& server, const std::string& wishes) {
  Plan plan;
  plan.url = server.url();
  plan.levels = {{.concurrency = 2, .rate = 0}};
  plan.n_requests = 4;
  plan.n_warmup = 1;
  plan.prompts = *ParsePrompts(wishes, "test");
  return plan;
}

std::vector<std::string> FindingIds(const LoadReport& report) {
  std::vector<std::string> ids;
  for (const Status& finding : report.findings) {
    ids.push_back(ErrorIdOf(finding));
  }
  return ids;
}

TEST(LoadTestTest, ASoundServerHasNoFindings) {
  const FakeServer server;
  Plan plan = PlanFor(server, "\"hello\"");
  plan.levels = {{.concurrency = 1, .rate = 0}, {.concurrency = 3, .rate = 0}};
  const auto report = RunLoad(plan, {});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->model, "fake");
  EXPECT_THAT(FindingIds(*report), testing::IsEmpty());
  ASSERT_EQ(report->levels.size(), 2u);
  EXPECT_EQ(server.n_requests(), 2 * (4 + 1));
  EXPECT_LE(server.most_at_once(), 3);
  for (const LevelResult& level : report->levels) {
    EXPECT_EQ(level.samples.size(), 4u);  // the warm-up is not in it
    EXPECT_EQ(level.n_ok, 4u);
    EXPECT_EQ(level.ttft_s.n, 4u);
    EXPECT_GT(level.output_tokens_per_s, 0);
    EXPECT_EQ(level.samples[0].text, "Hello world");
    EXPECT_EQ(level.samples[0].n_prompt, 10);
  }
}

TEST(LoadTestTest, KnownDelaysAreMeasured) {
  const FakeServer server;
  Plan plan = PlanFor(server, "\"slow\"");
  plan.slo = *ParseSlo("ttft_ms=39");
  const auto report = RunLoad(plan, {});
  ASSERT_TRUE(report.ok());
  const LevelResult& level = report->levels[0];
  EXPECT_GE(level.ttft_s.p50, 0.040);
  EXPECT_GE(level.gap_s.p50, 0.020);
  EXPECT_GE(level.tpot_s.p50, 0.010);  // 20 ms for two further tokens
  EXPECT_GE(level.e2e_s.p50, 0.060);
  EXPECT_EQ(level.n_good, 0u);
  EXPECT_THAT(FindingIds(*report), testing::ElementsAre("LOAD-016"));
}

TEST(LoadTestTest, EveryFaultIsFoundAndNamed) {
  const FakeServer server;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"refuse", "LOAD-010"},     {"cut", "LOAD-011"},
      {"unfinished", "LOAD-011"}, {"garbage", "LOAD-012"},
      {"repeat", "LOAD-013"},     {"nothing", "LOAD-014"}};
  for (const auto& [wish, id] : cases) {
    const auto report = RunLoad(PlanFor(server, "\"" + wish + "\""), {});
    ASSERT_TRUE(report.ok());
    ASSERT_THAT(FindingIds(*report), testing::ElementsAre(id)) << wish;
    EXPECT_THAT(std::string(report->findings[0].message()), HasSubstr("got 4"));
  }
  const auto refused = RunLoad(PlanFor(server, "\"refuse\""), {});
  ASSERT_EQ(refused->levels[0].errors.size(), 1u);
  EXPECT_EQ(refused->levels[0].errors[0].first, "HTTP 429 ENG-006");
}

TEST(LoadTestTest, ATimeoutIsNoCut) {
  const FakeServer server;
  Plan plan = PlanFor(server, "\"hang\"");
  plan.n_requests = 1;
  plan.n_warmup = 0;
  plan.timeout_s = 0.1;
  const auto report = RunLoad(plan, {});
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->levels[0].samples.size(), 1u);
  EXPECT_EQ(report->levels[0].samples[0].outcome, Outcome::kTimeout);
}

TEST(LoadTestTest, OpenLoopSendsAboutAtItsRate) {
  const FakeServer server;
  Plan plan = PlanFor(server, "\"hello\"");
  plan.levels = {{.concurrency = 0, .rate = 100}};
  plan.seconds = 0.4;
  const auto report = RunLoad(plan, {});
  ASSERT_TRUE(report.ok());
  const LevelResult& level = report->levels[0];
  // The arrivals are random, but those of the seed: always the same number.
  EXPECT_GT(level.samples.size(), 20u);
  EXPECT_LT(level.samples.size(), 65u);
  for (size_t i = 1; i < level.samples.size(); ++i) {
    EXPECT_GE(level.samples[i].sent_s, level.samples[i].due_s);
  }
  const auto again = RunLoad(plan, {});
  EXPECT_EQ(again->levels[0].samples.size(), level.samples.size());
}

TEST(LoadTestTest, StopsWhenAskedAndKeepsWhatWasMeasured) {
  const FakeServer server;
  Plan plan = PlanFor(server, "\"hang\"");
  plan.n_warmup = 0;
  plan.n_requests = 1000;
  std::atomic<bool> stop{false};
  int n_calls = 0;
  RunHooks hooks;
  hooks.stop = &stop;
  hooks.progress = [&](const LoadProgress& progress) {
    EXPECT_EQ(progress.n_planned, 1000u);
    if (++n_calls == 2) stop = true;
  };
  const auto report = RunLoad(plan, hooks);
  ASSERT_TRUE(report.ok());
  EXPECT_TRUE(report->levels[0].stopped);
  EXPECT_LT(report->levels[0].samples.size(), 20u);
}

TEST(LoadTestTest, NoServerIsAnError) {
  Plan plan;
  plan.url = "http://127.0.0.1:1";
  plan.prompts = DefaultPrompts();
  EXPECT_EQ(ErrorIdOf(RunLoad(plan, {}).status()), "LOAD-001");
  plan.url = "nonsense";
  EXPECT_EQ(ErrorIdOf(RunLoad(plan, {}).status()), "HTTP-002");
}

TEST(LoadSummaryTest, PercentilesAreNearestRank) {
  std::vector<double> values;
  for (int i = 100; i >= 1; --i) values.push_back(i);
  const Percentiles p = PercentilesOf(values);
  EXPECT_EQ(p.p50, 50);
  EXPECT_EQ(p.p90, 90);
  EXPECT_EQ(p.p99, 99);
  EXPECT_EQ(p.max, 100);
  EXPECT_EQ(p.mean, 50.5);
  EXPECT_EQ(PercentilesOf({7}).p99, 7);
  EXPECT_EQ(PercentilesOf({}).n, 0u);
}

LevelResult HandMade() {
  LevelResult level;
  level.level = {.concurrency = 0, .rate = 2};
  level.seconds = 10;
  Sample sample;
  sample.due_s = 1;
  sample.sent_s = 1.5;  // half a second late: it counts
  sample.first_s = 2;
  sample.end_s = 4;
  sample.n_completion = 11;
  sample.n_prompt = 100;
  sample.finish = "stop";
  sample.text = "a";
  level.samples = {sample, sample, sample};
  level.samples[1].text = "b";
  level.samples[2].outcome = Outcome::kCut;
  return level;
}

TEST(LoadSummaryTest, FiguresOfSamplesMadeByHand) {
  Plan plan;
  plan.slo = *ParseSlo("ttft_ms=1000,tpot_ms=200,share=0.5");
  LevelResult level = HandMade();
  Summarize(plan, &level);
  EXPECT_EQ(level.n_ok, 2u);
  EXPECT_EQ(level.n_good, 2u);
  EXPECT_DOUBLE_EQ(level.ttft_s.p50, 1.0);
  EXPECT_DOUBLE_EQ(level.tpot_s.max, 0.2);
  EXPECT_DOUBLE_EQ(level.e2e_s.mean, 3.0);
  EXPECT_DOUBLE_EQ(level.output_tokens_per_s, 2.2);
  EXPECT_DOUBLE_EQ(level.input_tokens_per_s, 20);
  EXPECT_DOUBLE_EQ(level.worst_lag_s, 0.5);
  EXPECT_EQ(level.n_differing, 1u);  // one prompt, "a" and "b"
  const auto findings = FindingsOf(plan, {level});
  std::vector<std::string> ids;
  for (const Status& finding : findings) ids.push_back(ErrorIdOf(finding));
  EXPECT_THAT(ids, testing::ElementsAre("LOAD-011", "LOAD-015", "LOAD-017"));
}

TEST(LoadReportTest, JsonAndHtmlHoldTheFigures) {
  const auto catalogue = diag::Catalogue::LoadEmbedded();
  ASSERT_TRUE(catalogue.ok());
  LoadReport report;
  report.model = "<m>";
  report.plan.prompts = DefaultPrompts();
  LevelResult level = HandMade();
  Summarize(report.plan, &level);
  report.levels = {level, level};
  report.levels[1].level.rate = 4;
  report.findings = FindingsOf(report.plan, report.levels);
  const auto json = ReportToJson(report, *catalogue, diag::Lang::kEn);
  EXPECT_EQ(json["levels"][0]["ttft_ms"]["p50"], 1000.0);
  EXPECT_EQ(json["levels"][0]["errors"]["cut stream"], 1);
  EXPECT_EQ(json["findings"][0]["id"], "LOAD-011");
  const std::string html = ReportToHtml(report, *catalogue, diag::Lang::kEn);
  EXPECT_THAT(html, HasSubstr("<svg"));
  EXPECT_THAT(html, HasSubstr("&lt;m&gt;"));
  EXPECT_THAT(html, HasSubstr("LOAD-011"));
  EXPECT_THAT(html, testing::Not(HasSubstr("nan")));
  EXPECT_THAT(html, testing::Not(HasSubstr("http-equiv")));
  EXPECT_THAT(ReportToHtml(report, *catalogue, diag::Lang::kZh),
              HasSubstr("\xe5\x8e\x8b\xe5\x8a\x9b"));
}

TEST(LoadTextCheckTest, OnlyWhatNoSoundModelWrites) {
  EXPECT_FALSE(CheckText("A sentence.\nAnother one, 1, 2, 3.", 9).any());
  EXPECT_FALSE(CheckText("na na na na na na na na", 8).any());
  EXPECT_FALSE(CheckText(std::string(100, '='), 10).any());
  EXPECT_FALSE(CheckText("", 1).any());
  EXPECT_TRUE(CheckText("", 5).empty);
  std::string loop = "It is";
  for (int i = 0; i < 12; ++i) loop += " what it is and";
  EXPECT_TRUE(CheckText(loop, 50).repeats);
  EXPECT_TRUE(CheckText(std::string(200, '!'), 50).repeats);
  EXPECT_TRUE(CheckText("a<\xef\xbd\x9c"
                        "User",
                        3)
                  .garbage);
  EXPECT_TRUE(CheckText("x</think>", 3).garbage);
  EXPECT_TRUE(CheckText(std::string("a\0b", 3), 3).garbage);
}

TEST(LoadPromptsTest, ReadsEveryFormAndNamesTheLine) {
  const auto prompts = ParsePrompts(
      "\"a\"\n\n{\"prompt\":\"b\",\"max_tokens\":7}\n"
      "{\"messages\":[{\"role\":\"user\",\"content\":\"c\"}]}\n",
      "f");
  ASSERT_TRUE(prompts.ok());
  ASSERT_EQ(prompts->size(), 3u);
  EXPECT_EQ((*prompts)[1].max_tokens, 7);
  EXPECT_THAT((*prompts)[2].messages, HasSubstr("\"c\""));
  for (const char* bad : {"3", "{}", "{\"prompt\":3}", "nope", ""}) {
    EXPECT_EQ(ErrorIdOf(ParsePrompts(bad, "f").status()), "LOAD-002") << bad;
  }
  EXPECT_THAT(std::string(ParsePrompts("\"a\"\n[", "f").status().message()),
              HasSubstr("f:2"));
}

TEST(LoadPromptsTest, ShapesLevelsAndGoals) {
  const auto shape = ParseShape("512:128");
  ASSERT_TRUE(shape.ok());
  const auto made = MakePrompts(*shape, 3, 1);
  ASSERT_EQ(made.size(), 3u);
  EXPECT_EQ(made[0].max_tokens, 128);
  EXPECT_NE(made[0].messages, made[1].messages);
  for (const char* bad : {"", "5", "0:1", "1:-1", "a:b", "1:2:3"}) {
    EXPECT_EQ(ErrorIdOf(ParseShape(bad).status()), "ARG-001") << bad;
  }
  const auto levels = ParseConcurrency("1,4,16");
  ASSERT_TRUE(levels.ok());
  EXPECT_EQ((*levels)[2].concurrency, 16);
  EXPECT_FALSE(ParseConcurrency("1,,2").ok());
  EXPECT_FALSE(ParseSlo("ttft=3").ok());
  EXPECT_FALSE(ParseSlo("ttft_ms=-3").ok());
  EXPECT_FALSE(ParseSlo("share=2").ok());
}

}  // namespace
}  // namespace belay::loadtest
