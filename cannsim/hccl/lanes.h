// SPDX-License-Identifier: Apache-2.0
// The order of one rank's work in a communicator, whatever streams it is on:
// each task draws a ticket when it is queued and waits for its turn when it
// runs. One lane for collectives, two for messages with each rank. What is
// recorded now and runs later, perhaps often, has no ticket: its stream brings
// it to the lane, and it goes in when nobody else is.
#ifndef BELAY_CANNSIM_HCCL_LANES_H_
#define BELAY_CANNSIM_HCCL_LANES_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

namespace cannsim::hccl {

enum class Entry { kIn, kAbandoned, kLate };

// How long a task waits for its turn, at most.
struct LaneLimit {
  const std::atomic<bool>& abandoned;  // its stream was destroyed by force
  double seconds;                      // 0: for ever
};

class Lane {
 public:
  static constexpr uint64_t kNoTicket = ~uint64_t{0};

  uint64_t Draw();
  // Waits for the turn. `*place` counts what went in, and what never will,
  // from 0.
  Entry Enter(uint64_t ticket, const LaneLimit& limit, uint64_t* place);
  void Leave();
  // The task of this ticket never runs.
  void Skip(uint64_t ticket);

 private:
  void Advance();

  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0;     // ticket
  uint64_t serving_ = 0;  // ticket
  uint64_t n_entered_ = 0;
  bool is_busy_ = false;
  std::set<uint64_t> skipped_;
};

// One task in its lanes. It leaves them when it is destroyed.
class Turn {
 public:
  // The lanes must outlive it; all tickets are drawn at once.
  Turn(std::vector<Lane*> lanes, bool has_tickets, std::mutex& drawing);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  Entry Await(const LaneLimit& limit);
  // In the first lane.
  uint64_t place() const { return place_; }

 private:
  std::vector<Lane*> lanes_;
  std::vector<uint64_t> tickets_;
  size_t n_entered_ = 0;  // lanes
  uint64_t place_ = 0;
};

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_LANES_H_
