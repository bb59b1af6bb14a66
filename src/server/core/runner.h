// SPDX-License-Identifier: Apache-2.0
// The engine's thread: it loads the model, runs the canary, then serves. Only
// this thread ever touches the engine; everybody else leaves commands.
#ifndef BELAY_SERVER_CORE_RUNNER_H_
#define BELAY_SERVER_CORE_RUNNER_H_

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "server/core/canary.h"
#include "server/core/channel.h"
#include "server/core/model.h"
#include "server/options.h"

namespace belay::server {

enum class Stage : uint8_t { kLoading, kCanary, kReady, kFailed };

// How far the server is.
struct Readiness {
  Stage stage = Stage::kLoading;
  double loaded = 0;         // part of 1
  std::string canary_stage;  // that runs now
  std::vector<CanaryFinding> findings;
  Status error;  // kFailed: why
};

struct RunnerOptions {
  int32_t max_queue = 256;
  CanaryMode canary = CanaryMode::kOn;
  // Lines for the log; called from the engine's thread.
  std::function<void(const std::string&)> log;
  std::function<void(const Status&)> warn;
};

class Runner {
 public:
  using JobId = uint64_t;

  Runner(RunnerOptions options, Loader loader);
  // Cancels what runs, then joins the thread.
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  // All below: any thread.

  Readiness readiness() const;
  // The model, or null before it is loaded.
  std::shared_ptr<const ModelInfo> info() const;

  // Takes the requests of one job, all or none; their events go to `channel`
  // with `choice` as their place in the list. What the engine refuses comes as
  // an event with an error. Errors: ENG-006 (as many wait as may), API-010.
  StatusOr<JobId> Submit(std::vector<engine::Request> requests,
                         std::shared_ptr<Channel> channel);

  // Ends a job: nothing more of it reaches its channel, and its slots are free
  // after the step that runs now.
  void Cancel(JobId job);
  // The same for one request of it.
  void CancelChoice(JobId job, int choice);

  // A copy of what the engine counted after its last step.
  engine::EngineStats stats() const;
  // Requests submitted and not ended.
  int n_live() const { return n_live_; }
  // Seconds since the last step ended, while there is work; 0 without work.
  double stalled_s() const;

 private:
  struct Job {
    std::shared_ptr<Channel> channel;    // null once it is cancelled
    std::vector<engine::RequestId> ids;  // 0 = ended
  };
  struct Command {
    enum class Kind : uint8_t { kSubmit, kCancel, kCancelChoice };
    Kind kind = Kind::kSubmit;
    JobId job = 0;
    int choice = 0;
    std::vector<engine::Request> requests;
    std::shared_ptr<Channel> channel;
  };
  struct Place {
    JobId job = 0;
    int choice = 0;
  };

  void Run();
  bool Load();
  bool Test();
  void Serve();
  bool TakeCommands(std::deque<Command>& commands);
  void Apply(Command& command);
  void Start(Command& command);
  void CancelJob(JobId id);
  void Step();
  void Deliver(const engine::Event& event);
  void EndChoice(const Place& place);
  void FailAll(const Status& error);
  void WakeAll();
  void Fail(const Status& error);
  void Publish();
  void TellGuard(const engine::EngineStats& stats);
  void SetReadiness(const std::function<void(Readiness&)>& change);

  const RunnerOptions options_;
  const Loader loader_;

  mutable std::mutex mutex_;  // of what follows, to the blank line
  std::condition_variable has_commands_;
  std::deque<Command> commands_;
  Readiness readiness_;
  std::shared_ptr<const ModelInfo> info_;
  engine::EngineStats stats_;
  engine::Clock::time_point last_step_;
  JobId next_job_ = 1;

  std::atomic<bool> stop_{false};
  std::atomic<int> n_live_{0};

  // The engine's thread only.
  Model model_;
  std::unordered_map<JobId, Job> jobs_;
  std::unordered_map<engine::RequestId, Place> places_;
  std::vector<std::shared_ptr<Channel>> touched_;
  int n_failed_steps_ = 0;
  engine::GuardState guard_ = engine::GuardState::kNormal;  // as told
  int32_t batch_limit_ = 0;                                 // as told

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace belay::server

#endif  // BELAY_SERVER_CORE_RUNNER_H_
