// SPDX-License-Identifier: Apache-2.0
#include "toolkit/loadtest/runner.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/error_ids.h"
#include "base/random.h"
#include "toolkit/loadtest/exchange.h"
#include "toolkit/loadtest/summary.h"

namespace belay::loadtest {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr auto kTick = std::chrono::milliseconds(100);

// One level, or its warm-up. The constructor's thread sends; samples come on
// the client's thread.
class LevelRun {
 public:
  struct Setup {
    const Plan* plan = nullptr;
    std::string model;
    http::Client* client = nullptr;
    const RunHooks* hooks = nullptr;
    bool warming_up = false;
  };

  LevelRun(Setup setup, Level level) : setup_(std::move(setup)) {
    result_.level = level;
  }

  // Keeps `concurrency` requests under way until `n` have been made.
  LevelResult Closed(int32_t concurrency, size_t n) {
    n_planned_ = n;
    std::unique_lock<std::mutex> lock(mutex_);
    while (n_done_ < n && !stopped()) {
      while (calls_.size() < static_cast<size_t>(concurrency) && n_sent_ < n) {
        Send(lock, Now());
      }
      Wait(lock, Clock::now() + kTick);
    }
    return Finish(lock);
  }

  // Sends at random times, `rate` a second on average, for `seconds`.
  LevelResult Open(double rate, double seconds) {
    n_planned_ = static_cast<size_t>(rate * seconds);
    std::unique_lock<std::mutex> lock(mutex_);
    for (double due_s = 0; !stopped();) {
      due_s += Gap(rate);
      if (due_s > seconds) break;
      while (Now() < due_s && !stopped()) {
        const auto due = begin_ + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(due_s));
        Wait(lock, std::min(due, Clock::now() + kTick));
      }
      if (!stopped()) Send(lock, due_s);
    }
    while (n_done_ < n_sent_ && !stopped()) Wait(lock, Clock::now() + kTick);
    return Finish(lock);
  }

 private:
  double Now() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  bool stopped() const {
    return setup_.hooks->stop != nullptr && setup_.hooks->stop->load();
  }
  // Times between arrivals of a Poisson process are exponential.
  double Gap(double rate) {
    const double u = UniformFrom(setup_.plan->seed, n_gaps_++);
    return -std::log1p(-u) / rate;
  }

  void Send(std::unique_lock<std::mutex>& lock, double due_s) {
    const size_t index = n_sent_++;
    Sample sample;
    sample.prompt = index % setup_.plan->prompts.size();
    sample.due_s = due_s;
    calls_[index] = 0;
    auto request = MakeRequest(*setup_.plan, setup_.model,
                               setup_.plan->prompts[sample.prompt]);
    sample.sent_s = Now();
    auto exchange = std::make_shared<Exchange>(
        std::move(sample), [this] { return Now(); },
        [this, index](Sample done) { Take(index, std::move(done)); });
    // The callbacks may run before Send() returns, and take the lock.
    lock.unlock();
    const auto id =
        setup_.client->Send(std::move(request), exchange->Callbacks());
    lock.lock();
    const auto call = calls_.find(index);
    if (call != calls_.end()) call->second = id;
  }

  void Take(size_t index, Sample sample) {
    const std::lock_guard<std::mutex> lock(mutex_);
    calls_.erase(index);
    ++n_done_;
    n_failed_ += !sample.ok();
    result_.samples.push_back(std::move(sample));
    changed_.notify_one();
  }

  void Wait(std::unique_lock<std::mutex>& lock, Clock::time_point until) {
    changed_.wait_until(lock, until);
    if (!setup_.hooks->progress || Clock::now() - last_report_ < kTick) return;
    last_report_ = Clock::now();
    const LoadProgress progress = {.level = result_.level,
                                   .warming_up = setup_.warming_up,
                                   .n_done = n_done_,
                                   .n_planned = n_planned_,
                                   .n_failed = n_failed_,
                                   .n_under_way = calls_.size(),
                                   .seconds = Now()};
    lock.unlock();
    setup_.hooks->progress(progress);
    lock.lock();
  }

  LevelResult Finish(std::unique_lock<std::mutex>& lock) {
    result_.stopped = stopped();
    // Nothing may call back into this object once it is gone.
    while (!calls_.empty()) {
      std::vector<http::Client::CallId> ids;
      for (const auto& [index, id] : calls_) ids.push_back(id);
      lock.unlock();
      for (const auto id : ids) setup_.client->Cancel(id);
      lock.lock();
      changed_.wait_for(lock, kTick, [&] { return calls_.empty(); });
    }
    result_.seconds = Now();
    std::sort(
        result_.samples.begin(), result_.samples.end(),
        [](const Sample& a, const Sample& b) { return a.sent_s < b.sent_s; });
    return std::move(result_);
  }

  const Setup setup_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_report_ = begin_;
  uint64_t n_gaps_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  LevelResult result_;
  size_t n_planned_ = 0;
  size_t n_sent_ = 0;
  size_t n_done_ = 0;
  size_t n_failed_ = 0;
  std::unordered_map<size_t, http::Client::CallId> calls_;  // under way
};

// The name of the first model; LOAD-001 when there is no such server.
StatusOr<std::string> FindModel(const Plan& plan, http::Client& client) {
  http::ClientRequest request;
  request.path = "/v1/models";
  request.timeout_s = 10;
  if (!plan.api_key.empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + plan.api_key);
  }
  const auto response = client.Fetch(std::move(request));
  const auto missing = [&](std::string got) {
    return MakeError(kLoadNoServer, {.where = plan.url,
                                     .what = "",
                                     .expected = "/v1/models with a model",
                                     .got = std::move(got)});
  };
  if (!response.ok()) return missing(ErrorIdOf(response.status()));
  if (response->status != 200) {
    return missing("HTTP " + std::to_string(response->status));
  }
  if (!plan.model.empty()) return plan.model;
  const Json json = Json::parse(response->body, nullptr, false);
  const bool has_model =
      json.is_object() && json.contains("data") && json["data"].is_array() &&
      !json["data"].empty() && json["data"][0].is_object() &&
      json["data"][0].contains("id") && json["data"][0]["id"].is_string();
  if (!has_model) return missing("an answer without one");
  return json["data"][0]["id"].get<std::string>();
}

std::string LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts)};
}

}  // namespace

StatusOr<LoadReport> RunLoad(const Plan& plan, const RunHooks& hooks) {
  BELAY_CHECK(!plan.prompts.empty());
  BELAY_ASSIGN_OR_RETURN(http::Url url, http::ParseUrl(plan.url));
  auto client = http::Client::Create(std::move(url));
  if (!client.ok()) return client.status();
  LoadReport report;
  report.plan = plan;
  report.started = LocalTime();
  BELAY_ASSIGN_OR_RETURN(report.model, FindModel(plan, **client));
  LevelRun::Setup setup = {.plan = &plan,
                           .model = report.model,
                           .client = client->get(),
                           .hooks = &hooks,
                           .warming_up = false};
  for (const Level& level : plan.levels) {
    const int32_t at_once = std::max(1, level.concurrency);
    const auto n_warmup =
        static_cast<size_t>(plan.n_warmup >= 0 ? plan.n_warmup : at_once);
    setup.warming_up = true;
    LevelRun(setup, level).Closed(at_once, n_warmup);
    setup.warming_up = false;
    LevelRun run(setup, level);
    LevelResult result =
        level.rate > 0
            ? run.Open(level.rate, plan.seconds)
            : run.Closed(at_once, static_cast<size_t>(plan.n_requests));
    result.n_warmup = n_warmup;
    Summarize(plan, &result);
    report.levels.push_back(std::move(result));
    if (hooks.stop != nullptr && hooks.stop->load()) break;
  }
  report.findings = FindingsOf(plan, report.levels);
  return report;
}

}  // namespace belay::loadtest
