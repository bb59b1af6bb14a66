// SPDX-License-Identifier: Apache-2.0
// Watches how much memory the machine has left and says what to give up.
#ifndef BELAY_ENGINE_MEMORY_GUARD_H_
#define BELAY_ENGINE_MEMORY_GUARD_H_

#include <cstddef>
#include <cstdint>

#include "engine/engine.h"
#include "engine/environment.h"

namespace belay::engine {

// One step down at each look that finds less than the reserve: first the cached
// prefixes, then half of the sequences, down to one. One step up again after
// kCalmLooks looks in a row with a quarter more than the reserve, so that it
// does not swing. With a reserve of 0, or where the machine does not say what
// it has, nothing is ever given up.
class MemoryGuard {
 public:
  static constexpr std::chrono::milliseconds kInterval{100};
  static constexpr int kCalmLooks = 10;

  MemoryGuard(const Environment& environment, size_t reserve_bytes,
              int32_t n_slots);

  // Looks, when kInterval has passed since the last time. `n_running` sequences
  // run now. True when the state or the limit has changed.
  bool Look(Clock::time_point now, int32_t n_running);

  GuardState state() const { return state_; }
  int32_t batch_limit() const { return batch_limit_; }
  int64_t available_bytes() const { return available_bytes_; }

 private:
  bool StepDown(int32_t n_running);
  bool StepUp();

  const Environment& environment_;
  const int64_t reserve_bytes_;
  const int32_t n_slots_;
  GuardState state_ = GuardState::kNormal;
  int32_t batch_limit_;
  int64_t available_bytes_ = -1;
  int n_calm_ = 0;
  Clock::time_point next_look_{};
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_MEMORY_GUARD_H_
