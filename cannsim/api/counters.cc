// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/count/counters.h"

#include <algorithm>
#include <cstring>

#include "cannsim/cannsim.h"
#include "cannsim/runtime/count/clock.h"
#include "cannsim/runtime/process.h"

extern "C" {

void cannsim_get_counters(cannsimCounters* counters, size_t bytes) {
  if (counters == nullptr) return;
  const cannsim::Counters& c = cannsim::Count();
  const cannsim::Process& process = cannsim::Process::Get();
  cannsimCounters now = {};
  now.launches = c.launches;
  now.operators = c.operators;
  now.graph_replays = c.graph_replays;
  now.host_syncs = c.host_syncs;
  now.blocking_copies = c.blocking_copies;
  now.allocations = c.allocations;
  now.frees = c.frees;
  now.host_allocations = c.host_allocations;
  now.host_frees = c.host_frees;
  now.bytes_to_device = c.bytes_to_device;
  now.bytes_to_host = c.bytes_to_host;
  now.bytes_on_device = c.bytes_on_device;
  now.compilations = c.compilations;
  for (int id = 0; id < process.n_devices(); ++id) {
    const cannsim::DeviceMemory* memory = process.MemoryIfAny(id);
    if (memory == nullptr) continue;
    now.memory_bytes += memory->used_bytes();
    now.memory_peak_bytes += memory->peak_bytes();
  }
  now.host_ns = static_cast<uint64_t>(cannsim::HostNow());
  std::memcpy(counters, &now, std::min(bytes, sizeof(now)));
}

}  // extern "C"
