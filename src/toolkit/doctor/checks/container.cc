// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "toolkit/doctor/checks/checks.h"

namespace belay::doctor {

void CheckContainer(Patient& p) {
  const Facts& facts = p.facts;
  if (!facts.is_container || facts.nodes.empty()) return;
  const auto mount = [](const std::string& path) {
    return "docker run -v " + path + ":" + path + " ...";
  };
  const std::string driver = "/usr/local/Ascend/driver";
  if (!p.machine.Stat(driver + "/version.info").exists()) {
    p.Add("DOCT-051", driver + "/version.info", "not there", mount(driver));
  }
  if (!p.machine.Stat("/usr/local/dcmi/libdcmi.so").exists()) {
    p.Add("DOCT-052", "/usr/local/dcmi/libdcmi.so", "not there",
          mount("/usr/local/dcmi"));
  }
  // Device addresses: needed as soon as two devices talk over RoCE.
  if (facts.nodes.size() > 1 && !p.machine.Stat("/etc/hccn.conf").exists()) {
    p.Add("DOCT-054", "/etc/hccn.conf", "not there", mount("/etc/hccn.conf"));
  }
}

}  // namespace belay::doctor
