// SPDX-License-Identifier: Apache-2.0
// CPUs, NUMA nodes and interrupts of the host, as far as they matter to NPUs.
#ifndef BELAY_TOOLKIT_DOCTOR_FACTS_HOST_H_
#define BELAY_TOOLKIT_DOCTOR_FACTS_HOST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/doctor/facts/facts.h"
#include "toolkit/doctor/machine/machine.h"

namespace belay::doctor {

// "0-3,8\n" of the kernel to {0, 1, 2, 3, 8}, ascending and without doubles;
// "" is the empty list. Nothing when it is no such list or names a number
// beyond 65535.
std::optional<std::vector<int>> ParseCpuList(std::string_view text);

// The other way round, without a newline.
std::string FormatCpuList(const std::vector<int>& cpus);

// Whether every number of `some` is in `all`, or any of them; both ascending.
bool IsWithin(const std::vector<int>& some, const std::vector<int>& all);
bool Overlaps(const std::vector<int>& one, const std::vector<int>& other);

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;
  uint64_t total_kib = 0;  // memory of its own; 0: none, or not known
  uint64_t free_kib = 0;   // free, without what caches could give back
};

struct Interrupt {
  int number = 0;
  std::vector<int> allowed;    // CPUs; smp_affinity_list
  std::vector<int> effective;  // where it goes; empty: the kernel does not say
};

// An NPU on the PCI bus.
struct BusDevice {
  std::string address;  // "0000:c1:00.0"
  int node = -1;        // -1: the system does not say
  std::vector<Interrupt> interrupts;
};

struct Host {
  std::vector<NumaNode> nodes;  // by id
  std::vector<BusDevice> npus;  // by address
  // Of the process: what it, and all that it starts, may use. Empty: unknown.
  std::vector<int> allowed_cpus, allowed_nodes;

  const NumaNode* Node(int id) const;
};

Host ReadHost(Machine& machine, const Facts& facts);

// Without blanks and newlines at both ends.
std::string Trimmed(std::string_view text);

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_FACTS_HOST_H_
