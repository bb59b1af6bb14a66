// SPDX-License-Identifier: Apache-2.0
// One engine for the threads of many callers.
#ifndef BELAY_CAPI_PUMP_H_
#define BELAY_CAPI_PUMP_H_

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"

namespace belay::capi {

// Every caller waits in Run() on its own thread; one of them at a time makes
// the engine's next step, for all. No thread runs while nobody waits.
class Pump {
 public:
  explicit Pump(std::unique_ptr<engine::Engine> engine)
      : engine_(std::move(engine)) {}

  // False: no more events are wanted, the request is cancelled.
  using OnEvent = std::function<bool(const engine::Event&)>;

  // Sees a request through. `on_event` gets its events, the one that ends it
  // included, on this thread; others go on meanwhile. `cancelled` may be set by
  // any thread. Errors: those of Engine::Submit, and a device fault, which ends
  // all requests of the step.
  Status Run(engine::Request request, const std::atomic<bool>& cancelled,
             const OnEvent& on_event);

 private:
  // A request of a caller that waits. Its own until it is in tickets_.
  struct Ticket {
    engine::Request request;  // until it is submitted
    const std::atomic<bool>* cancelled = nullptr;
    bool is_unwanted = false;  // on_event has said so
    engine::RequestId id = 0;  // 0 = not submitted
    std::vector<engine::Event> events;
    Status failed;
    bool is_over = false;
  };

  void Step(std::unique_lock<std::mutex>& lock);
  void Submit(const std::vector<Ticket*>& tickets);
  void EndAll(const std::vector<Ticket*>& tickets, const Status& error);

  const std::unique_ptr<engine::Engine> engine_;  // of who steps
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_stepping_ = false;
  std::vector<Ticket*> tickets_;  // of all that wait
};

}  // namespace belay::capi

#endif  // BELAY_CAPI_PUMP_H_
