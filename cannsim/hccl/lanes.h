// SPDX-License-Identifier: Apache-2.0
// The order of one rank's work in a communicator, whatever streams it is on:
// each task draws a number when it is queued and waits for its turn when it
// runs. One lane for collectives, two for messages with each rank.
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

class Lane {
 public:
  uint64_t Draw();
  void Finish(uint64_t number);
  // False when the stream was destroyed by force before the turn came.
  bool Await(uint64_t number, const std::atomic<bool>& abandoned);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t next_ = 0;
  uint64_t serving_ = 0;
  std::set<uint64_t> finished_;  // out of turn: work that never ran
};

// Numbers of one task. They are given back when the task has run, or when it
// never will.
class Turn {
 public:
  // The lanes must outlive it; all numbers are drawn at once.
  Turn(std::vector<Lane*> lanes, std::mutex& drawing);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  bool Await(const std::atomic<bool>& abandoned);
  uint64_t first() const { return numbers_[0]; }

 private:
  std::vector<Lane*> lanes_;
  std::vector<uint64_t> numbers_;
};

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_LANES_H_
