// SPDX-License-Identifier: Apache-2.0
// An engine for the server's own tests: one token a request and step, by a
// function of the test's choice, and faults on demand.
#ifndef BELAY_SERVER_CORE_FAKE_ENGINE_H_
#define BELAY_SERVER_CORE_FAKE_ENGINE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/engine.h"

namespace belay::server {

class FakeEngine final : public engine::Engine {
 public:
  struct Running {
    engine::RequestId id = 0;
    engine::Request request;
    std::vector<int32_t> tokens;
    bool cancelled = false;
  };
  // The next token of a request; -1 = no finite logit. `n_running` requests
  // run.
  using Next = std::function<int32_t(const Running& running, size_t n_running)>;

  explicit FakeEngine(Next next) : next_(std::move(next)) {}

  std::atomic<int> n_faults{0};        // steps that will fail
  std::atomic<bool> is_paused{false};  // steps do nothing
  std::atomic<int> n_steps{0};         // that were made
  std::atomic<engine::GuardState> guard{engine::GuardState::kNormal};
  std::atomic<int32_t> batch_limit{2};

  StatusOr<engine::RequestId> Submit(engine::Request request) override {
    BELAY_RETURN_IF_ERROR(engine::CheckSampling(request.sampling));
    Running running;
    running.id = ++last_id_;
    running.request = std::move(request);
    running_.push_back(std::move(running));
    return last_id_;
  }
  void Cancel(engine::RequestId id) override {
    for (Running& running : running_) running.cancelled |= running.id == id;
  }
  bool HasWork() const override { return !running_.empty(); }

  StatusOr<std::span<const engine::Event>> Step() override {
    events_.clear();
    stats_.guard = guard;
    stats_.batch_limit = batch_limit;
    if (n_faults > 0 && HasWork()) {
      --n_faults;
      return absl::InternalError("the device is gone");
    }
    const size_t n_running = running_.size();
    for (Running& running : running_) {
      if (running.cancelled) {
        events_.push_back({running.id, -1, engine::FinishReason::kCancelled});
      } else if (!is_paused) {
        Advance(running, n_running);
      }
    }
    for (const engine::Event& event : events_) {
      if (event.finish == engine::FinishReason::kNone) continue;
      std::erase_if(running_,
                    [&](const Running& r) { return r.id == event.request; });
    }
    ++n_steps;
    return std::span<const engine::Event>(events_);
  }

  const engine::EngineStats& stats() const override { return stats_; }
  const spec::Layout& layout() const override { return layout_; }

 private:
  void Advance(Running& running, size_t n_running) {
    engine::Event event;
    event.request = running.id;
    event.token = next_(running, n_running);
    if (event.token < 0) {
      event.finish = engine::FinishReason::kError;
    } else {
      running.tokens.push_back(event.token);
      for (const int32_t stop : running.request.stop_ids) {
        if (event.token == stop) event.finish = engine::FinishReason::kStop;
      }
      const auto n = static_cast<int32_t>(running.tokens.size());
      if (event.finish == engine::FinishReason::kNone &&
          n >= running.request.max_tokens) {
        event.finish = engine::FinishReason::kLength;
      }
    }
    events_.push_back(event);
  }

  const Next next_;
  engine::RequestId last_id_ = 0;
  std::vector<Running> running_;
  std::vector<engine::Event> events_;
  engine::EngineStats stats_;
  spec::Layout layout_;
};

}  // namespace belay::server

#endif  // BELAY_SERVER_CORE_FAKE_ENGINE_H_
