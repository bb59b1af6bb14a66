// SPDX-License-Identifier: Apache-2.0
// Judges a machine, live or recorded.
#ifndef BELAY_TOOLKIT_DOCTOR_DOCTOR_H_
#define BELAY_TOOLKIT_DOCTOR_DOCTOR_H_

#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "diag/catalogue.h"
#include "toolkit/doctor/checks/checks.h"
#include "toolkit/doctor/machine/machine.h"

namespace belay::doctor {

enum class Scope : uint8_t {
  kHost,
  kContainer,
  kCann,
  kPython,
  kNetwork,
  kModel
};

// "host,cann" to scopes; all for "". ARG-001.
StatusOr<std::vector<Scope>> ParseScopes(std::string_view list);

struct Options {
  std::vector<Scope> scopes = {};  // empty = all
  std::string model = {};          // folder of a checkpoint; "" = none
  std::vector<Peer> peers = {};    // other machines of the same job
  const Facts* against = nullptr;  // of the machine to compare with, if any
};

struct Verdict {
  Facts facts;
  // Errors first, then warnings, then the rest; each by id.
  std::vector<Finding> findings;
  std::vector<std::string> passed;  // names of the scopes without a finding
};

// Reads what the scopes need, and judges it.
Verdict Examine(Machine& machine, const diag::Catalogue& catalogue,
                const Options& options);

// What differs between two machines: name, one, other. Versions, devices,
// variables, packages.
struct Difference {
  std::string name, one, other;
};
std::vector<Difference> Compare(const Facts& one, const Facts& other);

// The severity of a finding: that of its entry.
diag::Severity SeverityOf(const diag::Catalogue& catalogue,
                          const Finding& finding);

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_DOCTOR_H_
