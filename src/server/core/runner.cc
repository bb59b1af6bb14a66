// SPDX-License-Identifier: Apache-2.0
#include "server/core/runner.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error_ids.h"

namespace belay::server {
namespace {

// A device that fails this often in a row will not come back by itself.
constexpr int kMaxFailedSteps = 8;

// Between steps without work, in which the engine looks at the machine's memory
// and saves prefixes.
constexpr auto kIdlePause = std::chrono::milliseconds(200);

Status WithStage(const Status& status, const std::string& stage) {
  return WithContext(status, "canary " + stage);
}

}  // namespace

Runner::Runner(RunnerOptions options, Loader loader)
    : options_(std::move(options)),
      loader_(std::move(loader)),
      thread_([this] { Run(); }) {}

Runner::~Runner() {
  stop_ = true;
  {
    const std::lock_guard lock(mutex_);
    has_commands_.notify_all();
  }
  thread_.join();
}

Readiness Runner::readiness() const {
  const std::lock_guard lock(mutex_);
  return readiness_;
}

std::shared_ptr<const ModelInfo> Runner::info() const {
  const std::lock_guard lock(mutex_);
  return info_;
}

engine::EngineStats Runner::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

double Runner::stalled_s() const {
  if (n_live_ == 0) return 0;
  const std::lock_guard lock(mutex_);
  return std::chrono::duration<double>(engine::Clock::now() - last_step_)
      .count();
}

StatusOr<Runner::JobId> Runner::Submit(std::vector<engine::Request> requests,
                                       std::shared_ptr<Channel> channel) {
  const std::lock_guard lock(mutex_);
  if (readiness_.stage != Stage::kReady || stop_) {
    return MakeError(kApiNotReady, ErrorFacts{});
  }
  const int n = static_cast<int>(requests.size());
  const int n_max = info_->n_slots + options_.max_queue;
  if (n_live_ + n > n_max) {
    return MakeError(kEngQueueFull, {.where = "",
                                     .what = "",
                                     .expected = std::to_string(n_max),
                                     .got = std::to_string(n_live_ + n)});
  }
  if (n_live_ == 0) last_step_ = engine::Clock::now();
  n_live_ += n;
  Command command;
  command.job = next_job_++;
  command.requests = std::move(requests);
  command.channel = std::move(channel);
  commands_.push_back(std::move(command));
  has_commands_.notify_one();
  return commands_.back().job;
}

void Runner::Cancel(JobId job) {
  const std::lock_guard lock(mutex_);
  Command command;
  command.kind = Command::Kind::kCancel;
  command.job = job;
  commands_.push_back(std::move(command));
  has_commands_.notify_one();
}

void Runner::CancelChoice(JobId job, int choice) {
  const std::lock_guard lock(mutex_);
  Command command;
  command.kind = Command::Kind::kCancelChoice;
  command.job = job;
  command.choice = choice;
  commands_.push_back(std::move(command));
  has_commands_.notify_one();
}

void Runner::SetReadiness(const std::function<void(Readiness&)>& change) {
  const std::lock_guard lock(mutex_);
  change(readiness_);
}

void Runner::Fail(const Status& error) {
  SetReadiness([&](Readiness& readiness) {
    readiness.stage = Stage::kFailed;
    readiness.canary_stage.clear();
    readiness.error = error;
  });
}

void Runner::Run() {
  // The threads that it starts (the back end's team, the spill's) have the name
  // from it: whoever looks at the process sees where the time goes.
  pthread_setname_np(pthread_self(), "belay-engine");
  if (Load() && Test()) Serve();
  FailAll(MakeError(kApiDraining, ErrorFacts{}));
  WakeAll();
  model_ = Model();  // where it was made
}

bool Runner::Load() {
  auto model = loader_([this](double part) {
    SetReadiness([&](Readiness& r) { r.loaded = std::clamp(part, 0.0, 1.0); });
  });
  if (!model.ok()) {
    Fail(model.status());
    return false;
  }
  model_ = std::move(*model);
  const std::lock_guard lock(mutex_);
  info_ = std::make_shared<const ModelInfo>(model_.info);
  stats_ = model_.engine->stats();
  readiness_.loaded = 1;
  return true;
}

bool Runner::Test() {
  if (options_.canary != CanaryMode::kOff) {
    SetReadiness([](Readiness& r) { r.stage = Stage::kCanary; });
    const auto start = engine::Clock::now();
    auto findings = RunCanary(
        *model_.engine, model_.info,
        [this](const std::string& stage) {
          SetReadiness([&](Readiness& r) { r.canary_stage = stage; });
        },
        [this] { return stop_.load(); });
    SetReadiness([&](Readiness& r) {
      r.canary_stage.clear();
      r.findings = findings;
    });
    for (const CanaryFinding& finding : findings) {
      if (finding.status.ok()) continue;
      const Status status = WithStage(finding.status, finding.stage);
      if (!finding.is_warning || options_.canary == CanaryMode::kStrict) {
        if (options_.warn) options_.warn(status);
        Fail(status);
        return false;
      }
      if (options_.warn) options_.warn(status);
    }
    if (stop_) return false;
    const double seconds =
        std::chrono::duration<double>(engine::Clock::now() - start).count();
    if (options_.log) {
      options_.log("canary passed in " +
                   std::to_string(static_cast<int>(seconds * 1000)) + " ms");
    }
  }
  const std::lock_guard lock(mutex_);
  stats_ = model_.engine->stats();
  readiness_.stage = Stage::kReady;
  return true;
}

// False when the thread should end.
bool Runner::TakeCommands(std::deque<Command>& commands) {
  std::unique_lock lock(mutex_);
  const bool is_idle = !model_.engine->HasWork();
  has_commands_.wait_for(lock, kIdlePause, [&] {
    return stop_ || !is_idle || !commands_.empty();
  });
  commands.swap(commands_);
  return !stop_;
}

void Runner::Serve() {
  std::deque<Command> commands;
  while (TakeCommands(commands)) {
    for (Command& command : commands) Apply(command);
    commands.clear();
    Step();
    WakeAll();
  }
}

void Runner::Apply(Command& command) {
  switch (command.kind) {
    case Command::Kind::kSubmit:
      return Start(command);
    case Command::Kind::kCancel:
      return CancelJob(command.job);
    case Command::Kind::kCancelChoice: {
      const auto job = jobs_.find(command.job);
      if (job == jobs_.end()) return;
      const engine::RequestId id =
          job->second.ids[static_cast<size_t>(command.choice)];
      if (id != 0) model_.engine->Cancel(id);
      return;
    }
  }
}

void Runner::Start(Command& command) {
  Job job;
  job.channel = std::move(command.channel);
  const size_t n = command.requests.size();
  job.ids.assign(n, 0);
  touched_.push_back(job.channel);
  bool has_any = false;
  for (size_t i = 0; i < n; ++i) {
    const auto id = model_.engine->Submit(std::move(command.requests[i]));
    if (id.ok()) {
      job.ids[i] = *id;
      places_[*id] = {command.job, static_cast<int>(i)};
      has_any = true;
      continue;
    }
    TokenEvent event;
    event.choice = static_cast<int>(i);
    event.finish = engine::FinishReason::kError;
    event.error = id.status();
    event.time = engine::Clock::now();
    job.channel->Push(std::move(event));
    --n_live_;
  }
  if (has_any) jobs_.emplace(command.job, std::move(job));
}

void Runner::CancelJob(JobId id) {
  const auto job = jobs_.find(id);
  if (job == jobs_.end()) return;
  job->second.channel = nullptr;
  for (const engine::RequestId request : job->second.ids) {
    if (request != 0) model_.engine->Cancel(request);
  }
}

void Runner::Step() {
  const auto events = model_.engine->Step();
  if (events.ok()) {
    n_failed_steps_ = 0;
    for (const engine::Event& event : *events) Deliver(event);
  } else {
    // The device failed under all that ran. They end; the next ones get their
    // chance, since many faults pass.
    if (options_.warn) options_.warn(events.status());
    FailAll(events.status());
    if (++n_failed_steps_ == kMaxFailedSteps) Fail(events.status());
  }
  Publish();
}

void Runner::Deliver(const engine::Event& event) {
  const auto found = places_.find(event.request);
  if (found == places_.end()) return;
  const Place place = found->second;
  const auto& channel = jobs_[place.job].channel;
  if (channel != nullptr) {
    TokenEvent copy;
    copy.choice = place.choice;
    copy.token = event.token;
    copy.finish = event.finish;
    copy.logprob = event.logprob;
    copy.top.assign(event.top.begin(), event.top.end());
    copy.n_cached_tokens = event.n_cached_tokens;
    copy.time = engine::Clock::now();
    channel->Push(std::move(copy));
    touched_.push_back(channel);
  }
  if (event.finish == engine::FinishReason::kNone) return;
  places_.erase(found);
  EndChoice(place);
}

void Runner::EndChoice(const Place& place) {
  --n_live_;
  Job& job = jobs_[place.job];
  job.ids[static_cast<size_t>(place.choice)] = 0;
  const bool is_over = std::all_of(job.ids.begin(), job.ids.end(),
                                   [](auto id) { return id == 0; });
  if (is_over) jobs_.erase(place.job);
}

void Runner::FailAll(const Status& error) {
  const auto places = std::exchange(places_, {});
  for (const auto& [id, place] : places) {
    if (model_.engine != nullptr) model_.engine->Cancel(id);
    const auto& channel = jobs_[place.job].channel;
    if (channel != nullptr) {
      TokenEvent event;
      event.choice = place.choice;
      event.finish = engine::FinishReason::kError;
      event.error = error;
      event.time = engine::Clock::now();
      channel->Push(std::move(event));
      touched_.push_back(channel);
    }
    EndChoice(place);
  }
}

void Runner::WakeAll() {
  for (const auto& channel : touched_) channel->Wake();
  touched_.clear();
}

// A line when the memory guard has changed what it does.
void Runner::TellGuard(const engine::EngineStats& stats) {
  const bool is_news = stats.guard != guard_ ||
                       (stats.guard == engine::GuardState::kSmallBatch &&
                        stats.batch_limit != batch_limit_);
  guard_ = stats.guard;
  batch_limit_ = stats.batch_limit;
  if (!is_news || !options_.log) return;
  options_.log("memory guard: " + std::string(engine::GuardStateName(guard_)) +
               ", " + std::to_string(batch_limit_) + " requests at once, " +
               std::to_string(stats.available_bytes >> 20) + " MiB available");
}

void Runner::Publish() {
  TellGuard(model_.engine->stats());
  const std::lock_guard lock(mutex_);
  stats_ = model_.engine->stats();
  last_step_ = engine::Clock::now();
}

}  // namespace belay::server
