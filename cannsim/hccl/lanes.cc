// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/lanes.h"

#include <chrono>
#include <utility>

namespace cannsim::hccl {

uint64_t Lane::Draw() {
  const std::lock_guard lock(mutex_);
  return next_++;
}

void Lane::Finish(uint64_t number) {
  const std::lock_guard lock(mutex_);
  finished_.insert(number);
  while (finished_.erase(serving_) > 0) ++serving_;
  changed_.notify_all();
}

bool Lane::Await(uint64_t number, const std::atomic<bool>& abandoned) {
  std::unique_lock lock(mutex_);
  while (serving_ != number) {
    if (abandoned.load()) return false;
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  return true;
}

Turn::Turn(std::vector<Lane*> lanes, std::mutex& drawing)
    : lanes_(std::move(lanes)) {
  const std::lock_guard lock(drawing);
  for (Lane* lane : lanes_) numbers_.push_back(lane->Draw());
}

Turn::~Turn() {
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i]->Finish(numbers_[i]);
}

bool Turn::Await(const std::atomic<bool>& abandoned) {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (!lanes_[i]->Await(numbers_[i], abandoned)) return false;
  }
  return true;
}

}  // namespace cannsim::hccl
