// SPDX-License-Identifier: Apache-2.0
// What the process did, in numbers: for the report, and for programs that look
// between two points (include/cannsim/cannsim.h).
#ifndef BELAY_CANNSIM_RUNTIME_COUNT_COUNTERS_H_
#define BELAY_CANNSIM_RUNTIME_COUNT_COUNTERS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

namespace cannsim {

struct Counters {
  std::atomic<uint64_t> launches{0};         // tasks queued or recorded
  std::atomic<uint64_t> operators{0};        // operators that ran
  std::atomic<uint64_t> graph_replays{0};    // graphs that ran
  std::atomic<uint64_t> host_syncs{0};       // waits for stream, event, device
  std::atomic<uint64_t> blocking_copies{0};  // copies that the host waited for
  std::atomic<uint64_t> allocations{0};      // of device memory
  std::atomic<uint64_t> frees{0};
  std::atomic<uint64_t> host_allocations{0};  // pinned
  std::atomic<uint64_t> host_frees{0};
  std::atomic<uint64_t> bytes_to_device{0};
  std::atomic<uint64_t> bytes_to_host{0};
  std::atomic<uint64_t> bytes_on_device{0};  // copied from device to device
  std::atomic<uint64_t> compilations{0};
};

// Of the process; never destroyed.
Counters& Count();

inline void Add(std::atomic<uint64_t>& counter, uint64_t n = 1) {
  counter.fetch_add(n, std::memory_order_relaxed);
}

// A copy of `bytes` between the host (-1) and devices.
void CountCopy(int to_device, int from_device, uint64_t bytes);

// One run of an operator, or of a task of another kind.
struct TaskTime {
  uint64_t n = 0;
  double ns = 0;  // simulated
};
void NoteTime(const char* name, double ns);
std::map<std::string, TaskTime> TimesByName();

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_COUNT_COUNTERS_H_
