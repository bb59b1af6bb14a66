// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/guard.h"

#include <algorithm>

namespace belay::engine {

MemoryGuard::MemoryGuard(const Environment& environment, size_t reserve_bytes,
                         int32_t n_slots)
    : environment_(environment),
      reserve_bytes_(static_cast<int64_t>(reserve_bytes)),
      n_slots_(n_slots),
      batch_limit_(n_slots) {}

bool MemoryGuard::Look(Clock::time_point now, int32_t n_running) {
  if (reserve_bytes_ == 0 || now < next_look_) return false;
  next_look_ = now + kInterval;
  available_bytes_ = environment_.AvailableBytes();
  if (available_bytes_ < 0) return false;
  if (available_bytes_ < reserve_bytes_) {
    n_calm_ = 0;
    return StepDown(n_running);
  }
  if (available_bytes_ < reserve_bytes_ + reserve_bytes_ / 4) {
    n_calm_ = 0;
    return false;
  }
  if (++n_calm_ < kCalmLooks) return false;
  n_calm_ = 0;
  return StepUp();
}

bool MemoryGuard::StepDown(int32_t n_running) {
  if (state_ == GuardState::kNormal) {
    state_ = GuardState::kNoPrefixes;
    return true;
  }
  const int32_t limit =
      std::max(1, std::min(batch_limit_, std::max(n_running, 1)) / 2);
  if (state_ == GuardState::kSmallBatch && limit == batch_limit_) return false;
  state_ = GuardState::kSmallBatch;
  batch_limit_ = limit;
  return true;
}

bool MemoryGuard::StepUp() {
  switch (state_) {
    case GuardState::kNormal:
      return false;
    case GuardState::kNoPrefixes:
      state_ = GuardState::kNormal;
      return true;
    case GuardState::kSmallBatch:
      batch_limit_ = std::min(2 * batch_limit_, n_slots_);
      if (batch_limit_ == n_slots_) state_ = GuardState::kNoPrefixes;
      return true;
  }
  return false;
}

}  // namespace belay::engine
