// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/count/counters.h"

#include <mutex>
#include <unordered_map>

namespace cannsim {
namespace {

// Names are literals, so that their address finds them; two libraries may hold
// the same name twice, which TimesByName joins.
struct Times {
  std::mutex mutex;
  std::unordered_map<const char*, TaskTime> by_name;
};

Times& AllTimes() {
  static auto* const times = new Times;
  return *times;
}

}  // namespace

Counters& Count() {
  static auto* const counters = new Counters;
  return *counters;
}

void CountCopy(int to_device, int from_device, uint64_t bytes) {
  if (to_device >= 0 && from_device >= 0) {
    Add(Count().bytes_on_device, bytes);
  } else if (to_device >= 0) {
    Add(Count().bytes_to_device, bytes);
  } else if (from_device >= 0) {
    Add(Count().bytes_to_host, bytes);
  }
}

void NoteTime(const char* name, double ns) {
  Times& times = AllTimes();
  const std::lock_guard lock(times.mutex);
  TaskTime& time = times.by_name[name];
  ++time.n;
  time.ns += ns;
}

std::map<std::string, TaskTime> TimesByName() {
  Times& times = AllTimes();
  const std::lock_guard lock(times.mutex);
  std::map<std::string, TaskTime> joined;
  for (const auto& [name, time] : times.by_name) {
    TaskTime& sum = joined[name];
    sum.n += time.n;
    sum.ns += time.ns;
  }
  return joined;
}

}  // namespace cannsim
