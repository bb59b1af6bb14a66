// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/facts/facts.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>

#include "toolkit/doctor/facts/version.h"

namespace belay::doctor {
namespace {

constexpr char kAscend[] = "/usr/local/Ascend";

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

std::string Trim(const std::string& text) {
  const size_t start = text.find_first_not_of(" \t\r\n\"");
  if (start == std::string::npos) return "";
  return text.substr(start, text.find_last_not_of(" \t\r\n\"") - start + 1);
}

// N of "davinciN"; -1 for others (davinci_manager).
int NodeNumber(const std::string& name) {
  const std::string digits = name.substr(std::min<size_t>(7, name.size()));
  if (!name.starts_with("davinci") || digits.empty() || digits.size() > 4 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    return -1;
  }
  return std::atoi(digits.c_str());
}

// Processing accelerators (class 0x1200) of Huawei.
void ReadPci(Machine& machine, Facts& facts) {
  const std::string root = "/sys/bus/pci/devices";
  for (const std::string& address : machine.List(root)) {
    const auto vendor = machine.Read(root + "/" + address + "/vendor");
    if (!vendor || Trim(*vendor) != "0x19e5") continue;
    const auto kind = machine.Read(root + "/" + address + "/class");
    if (kind && Trim(*kind).starts_with("0x1200")) {
      facts.pci.push_back(address);
    }
  }
}

void ReadSimulator(Machine& machine, Facts& facts) {
  const std::string root = facts.Variable("ASCEND_HOME_PATH");
  if (root.empty()) return;
  const auto text = machine.Read(root + "/version.info");
  if (text) facts.simulator = KeyValues(*text)["cannsim_version"];
}

void ReadDevices(Machine& machine, Facts& facts) {
  for (const std::string& name : machine.List("/dev")) {
    const int number = NodeNumber(name);
    if (number >= 0) facts.nodes.push_back(number);
  }
  std::sort(facts.nodes.begin(), facts.nodes.end());
  ReadPci(machine, facts);
  if (!facts.has_npu() && facts.simulator.empty() &&
      !machine.Stat("/usr/local/bin/npu-smi").exists() &&
      !machine.Stat("/usr/local/sbin/npu-smi").exists()) {
    return;
  }
  const CommandOutput smi = machine.Run("npu-smi info");
  facts.has_smi = smi.is_found;
  facts.smi_status = smi.timed_out ? -2 : smi.status;
  facts.smi_text = smi.out;
  facts.smi = ParseNpuSmi(smi.out);
  if (!facts.smi.devices.empty()) {
    facts.family = FamilyOf(facts.smi.devices[0].name,
                            smi.out.find("Phy-ID") != std::string::npos);
  }
}

void ReadDriver(Machine& machine, Facts& facts) {
  const std::string file = std::string(kAscend) + "/driver/version.info";
  if (const auto text = machine.Read(file)) {
    auto values = KeyValues(*text);
    facts.driver = values["version"];
    facts.driver_file = file;
    // compatible_version_fw=[7.0.0,7.5.99]
    const std::string range = values["compatible_version_fw"];
    const size_t comma = range.find(',');
    if (range.size() > 4 && range[0] == '[' && comma != std::string::npos) {
      facts.driver_fw_low = range.substr(1, comma - 1);
      facts.driver_fw_high =
          range.substr(comma + 1, range.find(']') - comma - 1);
    }
  } else if (!facts.smi.version.empty()) {
    facts.driver = facts.smi.version;
    facts.driver_file = "npu-smi info";
  }
  const auto firmware =
      machine.Read(std::string(kAscend) + "/firmware/version.info");
  if (firmware) facts.firmware = KeyValues(*firmware)["version"];
}

// The version of the toolkit in `root`, or "".
std::string ToolkitVersion(Machine& machine, const std::string& root,
                           const std::string& arch, std::string& file) {
  for (const std::string& candidate :
       {root + "/" + arch + "-linux/ascend_toolkit_install.info",
        root + "/ascend_toolkit_install.info", root + "/runtime/version.info",
        root + "/version.info"}) {
    const auto text = machine.Read(candidate);
    if (!text) continue;
    auto values = KeyValues(*text);
    file = candidate;
    return candidate.ends_with("/version.info") &&
                   !values["version_dir"].empty()
               ? values["version_dir"]
               : values["version"];
  }
  return "";
}

void ReadToolkit(Machine& machine, Facts& facts) {
  std::vector<std::string> roots;
  for (const char* name : {"ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"}) {
    const std::string value = facts.Variable(name);
    if (!value.empty()) roots.push_back(value);
  }
  roots.push_back(std::string(kAscend) + "/ascend-toolkit/latest");
  roots.push_back(std::string(kAscend) + "/cann");
  for (const std::string& name : machine.List(kAscend)) {
    if (name.starts_with("cann-")) {
      roots.push_back(std::string(kAscend) + "/" + name);
    }
  }
  for (const std::string& root : roots) {
    if (std::find(facts.cann_roots.begin(), facts.cann_roots.end(), root) !=
        facts.cann_roots.end()) {
      continue;
    }
    std::string file;
    const std::string version = ToolkitVersion(machine, root, facts.arch, file);
    if (version.empty()) continue;
    facts.cann_roots.push_back(root);
    if (facts.cann.empty()) {
      facts.cann = version;
      facts.cann_root = root;
      facts.cann_file = file;
    }
  }
}

// "torch_npu-2.9.0.dist-info" in the folders where Python looks.
void ReadPackages(Machine& machine, Facts& facts) {
  std::set<std::string> bases;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string value = facts.Variable(name);
    if (!value.empty()) bases.insert(value + "/lib");
  }
  std::vector<std::string> folders;
  const auto look = [&](const std::string& lib) {
    for (const std::string& name : machine.List(lib)) {
      if (!name.starts_with("python3")) continue;
      for (const char* kind : {"/site-packages", "/dist-packages"}) {
        folders.push_back(lib + "/" + name + kind);
      }
    }
  };
  for (const std::string& base : bases) look(base);
  if (bases.empty()) {
    for (const std::string& name : machine.List("/usr/local")) {
      if (name.starts_with("python3")) look("/usr/local/" + name + "/lib");
    }
    look("/usr/local/lib");
    look("/usr/lib");
  }
  for (const std::string& folder : folders) {
    for (const std::string& name : machine.List(folder)) {
      if (!name.ends_with(".dist-info")) continue;
      const std::string stem = name.substr(0, name.size() - 10);
      const size_t dash = stem.find('-');
      if (dash == std::string::npos) continue;
      std::string package = Lower(stem.substr(0, dash));
      std::replace(package.begin(), package.end(), '-', '_');
      const bool is_new =
          facts.packages
              .emplace(package, Package{stem.substr(dash + 1), folder})
              .second;
      // The Python that holds torch is the one that counts.
      if (is_new && package == "torch") {
        const size_t at = folder.find("/python3", folder.find("/lib/"));
        if (at != std::string::npos) {
          facts.python =
              folder.substr(at + 7, folder.find('/', at + 1) - at - 7);
        }
      }
    }
  }
}

// One folder a line. Files that include others are left alone: the driver's is
// plain.
void ReadLoader(Machine& machine, Facts& facts) {
  const std::string root = "/etc/ld.so.conf.d";
  for (const std::string& name : machine.List(root)) {
    if (!name.ends_with(".conf")) continue;
    const auto text = machine.Read(root + "/" + name);
    if (!text) continue;
    for (const std::string& line : Split(*text, '\n')) {
      const std::string folder = Trim(line);
      if (folder.starts_with('/')) facts.loader_folders.push_back(folder);
    }
  }
}

bool IsContainer(Machine& machine) {
  if (machine.Stat("/.dockerenv").exists() ||
      machine.Stat("/run/.containerenv").exists()) {
    return true;
  }
  const auto groups = machine.Read("/proc/1/cgroup");
  if (!groups) return false;
  for (const std::string_view word :
       {"docker", "kubepods", "containerd", "libpod"}) {
    if (groups->find(word) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

std::string_view NameOf(Family family) {
  static constexpr std::string_view kNames[] = {"unknown", "310", "310P", "910",
                                                "A2",      "A3",  "A5"};
  return kNames[static_cast<size_t>(family)];
}

Family FamilyOf(const std::string& name, bool has_physical_ids) {
  const std::string lower = Lower(name);
  const auto holds = [&](std::string_view part) {
    return lower.find(part) != std::string::npos;
  };
  if (holds("950")) return Family::kA5;
  if (holds("910_93")) return Family::kA3;
  if (holds("910b")) return Family::kA2;
  if (holds("310p")) return Family::k310P;
  if (holds("310")) return Family::k310;
  if (holds("910")) return has_physical_ids ? Family::kA3 : Family::k910;
  return Family::kUnknown;
}

std::map<std::string, std::string> KeyValues(const std::string& text) {
  std::map<std::string, std::string> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    size_t mark = line.find('=');
    if (mark == std::string::npos) mark = line.find(':');
    if (mark == std::string::npos) continue;
    values.emplace(Lower(Trim(line.substr(0, mark))),
                   Trim(line.substr(mark + 1)));
  }
  return values;
}

std::vector<std::string> Split(const std::string& text, char mark) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, mark);) {
    if (!part.empty()) parts.push_back(part);
  }
  return parts;
}

Facts ReadFacts(Machine& machine) {
  Facts facts;
  facts.arch = machine.Arch();
  facts.variables = machine.Variables();
  facts.is_container = IsContainer(machine);
  ReadSimulator(machine, facts);
  ReadDevices(machine, facts);
  ReadDriver(machine, facts);
  ReadToolkit(machine, facts);
  ReadLoader(machine, facts);
  ReadPackages(machine, facts);
  return facts;
}

}  // namespace belay::doctor
