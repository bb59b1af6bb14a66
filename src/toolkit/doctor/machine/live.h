// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_DOCTOR_MACHINE_LIVE_H_
#define BELAY_TOOLKIT_DOCTOR_MACHINE_LIVE_H_

#include <map>
#include <memory>
#include <string>

#include "toolkit/doctor/machine/machine.h"

namespace belay::doctor {

// This machine. `variables`: those of the process. A command that takes longer
// than `timeout_ms` is ended. `root` stands before every path: "/host" where a
// container sees the file system of its host, or a tree of a test; commands run
// here all the same.
std::unique_ptr<Machine> NewLiveMachine(
    std::map<std::string, std::string> variables, int timeout_ms,
    const std::string& root = "");

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_MACHINE_LIVE_H_
