// SPDX-License-Identifier: Apache-2.0
// How ranks that were started with the same rank table find each other: rank 0
// hands out the card at an abstract socket, whose name comes from the table and
// which ends with its process.
#ifndef BELAY_CANNSIM_HCCL_RENDEZVOUS_H_
#define BELAY_CANNSIM_HCCL_RENDEZVOUS_H_

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "cannsim/hccl/segment.h"

namespace cannsim::hccl {

// Rank 0's: answers until it is destroyed.
class Door {
 public:
  Door(const std::string& key, const RootCard& card);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  int error() const { return error_; }  // an errno: EADDRINUSE

 private:
  void Answer();

  RootCard card_;
  int socket_ = -1;
  int error_ = 0;
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

// The others': false when nobody answers in time.
bool KnockUntil(const std::string& key,
                std::chrono::steady_clock::time_point limit, RootCard* card);

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_RENDEZVOUS_H_
