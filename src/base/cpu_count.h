// SPDX-License-Identifier: Apache-2.0
// How many cores this process may really use.
#ifndef BELAY_BASE_CPU_COUNT_H_
#define BELAY_BASE_CPU_COUNT_H_

#include <span>
#include <string>
#include <vector>

namespace belay {

// The numbers of the logical CPUs in this process's affinity mask, ascending;
// empty when the system does not tell.
std::vector<int> AllowedCpus();

// Physical cores among `cpus` (two hyper-threads of one core count once),
// limited by the CPU quota of the process's control group and of those above
// it, rounded down; at least 1. `root` stands for "/" and is a parameter only
// for tests; what cannot be read there limits nothing.
//
// Sources: Linux Documentation/admin-guide/cputopology.rst
// (topology/thread_siblings_list), cgroup-v2.rst (cpu.max),
// scheduler/sched-bwc.rst (cpu.cfs_quota_us, cpu.cfs_period_us).
int CountUsableCores(std::span<const int> cpus, const std::string& root = "");

}  // namespace belay

#endif  // BELAY_BASE_CPU_COUNT_H_
