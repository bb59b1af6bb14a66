// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "toolkit/doctor/checks/checks.h"

namespace belay::doctor {
namespace {

std::string Trim(const std::string& text) {
  const size_t start = text.find_first_not_of(" \t\r\n");
  if (start == std::string::npos) return "";
  return text.substr(start, text.find_last_not_of(" \t\r\n") - start + 1);
}

// The nodes beside /dev/davinciN that a program opens; the 950 has others.
std::vector<std::string> ManagerNodes(Family family) {
  if (family == Family::kA5) return {"davinci_manager"};
  return {"davinci_manager", "devmm_svm", "hisi_hdc"};
}

void CheckNodes(Patient& p) {
  const Facts& facts = p.facts;
  if (!facts.simulator.empty()) return;
  if (!facts.has_npu()) {
    p.Add("DOCT-010", "/dev, /sys/bus/pci/devices", "no NPU", "");
    return;
  }
  if (facts.nodes.empty()) {
    if (facts.is_container) {
      p.Add("DOCT-050", "/dev", "no /dev/davinciN in this container",
            "docker run --device /dev/davinci0 --device /dev/davinci_manager "
            "--device /dev/devmm_svm --device /dev/hisi_hdc ...");
    } else {
      p.Add(
          "DOCT-011", "/sys/bus/pci/devices",
          fmt::format("{} NPUs on the bus, no /dev/davinciN", facts.pci.size()),
          "lsmod | grep drv_; dmesg | grep -i ascend | tail");
    }
    return;
  }
  for (const std::string& name : ManagerNodes(facts.family)) {
    const std::string path = "/dev/" + name;
    const PathState state = p.machine.Stat(path);
    if (!state.exists()) {
      p.Add("DOCT-012", path, "not there",
            facts.is_container ? "docker run --device " + path + " ..."
                               : "systemctl status npu-driver; dmesg | tail");
    } else if (!state.can_read || !state.can_write) {
      p.Add("DOCT-013", path, "this user may not read and write it",
            "sudo usermod -aG HwHiAiUser $USER");
    }
  }
  for (const int node : facts.nodes) {
    const std::string path = fmt::format("/dev/davinci{}", node);
    const PathState state = p.machine.Stat(path);
    if (state.exists() && (!state.can_read || !state.can_write)) {
      p.Add("DOCT-013", path, "this user may not read and write it",
            "sudo usermod -aG HwHiAiUser $USER");
    }
  }
}

void CheckSmi(Patient& p) {
  const Facts& facts = p.facts;
  if (facts.nodes.empty() && facts.simulator.empty()) return;
  if (!facts.has_smi) {
    p.Add(
        "DOCT-019", "npu-smi", "not found",
        facts.is_container
            ? "docker run -v /usr/local/bin/npu-smi:/usr/local/bin/npu-smi ..."
            : "ls /usr/local/bin/npu-smi /usr/local/sbin/npu-smi");
    return;
  }
  if (facts.smi.devices.empty()) {
    const std::string first = facts.smi_text.substr(
        0, std::min<size_t>(facts.smi_text.find('\n'), 200));
    p.Add("DOCT-018", "npu-smi info",
          facts.smi_status == -2 ? "no answer in time" : first,
          "npu-smi info; belay explain \"" + Trim(first) + "\"");
    return;
  }
  std::set<int> cards;
  for (const SmiDevice& device : facts.smi.devices) {
    cards.insert(device.npu);
    if (device.health == "OK") continue;
    p.Add("DOCT-014", "npu-smi info",
          fmt::format("NPU {}: {}", device.npu, device.health),
          fmt::format("npu-smi info -t health -i {}", device.npu));
  }
  // A container sees the whole bus, but only its own devices.
  if (!facts.is_container && !facts.pci.empty() &&
      facts.pci.size() > facts.smi.devices.size()) {
    p.Add("DOCT-015", "npu-smi info, /sys/bus/pci/devices",
          fmt::format("{} on the bus, {} in npu-smi", facts.pci.size(),
                      facts.smi.devices.size()),
          "npu-smi info -l; dmesg | grep -i ascend | tail");
  }
  // Cards come in fours and eights; seven is eight and a lost one.
  if (!facts.is_container && facts.simulator.empty() && cards.size() % 2 == 1 &&
      cards.size() > 1 && facts.pci.size() <= facts.smi.devices.size()) {
    p.Add("DOCT-015", "npu-smi info", fmt::format("{} cards", cards.size()),
          "lspci | grep -i accel");
  }
}

// Memory that is held: by a process that is there, by one that is gone, or by
// nobody that can be seen.
void CheckHolders(Patient& p) {
  std::set<int> told;
  for (const SmiProcess& process : p.facts.smi.processes) {
    const std::string proc = fmt::format("/proc/{}", process.pid);
    const bool is_gone =
        !p.facts.is_container && !p.machine.Stat(proc).exists();
    p.Add(is_gone ? "DOCT-016" : "DOCT-017", "npu-smi info",
          fmt::format("NPU {}: process {} ({}) holds {} MB", process.npu,
                      process.pid, process.name, process.memory_mb),
          is_gone ? fmt::format("npu-smi set -t reset -i {} -c 0", process.npu)
                  : fmt::format("ps -fp {}", process.pid));
    told.insert(process.npu);
  }
  for (const SmiDevice& device : p.facts.smi.devices) {
    if (told.contains(device.npu) || device.total_mb <= 0) continue;
    // The driver itself keeps about 3 GB of a 64 GB part, 5 of a 128 GB one.
    if (device.used_mb * 100 <= device.total_mb * 12) continue;
    p.Add("DOCT-016", "npu-smi info",
          fmt::format("NPU {}: {} of {} MB are used and no process is listed",
                      device.npu, device.used_mb, device.total_mb),
          "docker ps; ls -l /proc/*/fd 2>/dev/null | grep davinci");
    told.insert(device.npu);
  }
}

void CheckLinks(Patient& p) {
  for (const std::string& address : p.facts.pci) {
    const std::string root = "/sys/bus/pci/devices/" + address + "/";
    const auto read = [&](const char* name) {
      return Trim(p.machine.Read(root + name).value_or(""));
    };
    const std::string width = read("current_link_width");
    const std::string most = read("max_link_width");
    const std::string speed = read("current_link_speed");
    const std::string best = read("max_link_speed");
    if (width.empty() || most.empty()) continue;
    if (width == most && speed == best) continue;
    p.Add("DOCT-064", root + "current_link_width",
          fmt::format("x{} at {}, able to x{} at {}", width, speed, most, best),
          fmt::format("lspci -vv -s {} | grep -E 'LnkCap|LnkSta'", address));
  }
}

void CheckKernelLog(Patient& p) {
  if (p.facts.is_container || !p.facts.has_npu()) return;
  const CommandOutput log = p.machine.Run("dmesg --level=err,crit,alert,emerg");
  if (!log.is_found || log.status != 0) return;
  size_t n = 0;
  std::string last;
  for (const std::string& line : Split(log.out, '\n')) {
    if (line.find("[ascend]") == std::string::npos &&
        line.find("ascend:") == std::string::npos) {
      continue;
    }
    ++n;
    last = line;
  }
  if (n == 0) return;
  p.Add("DOCT-068", "dmesg",
        fmt::format("{} lines of the NPU driver, the last: {}", n,
                    last.substr(0, 200)),
        "dmesg -T | belay logs -");
}

}  // namespace

void CheckDevices(Patient& patient) {
  CheckNodes(patient);
  CheckSmi(patient);
  CheckHolders(patient);
  if (!patient.facts.is_container) CheckLinks(patient);
  CheckKernelLog(patient);
}

}  // namespace belay::doctor
