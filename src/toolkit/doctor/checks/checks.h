// SPDX-License-Identifier: Apache-2.0
// The checks: each reads facts and the machine and adds what is wrong. What an
// id means, why it matters and the fix in words are in the catalogue.
#ifndef BELAY_TOOLKIT_DOCTOR_CHECKS_CHECKS_H_
#define BELAY_TOOLKIT_DOCTOR_CHECKS_CHECKS_H_

#include <string>
#include <utility>
#include <vector>

#include "diag/catalogue.h"
#include "toolkit/doctor/facts/facts.h"
#include "toolkit/doctor/machine/machine.h"

namespace belay::doctor {

struct Finding {
  std::string id;        // catalogue entry
  std::string where;     // file, command or variable that was read
  std::string evidence;  // what stood there, and what was expected
  std::string command;   // a shell command that mends it, or shows more; or ""
};

// Another machine of the same job.
struct Peer {
  std::string name;  // as the user calls it
  Machine* machine = nullptr;
};

// What all checks share.
struct Patient {
  Machine& machine;
  const Facts& facts;
  const diag::Catalogue& catalogue;
  std::string model = {};  // folder of a checkpoint; "" = none
  std::vector<Peer> peers = {};
  const Facts* against = nullptr;  // of the host of a container, or null
  std::vector<Finding> findings = {};

  void Add(std::string id, std::string where, std::string evidence,
           std::string command) {
    findings.push_back({std::move(id), std::move(where), std::move(evidence),
                        std::move(command)});
  }
};

void CheckDevices(Patient& patient);    // host: nodes, npu-smi, health, PCIe
void CheckTuning(Patient& patient);     // host: limits, memory, NUMA, CPU
void CheckPlacement(Patient& patient);  // host: nodes, interrupts, huge pages
void CheckVersions(Patient& patient);   // host: driver, firmware, CANN
void CheckContainer(Patient& patient);  // container: mounts
void CheckToolkit(Patient& patient);    // cann: layout, libraries, kernels
void CheckLibraries(Patient& patient);  // cann: what the loader would find
void CheckPackages(Patient& patient);   // python
void CheckVariables(Patient& patient);  // cann: environment variables
void CheckNetwork(Patient& patient);    // network
void CheckPeers(Patient& patient);      // network: what both sides must share
void CheckModel(Patient& patient);      // model

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_CHECKS_CHECKS_H_
