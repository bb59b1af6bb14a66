// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_DOCTOR_MACHINE_H_
#define BELAY_APPS_BELAY_DOCTOR_MACHINE_H_

#include <memory>
#include <string>

#include "toolkit/doctor/machine/machine.h"

namespace belay::apps {

// The machine that this program runs on, with the variables of the process. A
// command that takes longer than `timeout_ms` is ended. `root` stands before
// every path.
std::unique_ptr<doctor::Machine> ThisMachine(int timeout_ms,
                                             const std::string& root = "");

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_DOCTOR_MACHINE_H_
