// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>

#include "toolkit/doctor/checks/checks.h"

namespace belay::doctor {
namespace {

constexpr uint64_t kGib = uint64_t{1} << 30;

// "Max open files  1024  524288  files": the soft limit; nothing if unlimited.
void CheckOpenFiles(Patient& p) {
  const auto limits = p.machine.Read("/proc/self/limits");
  if (!limits) return;
  for (const std::string& line : Split(*limits, '\n')) {
    if (!line.starts_with("Max open files")) continue;
    const long soft = std::strtol(line.c_str() + 14, nullptr, 10);
    // A rank opens a few thousand: sockets of HCCL, libraries, shards.
    if (soft > 0 && soft < 4096) {
      p.Add("DOCT-060", "/proc/self/limits", fmt::format("{} open files", soft),
            "ulimit -n 65536");
    }
  }
}

void CheckMemory(Patient& p) {
  const auto text = p.machine.Read("/proc/meminfo");
  if (!text) return;
  const auto values = KeyValues(*text);
  const auto found = values.find("memavailable");
  if (found == values.end()) return;
  const uint64_t kib = std::strtoull(found->second.c_str(), nullptr, 10);
  // Below this the driver itself fails to allocate (-12).
  if (kib * 1024 < 4 * kGib) {
    p.Add("DOCT-065", "/proc/meminfo",
          fmt::format("MemAvailable {:.1f} GiB, at least 4",
                      static_cast<double>(kib) / (1 << 20)),
          "free -g; ps aux --sort=-rss | head");
  }
}

void CheckSharedMemory(Patient& p) {
  if (!p.facts.is_container) return;
  const auto total = p.machine.TotalBytes("/dev/shm");
  if (total && *total < kGib) {
    p.Add("DOCT-053", "/dev/shm", fmt::format("{} MiB", *total >> 20),
          "docker run --shm-size=16g ...");
  }
}

void CheckCpu(Patient& p) {
  const std::string numa = "/proc/sys/kernel/numa_balancing";
  const auto balancing = p.machine.Read(numa);
  if (balancing && balancing->starts_with("1")) {
    p.Add("DOCT-062", numa, "1", "sudo sysctl -w kernel.numa_balancing=0");
  }
  const std::string path =
      "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
  const auto governor = p.machine.Read(path);
  if (governor && !governor->starts_with("performance")) {
    p.Add("DOCT-063", path, governor->substr(0, governor->find('\n')),
          "sudo cpupower frequency-set -g performance");
  }
}

}  // namespace

void CheckTuning(Patient& patient) {
  CheckMemory(patient);
  CheckOpenFiles(patient);
  CheckSharedMemory(patient);
  // What only matters to NPUs is not said where there are none.
  if (patient.facts.has_npu()) CheckCpu(patient);
}

}  // namespace belay::doctor
