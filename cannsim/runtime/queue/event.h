// SPDX-License-Identifier: Apache-2.0
// Events. A record is one mark in one stream; an event is a name for the
// latest. Who waits holds the record that was latest when it asked, so that
// recording again does not move what others wait for.
#ifndef BELAY_CANNSIM_RUNTIME_QUEUE_EVENT_H_
#define BELAY_CANNSIM_RUNTIME_QUEUE_EVENT_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "cannsim/runtime/error.h"
#include "cannsim/runtime/queue/task.h"
#include "cannsim/runtime/strict/races.h"

namespace cannsim {

class Capture;

class Record {
 public:
  // A mark that is made when its stream comes to it.
  Record() = default;
  // A mark inside a capture, at a node of it.
  Record(std::weak_ptr<Capture> capture, int node)
      : capture_(std::move(capture)), node_(node), captured_(true) {}

  // It was made at `ns` of its stream's clock.
  void Complete(double ns);
  bool done() const;
  // Waits until it is done; at most `timeout_ms` (negative: for ever), and no
  // longer than until `abandoned`. Whether it is done.
  bool Wait(int64_t timeout_ms, const std::atomic<bool>* abandoned) const;

  double time_ns() const;  // of Complete; simulated

  // What is before it (strict mode); null: nothing is known.
  void SetOrder(std::shared_ptr<const Order> order);
  std::shared_ptr<const Order> order() const;

  bool captured() const { return captured_; }
  std::shared_ptr<Capture> capture() const { return capture_.lock(); }
  int node() const { return node_; }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool done_ = false;
  double time_ns_ = 0;
  std::shared_ptr<const Order> order_;
  const std::weak_ptr<Capture> capture_{};
  const int node_ = -1;
  const bool captured_ = false;
};

// How it was made decides what is allowed (docs/cannsim.md).
enum class EventMaker { kPlain, kWithFlag, kExWithFlag };

class Event {
 public:
  Event(EventMaker maker, unsigned flags, int device)
      : maker_(maker), flags_(flags), device_(device) {}

  EventMaker maker() const { return maker_; }
  unsigned flags() const { return flags_; }
  int device() const { return device_; }
  const Call& made_by() const { return made_by_; }
  bool Has(unsigned flag) const { return (flags_ & flag) != 0; }

  // The latest record, or null before the first and after a reset.
  std::shared_ptr<Record> latest() const;
  void SetLatest(std::shared_ptr<Record> record);

  // Takes `record` away again if it is still the latest.
  void ResetIf(const std::shared_ptr<Record>& record);

  std::atomic<int> n_waits{0};  // StreamWaitEvent tasks not done yet

 private:
  const EventMaker maker_;
  const unsigned flags_;
  const int device_;
  const Call made_by_ = CurrentCall();
  mutable std::mutex mutex_;
  std::shared_ptr<Record> latest_;
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_QUEUE_EVENT_H_
