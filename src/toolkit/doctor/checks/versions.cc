// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "toolkit/doctor/checks/checks.h"
#include "toolkit/doctor/facts/version.h"

namespace belay::doctor {
namespace {

// What a CANN release needs of driver and firmware (HDK). From the release
// notes and reports in the catalogue's table VER-003: drivers below `known_bad`
// fail in reports, those below `tested` are older than any pair that was seen
// to work. The 950 has its own line of drivers (25.1, 25.6, 25.7).
struct DriverRule {
  const char* cann;  // from this release on
  const char* known_bad;
  const char* tested;
};
constexpr DriverRule kRules[] = {
    {"9.1.0", "25.2.0", "26.1.0"},       {"9.0.0", "25.2.0", "25.5.0"},
    {"8.5.0", "25.2.0", "25.5.0"},       {"8.3.RC1", "25.0.RC1", "25.3.RC1"},
    {"8.2.RC1", "24.1.RC1", "25.0.RC1"}, {"8.0.0", "23.0.0", "24.1.RC1"},
};

}  // namespace

void CheckVersions(Patient& p) {
  const Facts& facts = p.facts;
  // The stand-in has no driver, only the name of one in npu-smi's table.
  if (facts.driver.empty() || !facts.simulator.empty()) return;
  if (!facts.firmware.empty() && !facts.driver_fw_low.empty() &&
      (CompareVersions(facts.firmware, facts.driver_fw_low) < 0 ||
       CompareVersions(facts.firmware, facts.driver_fw_high) > 0)) {
    p.Add(
        "DOCT-023", "/usr/local/Ascend/firmware/version.info",
        fmt::format("firmware {}, the driver {} takes {} to {}", facts.firmware,
                    facts.driver, facts.driver_fw_low, facts.driver_fw_high),
        "");
  }
  if (facts.cann.empty()) return;
  for (const DriverRule& rule : kRules) {
    if (CompareVersions(facts.cann, rule.cann) < 0) continue;
    const bool is_950 = facts.family == Family::kA5;
    const char* bad = is_950 ? "25.1.RC1" : rule.known_bad;
    const char* tested = is_950 ? "25.1.RC1" : rule.tested;
    const auto evidence = [&](const char* least) {
      return fmt::format("driver {} ({}), CANN {} ({}), at least {}",
                         facts.driver, facts.driver_file, facts.cann,
                         facts.cann_file, least);
    };
    if (CompareVersions(facts.driver, bad) < 0) {
      p.Add("DOCT-020", facts.driver_file, evidence(bad), "");
    } else if (CompareVersions(facts.driver, tested) < 0) {
      p.Add("DOCT-021", facts.driver_file, evidence(tested), "");
    }
    return;
  }
}

}  // namespace belay::doctor
