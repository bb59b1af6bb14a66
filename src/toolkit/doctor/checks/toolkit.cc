// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "toolkit/doctor/checks/checks.h"
#include "toolkit/doctor/facts/version.h"

namespace belay::doctor {
namespace {

std::vector<std::string> LibraryFolders(const Facts& facts) {
  return Split(facts.Variable("LD_LIBRARY_PATH"), ':');
}

void CheckInstallation(Patient& p) {
  const Facts& facts = p.facts;
  const std::string latest = "/usr/local/Ascend/ascend-toolkit/latest";
  for (const std::string& path :
       {latest, std::string("/usr/local/Ascend/cann")}) {
    const PathState state = p.machine.Stat(path);
    if (state.is_link && !state.exists()) {
      p.Add("DOCT-025", path, "a link to a folder that is gone",
            "ls -l " + path);
      return;
    }
  }
  if (facts.cann.empty()) {
    if (facts.has_npu()) {
      p.Add("DOCT-022", "/usr/local/Ascend", "no CANN toolkit", "");
    }
    return;
  }
  // Each part has a version file of its own; one without is half installed.
  for (const char* part : {"runtime", "compiler", "opp"}) {
    const std::string file = facts.cann_root + "/" + part + "/version.info";
    const auto text = p.machine.Read(file);
    if (!text) {
      p.Add("DOCT-025", file, "not there", "ls " + facts.cann_root);
      continue;
    }
    auto values = KeyValues(*text);
    const std::string version = values["version_dir"];
    if (!version.empty() && CompareVersions(version, facts.cann) != 0) {
      p.Add("DOCT-025", file,
            fmt::format("{}, the toolkit is {}", version, facts.cann), "");
    }
  }
}

void CheckSourced(Patient& p) {
  const Facts& facts = p.facts;
  if (facts.cann.empty()) return;
  const std::string set_env = "source " + facts.cann_root + "/set_env.sh";
  if (facts.Variable("ASCEND_HOME_PATH").empty() &&
      facts.Variable("ASCEND_TOOLKIT_HOME").empty()) {
    p.Add("DOCT-024", "ASCEND_HOME_PATH", "not set", set_env);
    return;
  }
  const auto folders = LibraryFolders(facts);
  for (const std::string& folder : folders) {
    if (folder.find("scend") != std::string::npos &&
        !p.machine.Stat(folder).exists()) {
      p.Add("DOCT-027", "LD_LIBRARY_PATH", folder + " is not there", set_env);
    }
  }
  const std::string opp = facts.Variable("ASCEND_OPP_PATH");
  if (!opp.empty() && !opp.starts_with(facts.cann_root) &&
      !facts.cann_root.ends_with("/latest") &&
      opp.find("/latest/") == std::string::npos) {
    p.Add("DOCT-029", "ASCEND_OPP_PATH",
          fmt::format("{}, but ASCEND_HOME_PATH is {}", opp, facts.cann_root),
          set_env);
  }
}

// The folder of a family's kernels below .../tbe/kernel.
std::string KernelFolder(Family family) {
  switch (family) {
    case Family::kA2:
      return "ascend910b";
    case Family::kA3:
      return "ascend910_93";
    case Family::kA5:
      return "ascend950";
    case Family::k310P:
      return "ascend310p";
    case Family::k910:
      return "ascend910";
    default:
      return "";
  }
}

void CheckKernels(Patient& p) {
  const Facts& facts = p.facts;
  if (facts.cann.empty()) return;
  const std::string wanted = KernelFolder(facts.family);
  const std::string root =
      facts.cann_root + "/opp/built-in/op_impl/ai_core/tbe/kernel";
  const std::vector<std::string> there = p.machine.List(root);
  if (!wanted.empty() &&
      std::find(there.begin(), there.end(), wanted) == there.end()) {
    std::string list;
    for (const std::string& name : there) {
      if (name.starts_with("ascend")) list += (list.empty() ? "" : ", ") + name;
    }
    p.Add("DOCT-028", root,
          fmt::format("no {}; there: {}", wanted,
                      list.empty() ? "nothing" : list),
          "");
  }
  // Custom operators: the first vendor that has one hides the others.
  const std::string vendors = facts.cann_root + "/opp/vendors";
  std::set<std::string> names;
  for (const std::string& name : p.machine.List(vendors)) {
    if (name != "config.ini") names.insert(name);
  }
  for (const std::string& path :
       Split(facts.Variable("ASCEND_CUSTOM_OPP_PATH"), ':')) {
    names.insert(path);
  }
  if (names.size() > 1) {
    std::string list;
    for (const std::string& name : names) {
      list += (list.empty() ? "" : ", ") + name;
    }
    p.Add("DOCT-030", vendors, list, "cat " + vendors + "/config.ini");
  }
}

}  // namespace

void CheckToolkit(Patient& patient) {
  CheckSourced(patient);
  // The stand-in has neither parts nor kernels.
  if (!patient.facts.simulator.empty()) return;
  CheckInstallation(patient);
  CheckKernels(patient);
}

}  // namespace belay::doctor
