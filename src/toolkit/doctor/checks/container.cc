// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "toolkit/doctor/checks/checks.h"

namespace belay::doctor {

namespace {

// A container beside its host: the driver's files must be the host's own.
void CheckHost(Patient& p) {
  if (p.against == nullptr || p.against->is_container) return;
  const Facts& host = *p.against;
  if (!p.facts.driver.empty() && !host.driver.empty() &&
      p.facts.driver != host.driver) {
    p.Add("DOCT-058", p.facts.driver_file,
          fmt::format("{} in the container, {} on the host", p.facts.driver,
                      host.driver),
          "docker run -v /usr/local/Ascend/driver:/usr/local/Ascend/driver "
          "...");
  }
  for (const int node : p.facts.nodes) {
    if (std::find(host.nodes.begin(), host.nodes.end(), node) !=
        host.nodes.end()) {
      continue;
    }
    p.Add("DOCT-059", fmt::format("/dev/davinci{}", node),
          fmt::format("in the container, not among the {} of the host",
                      host.nodes.size()),
          "ls -l /dev/davinci*");
    return;
  }
}

}  // namespace

void CheckContainer(Patient& p) {
  const Facts& facts = p.facts;
  if (facts.is_container) CheckHost(p);
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
