// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/facts/host.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <sstream>

namespace belay::doctor {
namespace {

constexpr int kMaxCpu = 65535;
// A card has a few dozen; more is not a card.
constexpr size_t kMaxInterrupts = 4096;

// A whole number of digits; -1 for anything else.
int NumberOf(std::string_view text) {
  int value = -1;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_whole =
      error == std::errc() && end == text.data() + text.size() && value >= 0;
  return is_whole ? value : -1;
}

std::vector<int> CpuListIn(Machine& machine, const std::string& path) {
  const auto text = machine.Read(path);
  if (!text) return {};
  return ParseCpuList(*text).value_or(std::vector<int>());
}

// "Node 0 MemTotal:  526000000 kB"
uint64_t MemoryLine(const std::string& text, std::string_view name) {
  const size_t at = text.find(name);
  if (at == std::string::npos) return 0;
  return std::strtoull(text.c_str() + at + name.size(), nullptr, 10);
}

void ReadNodes(Machine& machine, Host& host) {
  const std::string root = "/sys/devices/system/node";
  for (const std::string& name : machine.List(root)) {
    if (!name.starts_with("node")) continue;
    NumaNode node;
    node.id = NumberOf(std::string_view(name).substr(4));
    if (node.id < 0) continue;
    node.cpus = CpuListIn(machine, root + "/" + name + "/cpulist");
    if (const auto memory = machine.Read(root + "/" + name + "/meminfo")) {
      node.total_kib = MemoryLine(*memory, "MemTotal:");
      node.free_kib = MemoryLine(*memory, "MemFree:");
    }
    host.nodes.push_back(std::move(node));
  }
  std::sort(host.nodes.begin(), host.nodes.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
}

void ReadInterrupts(Machine& machine, BusDevice& device) {
  const std::string root = "/sys/bus/pci/devices/" + device.address;
  for (const std::string& name : machine.List(root + "/msi_irqs")) {
    Interrupt interrupt;
    interrupt.number = NumberOf(name);
    if (interrupt.number < 0) continue;
    const std::string irq = fmt::format("/proc/irq/{}/", interrupt.number);
    interrupt.allowed = CpuListIn(machine, irq + "smp_affinity_list");
    interrupt.effective = CpuListIn(machine, irq + "effective_affinity_list");
    if (interrupt.allowed.empty()) continue;
    device.interrupts.push_back(std::move(interrupt));
    if (device.interrupts.size() >= kMaxInterrupts) return;
  }
}

void ReadAllowed(Machine& machine, Host& host) {
  const auto text = machine.Read("/proc/self/status");
  if (!text) return;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    const size_t mark = line.find(':');
    if (mark == std::string::npos) continue;
    const std::string_view name = std::string_view(line).substr(0, mark);
    std::vector<int>* list = name == "Cpus_allowed_list"   ? &host.allowed_cpus
                             : name == "Mems_allowed_list" ? &host.allowed_nodes
                                                           : nullptr;
    if (list == nullptr) continue;
    *list = ParseCpuList(std::string_view(line).substr(mark + 1))
                .value_or(std::vector<int>());
  }
}

}  // namespace

std::string Trimmed(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos) return "";
  return std::string(
      text.substr(start, text.find_last_not_of(" \t\r\n") - start + 1));
}

std::optional<std::vector<int>> ParseCpuList(std::string_view text) {
  const std::string list = Trimmed(text);
  std::vector<int> cpus;
  std::istringstream stream(list);
  for (std::string part; std::getline(stream, part, ',');) {
    const size_t dash = part.find('-');
    const int first = NumberOf(std::string_view(part).substr(0, dash));
    const int last = dash == std::string::npos
                         ? first
                         : NumberOf(std::string_view(part).substr(dash + 1));
    if (first < 0 || last < first || last > kMaxCpu) return std::nullopt;
    // Ascending, or a short text could name 65536 numbers again and again.
    if (!cpus.empty() && first <= cpus.back()) return std::nullopt;
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

std::string FormatCpuList(const std::vector<int>& cpus) {
  std::string list;
  for (size_t i = 0; i < cpus.size();) {
    size_t end = i;
    while (end + 1 < cpus.size() && cpus[end + 1] == cpus[end] + 1) ++end;
    if (!list.empty()) list += ",";
    list += end == i ? fmt::format("{}", cpus[i])
                     : fmt::format("{}-{}", cpus[i], cpus[end]);
    i = end + 1;
  }
  return list;
}

bool IsWithin(const std::vector<int>& some, const std::vector<int>& all) {
  return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

bool Overlaps(const std::vector<int>& one, const std::vector<int>& other) {
  return std::any_of(one.begin(), one.end(), [&](int cpu) {
    return std::binary_search(other.begin(), other.end(), cpu);
  });
}

const NumaNode* Host::Node(int id) const {
  for (const NumaNode& node : nodes) {
    if (node.id == id) return &node;
  }
  return nullptr;
}

Host ReadHost(Machine& machine, const Facts& facts) {
  Host host;
  ReadNodes(machine, host);
  for (const std::string& address : facts.pci) {
    BusDevice device;
    device.address = address;
    const auto node =
        machine.Read("/sys/bus/pci/devices/" + address + "/numa_node");
    if (node) device.node = NumberOf(Trimmed(*node));
    ReadInterrupts(machine, device);
    host.npus.push_back(std::move(device));
  }
  ReadAllowed(machine, host);
  return host;
}

}  // namespace belay::doctor
