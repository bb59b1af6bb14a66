// SPDX-License-Identifier: Apache-2.0
// The roof of decoding: how fast this machine reads memory, here and now.
#ifndef BELAY_APPS_BELAY_BENCH_BANDWIDTH_H_
#define BELAY_APPS_BELAY_BENCH_BANDWIDTH_H_

#include <cstddef>
#include <memory>

#include "base/error.h"
#include "base/thread_pool.h"

namespace belay::apps {

class Bandwidth {
 public:
  // Memory far beyond the last-level cache, in huge pages where the system has
  // them, as the CPU back end keeps its weights. SYS-003.
  static StatusOr<std::unique_ptr<Bandwidth>> Create(ThreadPool* pool);
  ~Bandwidth();
  Bandwidth(const Bandwidth&) = delete;
  Bandwidth& operator=(const Bandwidth&) = delete;

  // One pass over all of it with the whole team; GB/s (10^9 bytes).
  double Measure() const;

 private:
  Bandwidth(ThreadPool* pool, std::byte* data) : pool_(pool), data_(data) {}

  ThreadPool* pool_;
  std::byte* data_;
};

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_BENCH_BANDWIDTH_H_
