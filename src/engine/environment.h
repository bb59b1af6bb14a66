// SPDX-License-Identifier: Apache-2.0
// The two facts that an engine asks of the machine while it runs: what time it
// is and how much memory is left. Tests put their own in its place.
#ifndef BELAY_ENGINE_ENVIRONMENT_H_
#define BELAY_ENGINE_ENVIRONMENT_H_

#include <chrono>
#include <cstdint>

namespace belay::engine {

using Clock = std::chrono::steady_clock;

class Environment {
 public:
  virtual ~Environment() = default;

  virtual Clock::time_point Now() const;

  // Bytes that programs can still get without swapping (MemAvailable of
  // /proc/meminfo); -1 when the machine does not say. Allocates nothing.
  virtual int64_t AvailableBytes() const;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_ENVIRONMENT_H_
