// SPDX-License-Identifier: Apache-2.0
// What is true of a machine, read once for all checks.
#ifndef BELAY_TOOLKIT_DOCTOR_FACTS_FACTS_H_
#define BELAY_TOOLKIT_DOCTOR_FACTS_FACTS_H_

#include <map>
#include <string>
#include <vector>

#include "toolkit/doctor/facts/npu_smi.h"
#include "toolkit/doctor/machine/machine.h"

namespace belay::doctor {

enum class Family : uint8_t { kUnknown, k310, k310P, k910, kA2, kA3, kA5 };
std::string_view NameOf(Family family);  // "A2", ...

// By the name that npu-smi or the runtime uses: "910B3", "Ascend910_9392".
// "Ascend910" alone is A3 in npu-smi's layout with physical ids, else the old
// 910.
Family FamilyOf(const std::string& name, bool has_physical_ids);

struct Package {
  std::string version;
  std::string folder;  // where it is installed
};

struct Facts {
  std::string arch;
  bool is_container = false;
  // Version of cannsim when the toolkit is that stand-in: there are no device
  // nodes, no driver and no kernels then, and nothing is wrong with that.
  std::string simulator;
  std::map<std::string, std::string> variables;

  // Devices
  std::vector<int> nodes;        // N of /dev/davinciN
  std::vector<std::string> pci;  // addresses of NPUs, sorted
  bool has_smi = false;          // npu-smi ran
  int smi_status = -1;
  std::string smi_text;
  SmiInfo smi;
  Family family = Family::kUnknown;

  // Versions; empty: not found
  std::string driver, driver_file;
  std::string driver_fw_low, driver_fw_high;  // firmware that the driver takes
  std::string firmware;
  std::string cann, cann_root, cann_file;   // root: folder with lib64, opp
  std::vector<std::string> cann_roots;      // all installations found
  std::map<std::string, Package> packages;  // Python, by normalised name
  std::string python;                       // "3.11" of the packages

  // Where the loader looks behind LD_LIBRARY_PATH: /etc/ld.so.conf.d.
  std::vector<std::string> loader_folders;

  bool has_npu() const { return !nodes.empty() || !pci.empty(); }
  std::string Variable(const std::string& name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  }
  std::string Version(const std::string& package) const {
    const auto found = packages.find(package);
    return found == packages.end() ? "" : found->second.version;
  }
};

Facts ReadFacts(Machine& machine);

// "key=value" lines, also with blanks or ":" around; keys in lower case.
std::map<std::string, std::string> KeyValues(const std::string& text);

std::vector<std::string> Split(const std::string& text, char mark);

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_FACTS_FACTS_H_
