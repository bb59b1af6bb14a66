// SPDX-License-Identifier: Apache-2.0
// What only the simulator has; no part of CANN's interface. For tests that
// hold a program to numbers: read the counters before and after a step. A
// program that must also run on real hardware looks the symbol up with dlsym.
#ifndef BELAY_CANNSIM_INCLUDE_CANNSIM_CANNSIM_H_
#define BELAY_CANNSIM_INCLUDE_CANNSIM_CANNSIM_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Of the process since its start. New fields come at the end.
typedef struct cannsimCounters {
  uint64_t launches;         // tasks queued, or recorded by a capture
  uint64_t operators;        // operators that ran, in replays too
  uint64_t graph_replays;    // graphs that ran
  uint64_t host_syncs;       // waits for a stream, an event or a device
  uint64_t blocking_copies;  // copies that the host waited for
  uint64_t allocations;      // of device memory
  uint64_t frees;
  uint64_t host_allocations;  // of pinned host memory
  uint64_t host_frees;
  uint64_t bytes_to_device;
  uint64_t bytes_to_host;
  uint64_t bytes_on_device;    // copied from device to device
  uint64_t compilations;       // operators that had to be compiled
  uint64_t memory_bytes;       // device memory in use now, all devices
  uint64_t memory_peak_bytes;  // the most, summed over devices
  uint64_t host_ns;            // simulated time of the calling thread
} cannsimCounters;

// Fills the first `bytes` bytes of `counters` (sizeof(*counters)); a caller of
// an older header gets what it knows. Any thread, any time.
void cannsim_get_counters(cannsimCounters* counters, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif  // BELAY_CANNSIM_INCLUDE_CANNSIM_CANNSIM_H_
