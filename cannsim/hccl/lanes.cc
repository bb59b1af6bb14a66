// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/lanes.h"

#include <chrono>
#include <utility>

namespace cannsim::hccl {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

uint64_t Lane::Draw() {
  const std::lock_guard lock(mutex_);
  return next_++;
}

Entry Lane::Enter(uint64_t ticket, const LaneLimit& limit, uint64_t* place) {
  const auto begin = Clock::now();
  std::unique_lock lock(mutex_);
  while (is_busy_ || (ticket != kNoTicket && ticket != serving_)) {
    if (limit.abandoned.load()) return Entry::kAbandoned;
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (limit.seconds > 0 && waited.count() > limit.seconds) {
      return Entry::kLate;
    }
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  is_busy_ = true;
  *place = n_entered_++;
  if (ticket == serving_) {
    ++serving_;
    Advance();
  }
  return Entry::kIn;
}

// A skipped task counts, so that the other ranks see that it is missing.
void Lane::Advance() {
  while (skipped_.erase(serving_) > 0) {
    ++serving_;
    ++n_entered_;
  }
  changed_.notify_all();
}

void Lane::Leave() {
  const std::lock_guard lock(mutex_);
  is_busy_ = false;
  changed_.notify_all();
}

void Lane::Skip(uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  skipped_.insert(ticket);
  Advance();
}

Turn::Turn(std::vector<Lane*> lanes, bool has_tickets, std::mutex& drawing)
    : lanes_(std::move(lanes)), tickets_(lanes_.size(), Lane::kNoTicket) {
  if (!has_tickets) return;
  const std::lock_guard lock(drawing);
  for (size_t i = 0; i < lanes_.size(); ++i) tickets_[i] = lanes_[i]->Draw();
}

Turn::~Turn() {
  for (size_t i = 0; i < lanes_.size(); ++i) {
    if (i < n_entered_) {
      lanes_[i]->Leave();
    } else if (tickets_[i] != Lane::kNoTicket) {
      lanes_[i]->Skip(tickets_[i]);
    }
  }
}

Entry Turn::Await(const LaneLimit& limit) {
  for (; n_entered_ < lanes_.size(); ++n_entered_) {
    uint64_t place = 0;
    const Entry entry =
        lanes_[n_entered_]->Enter(tickets_[n_entered_], limit, &place);
    if (entry != Entry::kIn) return entry;
    if (n_entered_ == 0) place_ = place;
  }
  return Entry::kIn;
}

}  // namespace cannsim::hccl
