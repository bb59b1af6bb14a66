// SPDX-License-Identifier: Apache-2.0
// One rank's side of a communicator.
#ifndef BELAY_CANNSIM_HCCL_COMMUNICATOR_H_
#define BELAY_CANNSIM_HCCL_COMMUNICATOR_H_

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cannsim/config/hccl_settings.h"
#include "cannsim/hccl/lanes.h"
#include "cannsim/hccl/segment.h"
#include "cannsim/runtime/queue/task.h"

namespace cannsim::hccl {

// How waiting for other ranks ended, and because of whom.
struct Outcome {
  enum class Kind { kDone, kTimeout, kGone, kAbandoned };
  Kind kind = Kind::kDone;
  uint64_t missing = 0;  // ranks, a bit each
  bool ok() const { return kind == Kind::kDone; }
};

// One look at work that needs others.
struct Look {
  bool done = true;
  bool moved = false;
  uint64_t missing = 0;  // ranks that it waits for
};

// How long to wait for others, at most.
struct Patience {
  std::chrono::steady_clock::time_point begin =
      std::chrono::steady_clock::now();
  double seconds = 0;  // 0: for ever
  const std::atomic<bool>* abandoned = nullptr;
};

class Communicator {
 public:
  struct Place {
    uint32_t n_ranks = 0;
    uint32_t rank = 0;
    int device = 0;
    std::string name;        // "": made from the card
    const char* where = "";  // the call that makes it
    const void* caller = nullptr;
  };

  // Takes a place in the memory of a card. Null after Refuse.
  static std::shared_ptr<Communicator> Join(const RootCard& card,
                                            const Place& place,
                                            HcclResult* result);
  // Waits for all others.
  HcclResult AwaitOthers();
  ~Communicator();

  uint32_t rank() const { return place_.rank; }
  uint32_t n_ranks() const { return place_.n_ranks; }
  int device() const { return place_.device; }
  const Place& place() const { return place_; }
  const std::string& name() const { return place_.name; }
  const HcclSettings& settings() const { return settings_; }
  Segment& segment() { return *segment_; }

  // The first error of a collective.
  HcclResult async_error() const { return async_error_.load(); }
  void NoteError(HcclResult result);
  // No collective works any more, and the others are told so.
  void Break(uint32_t blamed);
  bool is_broken() const { return broken_.load(); }

  // Looks again whenever something may have changed.
  Outcome Wait(const Patience& patience, const std::function<Look()>& look);
  Patience ExecPatience(const TaskRun& run) const;

  // For a task that is recorded (`has_ticket` false): at each run.
  std::shared_ptr<Turn> DrawCollective(bool has_ticket);
  // Bits of the ranks that are sent to and received from.
  std::shared_ptr<Turn> DrawMessages(uint64_t to, uint64_t from,
                                     bool has_ticket);

  // "rank 2, which gave up on rank 3"; for messages.
  std::string Describe(uint64_t ranks);

 private:
  Communicator(std::shared_ptr<Segment> segment, Place place,
               HcclSettings settings);
  uint64_t Gone(uint64_t ranks, bool ask_system);

  std::shared_ptr<Segment> segment_;
  Place place_;
  HcclSettings settings_;
  std::atomic<HcclResult> async_error_{HCCL_SUCCESS};
  std::atomic<bool> broken_{false};
  std::mutex drawing_;
  Lane collective_;
  std::vector<Lane> to_;
  std::vector<Lane> from_;
};

// --- The handles of this process ---

HcclComm Register(std::shared_ptr<Communicator> communicator);
// Null when it is none.
std::shared_ptr<Communicator> Find(HcclComm handle);
std::shared_ptr<Communicator> Unregister(HcclComm handle);

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_COMMUNICATOR_H_
