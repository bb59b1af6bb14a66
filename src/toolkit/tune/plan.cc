// SPDX-License-Identifier: Apache-2.0
#include "toolkit/tune/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>

namespace belay::tune {
namespace {

using doctor::BusDevice;
using doctor::Host;
using doctor::Machine;
using doctor::NumaNode;

constexpr char kCpus[] = "/sys/devices/system/cpu";
constexpr char kBalancing[] = "/proc/sys/kernel/numa_balancing";
constexpr char kAspm[] = "/sys/module/pcie_aspm/parameters/policy";
constexpr char kNoTurbo[] = "/sys/devices/system/cpu/intel_pstate/no_turbo";
constexpr char kBoost[] = "/sys/devices/system/cpu/cpufreq/boost";

std::optional<uint64_t> NumberIn(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  const std::string value = ValueOf(*text);
  uint64_t number = 0;
  const char* end = value.data() + value.size();
  if (value.empty() || std::from_chars(value.data(), end, number).ptr != end) {
    return std::nullopt;
  }
  return number;
}

bool HasWord(const std::string& text, std::string_view word) {
  std::istringstream words(text);
  for (std::string one; words >> one;) {
    if (one == word) return true;
  }
  return false;
}

class Planner {
 public:
  Planner(Machine& machine, const doctor::Facts& facts, const Host& host)
      : machine_(machine), facts_(facts), host_(host) {}

  Plan Make() {
    Clocks();
    Balancing();
    Place();
    Pcie();
    Traps();
    std::stable_sort(
        plan_.settings.begin(), plan_.settings.end(),
        [](const auto& a, const auto& b) { return a.topic < b.topic; });
    return std::move(plan_);
  }

 private:
  // Proposes `wanted` where the file says something else.
  void Want(Topic topic, const std::string& path, const std::string& wanted) {
    const auto text = machine_.Read(path);
    if (!text) return;
    const std::string now = ValueOf(*text);
    if (now == wanted || now.empty()) return;
    plan_.settings.push_back({topic, path, now, wanted});
  }

  void Clocks() {
    const std::string root = std::string(kCpus) + "/cpufreq/";
    for (const std::string& name :
         machine_.List(root.substr(0, root.size() - 1))) {
      if (!name.starts_with("policy")) continue;
      const std::string policy = root + name + "/";
      const auto governors =
          machine_.Read(policy + "scaling_available_governors");
      if (governors && HasWord(*governors, "performance")) {
        Want(Topic::kGovernor, policy + "scaling_governor", "performance");
      }
      const auto most = NumberIn(machine_.Read(policy + "cpuinfo_max_freq"));
      const auto limit = NumberIn(machine_.Read(policy + "scaling_max_freq"));
      if (most && limit && *limit < *most) {
        Want(Topic::kFrequency, policy + "scaling_max_freq",
             fmt::format("{}", *most));
      }
    }
    Want(Topic::kFrequency, kNoTurbo, "0");
    Want(Topic::kFrequency, kBoost, "1");
  }

  void Balancing() {
    if (host_.nodes.size() > 1) Want(Topic::kNumaBalancing, kBalancing, "0");
  }

  // The CPUs of a node, those of one core together.
  std::vector<std::vector<int>> CoresOf(const NumaNode& node) {
    std::vector<std::vector<int>> cores;
    std::set<int> seen;
    for (const int cpu : node.cpus) {
      if (seen.contains(cpu)) continue;
      const auto text = machine_.Read(
          fmt::format("{}/cpu{}/topology/thread_siblings_list", kCpus, cpu));
      std::vector<int> core;
      for (const int one :
           text ? doctor::ParseCpuList(*text).value_or(std::vector<int>{cpu})
                : std::vector<int>{cpu}) {
        if (std::binary_search(node.cpus.begin(), node.cpus.end(), one) &&
            seen.insert(one).second) {
          core.push_back(one);
        }
      }
      if (seen.insert(cpu).second) core.push_back(cpu);
      cores.push_back(std::move(core));
    }
    return cores;
  }

  int NumberOf(const BusDevice& npu) const {
    for (const doctor::SmiDevice& device : facts_.smi.devices) {
      const bool is_same =
          std::equal(device.bus.begin(), device.bus.end(), npu.address.begin(),
                     npu.address.end(), [](char a, char b) {
                       return std::tolower(static_cast<unsigned char>(a)) ==
                              std::tolower(static_cast<unsigned char>(b));
                     });
      if (is_same) return device.npu;
    }
    return -1;
  }

  // Each NPU of a node gets an equal share of its cores. Where there are
  // plenty, the last core of each share is left to interrupts: they would
  // disturb the thread that launches.
  void Place() {
    std::map<int, std::vector<const BusDevice*>> of_node;
    std::string unknown;
    for (const BusDevice& npu : host_.npus) {
      const NumaNode* node = host_.Node(npu.node);
      if (node != nullptr && !node->cpus.empty()) {
        of_node[npu.node].push_back(&npu);
      } else {
        unknown += (unknown.empty() ? "" : ", ") + npu.address;
      }
    }
    if (!unknown.empty() && host_.nodes.size() > 1) {
      plan_.advice.push_back(
          {"DOCT-069", unknown.substr(0, 200), "npu-smi info -t topo"});
    }
    for (const auto& [id, npus] : of_node) {
      const NumaNode& node = *host_.Node(id);
      const auto cores = CoresOf(node);
      const size_t share = cores.size() / npus.size();
      const bool has_spare = share >= 8;
      std::vector<int> spare;
      for (size_t i = 0; i < npus.size() && share > 0; ++i) {
        Binding binding{NumberOf(*npus[i]), npus[i]->address, id, {}};
        for (size_t c = i * share; c < (i + 1) * share; ++c) {
          auto& list =
              has_spare && c + 1 == (i + 1) * share ? spare : binding.cpus;
          list.insert(list.end(), cores[c].begin(), cores[c].end());
        }
        std::sort(binding.cpus.begin(), binding.cpus.end());
        plan_.bindings.push_back(std::move(binding));
      }
      std::sort(spare.begin(), spare.end());
      Interrupts(node, npus, has_spare ? spare : node.cpus);
    }
  }

  void Interrupts(const NumaNode& node,
                  const std::vector<const BusDevice*>& npus,
                  const std::vector<int>& cpus) {
    if (host_.nodes.size() < 2) return;
    bool is_moved = false;
    for (const BusDevice* npu : npus) {
      for (const doctor::Interrupt& interrupt : npu->interrupts) {
        if (doctor::IsWithin(interrupt.allowed, node.cpus)) continue;
        is_moved = true;
        Want(Topic::kInterrupts,
             fmt::format("/proc/irq/{}/smp_affinity_list", interrupt.number),
             doctor::FormatCpuList(cpus));
      }
    }
    if (is_moved && (machine_.Stat("/run/irqbalance.pid").exists() ||
                     machine_.Stat("/run/irqbalance").exists())) {
      const bool is_told =
          std::any_of(plan_.advice.begin(), plan_.advice.end(),
                      [](const Advice& a) { return a.id == "TUNE-010"; });
      if (!is_told) {
        plan_.advice.push_back(
            {"TUNE-010", "/run/irqbalance", "sudo systemctl stop irqbalance"});
      }
    }
  }

  void Pcie() {
    const auto policy = machine_.Read(kAspm);
    if (policy && ValueOf(*policy).starts_with("powers") &&
        policy->find("performance") != std::string::npos) {
      Want(Topic::kPcie, kAspm, "performance");
    }
    for (const BusDevice& npu : host_.npus) {
      const std::string root = "/sys/bus/pci/devices/" + npu.address + "/";
      Want(Topic::kPcie, root + "power/control", "on");
      const auto read = [&](const char* name) {
        return ValueOf(machine_.Read(root + name).value_or(""));
      };
      const std::string width = read("current_link_width");
      const std::string most = read("max_link_width");
      const std::string speed = read("current_link_speed");
      const std::string best = read("max_link_speed");
      if (width.empty() || most.empty()) continue;
      if (width == most && speed == best) continue;
      plan_.advice.push_back(
          {"DOCT-064",
           fmt::format("{}: x{} at {}, able to x{} at {}", npu.address, width,
                       speed, most, best),
           fmt::format("lspci -vv -s {} | grep -E 'LnkCap|LnkSta'",
                       npu.address)});
    }
  }

  // Nodes with memory that are not in `allowed`.
  std::vector<int> OutOfReach(const std::vector<int>& allowed) const {
    std::vector<int> nodes;
    for (const NumaNode& node : host_.nodes) {
      if (node.total_kib > 0 &&
          !std::binary_search(allowed.begin(), allowed.end(), node.id)) {
        nodes.push_back(node.id);
      }
    }
    return nodes;
  }

  // A process that is held to some nodes' memory holds all that it starts.
  void Traps() {
    if (host_.nodes.size() < 2) return;
    if (!host_.allowed_nodes.empty()) {
      const auto out = OutOfReach(host_.allowed_nodes);
      if (!out.empty()) {
        plan_.advice.push_back(
            {"DOCT-061",
             fmt::format("this process: Mems_allowed_list {}, not {}",
                         doctor::FormatCpuList(host_.allowed_nodes),
                         doctor::FormatCpuList(out)),
             "numactl --show"});
      }
    }
    Trap("self", "this process");
    std::set<int64_t> told;
    for (const doctor::SmiProcess& process : facts_.smi.processes) {
      if (facts_.is_container || !told.insert(process.pid).second) continue;
      Trap(fmt::format("{}", process.pid),
           fmt::format("process {} ({})", process.pid, process.name));
    }
  }

  // numa_maps: "7f0000000000 bind:0 anon=1 ..." under numactl --membind.
  void Trap(const std::string& pid, const std::string& who) {
    const auto maps = machine_.Read("/proc/" + pid + "/numa_maps");
    if (!maps) return;
    const size_t at = maps->find(" bind:");
    if (at == std::string::npos) return;
    const size_t end = maps->find_first_of(" \n", at + 6);
    const auto nodes = doctor::ParseCpuList(
        std::string_view(*maps).substr(at + 6, end - at - 6));
    if (!nodes) return;
    const auto out = OutOfReach(*nodes);
    if (out.empty()) return;
    plan_.advice.push_back(
        {"HOST-004",
         fmt::format("{}: memory bound to node {}, not {}", who,
                     doctor::FormatCpuList(*nodes), doctor::FormatCpuList(out)),
         fmt::format("numastat -p {}", pid == "self" ? "$$" : pid)});
  }

  Machine& machine_;
  const doctor::Facts& facts_;
  const Host& host_;
  Plan plan_;
};

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

// The part of `path` between two texts, or "".
std::string_view Between(std::string_view path, std::string_view start,
                         std::string_view end) {
  if (path.size() <= start.size() + end.size() || !path.starts_with(start) ||
      !path.ends_with(end)) {
    return "";
  }
  return path.substr(start.size(), path.size() - start.size() - end.size());
}

}  // namespace

std::string_view NameOf(Topic topic) {
  static constexpr std::string_view kNames[] = {
      "governor", "frequency", "numa_balancing", "interrupts", "pcie"};
  return kNames[static_cast<size_t>(topic)];
}

Plan MakePlan(Machine& machine, const doctor::Facts& facts, const Host& host) {
  return Planner(machine, facts, host).Make();
}

std::string CommandOf(const Binding& binding) {
  return fmt::format("numactl --physcpubind={} --preferred={}",
                     doctor::FormatCpuList(binding.cpus), binding.node);
}

std::string AffinityVariable(const std::vector<Binding>& bindings) {
  std::string value = "CPU_AFFINITY_CONF=1";
  std::map<int, const Binding*> by_number;
  for (const Binding& binding : bindings) {
    // Ranges only: a share of several pieces cannot be written.
    if (binding.npu < 0 || binding.cpus.empty() ||
        !by_number.emplace(binding.npu, &binding).second ||
        binding.cpus.back() - binding.cpus.front() + 1 !=
            static_cast<int>(binding.cpus.size())) {
      return "";
    }
  }
  for (const auto& [npu, binding] : by_number) {
    value += fmt::format(",npu{}:{}-{}", npu, binding->cpus.front(),
                         binding->cpus.back());
  }
  return by_number.empty() ? "" : value;
}

std::string ValueOf(std::string_view text) {
  const size_t open = text.find('[');
  const size_t close =
      text.find(']', open == std::string_view::npos ? 0 : open);
  if (open != std::string_view::npos && close != std::string_view::npos) {
    text = text.substr(open + 1, close - open - 1);
  }
  return doctor::Trimmed(text);
}

bool IsTunable(std::string_view path) {
  if (path == kBalancing || path == kAspm || path == kNoTurbo ||
      path == kBoost) {
    return true;
  }
  constexpr std::string_view kPolicy = "/sys/devices/system/cpu/cpufreq/policy";
  if (IsNumber(Between(path, kPolicy, "/scaling_governor")) ||
      IsNumber(Between(path, kPolicy, "/scaling_max_freq")) ||
      IsNumber(Between(path, "/proc/irq/", "/smp_affinity_list"))) {
    return true;
  }
  const std::string_view address =
      Between(path, "/sys/bus/pci/devices/", "/power/control");
  return !address.empty() &&
         address.find_first_not_of("0123456789abcdefABCDEF:.") ==
             std::string_view::npos &&
         address.find("..") == std::string_view::npos;
}

}  // namespace belay::tune
