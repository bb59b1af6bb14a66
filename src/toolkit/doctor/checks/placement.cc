// SPDX-License-Identifier: Apache-2.0
// Where processes, memory and interrupts lie in relation to the NPUs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "toolkit/doctor/checks/checks.h"
#include "toolkit/doctor/facts/host.h"

namespace belay::doctor {
namespace {

// Where the interrupt goes, as far as the kernel tells.
const std::vector<int>& Target(const Interrupt& interrupt) {
  return interrupt.effective.empty() ? interrupt.allowed : interrupt.effective;
}

void CheckInterrupts(Patient& p, const Host& host) {
  for (const BusDevice& npu : host.npus) {
    const NumaNode* node = host.Node(npu.node);
    if (node == nullptr || node->cpus.empty()) continue;
    size_t n_far = 0;
    const Interrupt* first = nullptr;
    for (const Interrupt& interrupt : npu.interrupts) {
      if (Overlaps(Target(interrupt), node->cpus)) continue;
      ++n_far;
      if (first == nullptr) first = &interrupt;
    }
    if (first == nullptr) continue;
    p.Add("DOCT-066",
          fmt::format("/proc/irq/{}/smp_affinity_list", first->number),
          fmt::format("{} of {} interrupts of {} (node {}) go to other nodes, "
                      "{} to CPUs {}",
                      n_far, npu.interrupts.size(), npu.address, node->id,
                      first->number, FormatCpuList(Target(*first))),
          "belay tune");
  }
}

void CheckNodeOfNpus(Patient& p, const Host& host) {
  std::vector<int> near;  // CPUs beside any NPU
  std::string unknown;
  for (const BusDevice& npu : host.npus) {
    if (npu.node < 0) {
      unknown += (unknown.empty() ? "" : ", ") + npu.address;
    } else if (const NumaNode* node = host.Node(npu.node)) {
      near.insert(near.end(), node->cpus.begin(), node->cpus.end());
    }
  }
  if (!unknown.empty()) {
    p.Add("DOCT-069", "/sys/bus/pci/devices/*/numa_node",
          fmt::format("{} nodes, no node said of {}", host.nodes.size(),
                      unknown.substr(0, 200)),
          "lspci -vv | grep -i numa; npu-smi info -t topo");
    return;
  }
  std::sort(near.begin(), near.end());
  if (near.empty() || host.allowed_cpus.empty() ||
      Overlaps(host.allowed_cpus, near)) {
    return;
  }
  near.erase(std::unique(near.begin(), near.end()), near.end());
  p.Add("DOCT-067", "/proc/self/status",
        fmt::format("this process may use CPUs {}, the NPUs are at {}",
                    FormatCpuList(host.allowed_cpus), FormatCpuList(near)),
        "taskset -pc $$; numactl --show");
}

// The article's trap: who is bound to one node's memory binds all it starts.
void CheckMemoryReach(Patient& p, const Host& host) {
  if (host.allowed_nodes.empty()) return;
  std::string out_of_reach;
  for (const NumaNode& node : host.nodes) {
    if (node.total_kib == 0 ||
        std::binary_search(host.allowed_nodes.begin(), host.allowed_nodes.end(),
                           node.id)) {
      continue;
    }
    out_of_reach +=
        fmt::format("{}{}", out_of_reach.empty() ? "" : ", ", node.id);
  }
  if (out_of_reach.empty()) return;
  p.Add("DOCT-061", "/proc/self/status",
        fmt::format("Mems_allowed_list {}, memory of node {} is out of reach",
                    FormatCpuList(host.allowed_nodes), out_of_reach),
        p.facts.is_container ? "docker inspect -f '{{.HostConfig.CpusetMems}}' "
                               "CONTAINER"
                             : "numactl --show; belay explain HOST-004");
}

uint64_t NumberOf(const std::map<std::string, std::string>& values,
                  const char* name) {
  const auto found = values.find(name);
  return found == values.end()
             ? 0
             : std::strtoull(found->second.c_str(), nullptr, 10);
}

// Reserved pages that nobody uses are memory that nobody can use.
void CheckHugePages(Patient& p) {
  if (const auto text = p.machine.Read("/proc/meminfo")) {
    const auto values = KeyValues(*text);
    const uint64_t page_kib = NumberOf(values, "hugepagesize");
    const uint64_t n_free = NumberOf(values, "hugepages_free");
    const uint64_t all_kib = NumberOf(values, "memtotal");
    if (page_kib > 0 && n_free > all_kib / 4 / page_kib && all_kib > 0) {
      p.Add("DOCT-056", "/proc/meminfo",
            fmt::format("{} huge pages of {} MiB are reserved and free, {} of "
                        "{} GiB",
                        n_free, page_kib >> 10,
                        static_cast<uint64_t>(static_cast<double>(n_free) *
                                              static_cast<double>(page_kib) /
                                              (1 << 20)),
                        all_kib >> 20),
            "sudo sysctl -w vm.nr_hugepages=0");
    }
  }
  const std::string path = "/sys/kernel/mm/transparent_hugepage/enabled";
  const auto mode = p.machine.Read(path);
  if (mode && mode->find("[never]") != std::string::npos) {
    p.Add("DOCT-057", path, Trimmed(*mode), "echo madvise | sudo tee " + path);
  }
}

}  // namespace

void CheckPlacement(Patient& patient) {
  if (!patient.facts.has_npu()) return;
  CheckHugePages(patient);
  const Host host = ReadHost(patient.machine, patient.facts);
  if (host.nodes.size() < 2) return;
  CheckInterrupts(patient, host);
  CheckNodeOfNpus(patient, host);
  CheckMemoryReach(patient, host);
}

}  // namespace belay::doctor
