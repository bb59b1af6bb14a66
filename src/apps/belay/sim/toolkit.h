// SPDX-License-Identifier: Apache-2.0
// Where cannsim lies, and the environment in which programs find it.
#ifndef BELAY_APPS_BELAY_SIM_TOOLKIT_H_
#define BELAY_APPS_BELAY_SIM_TOOLKIT_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace belay::apps {

struct SimOptions {
  std::string root;     // "" = ../cannsim of the program
  std::string profile;  // "" = cannsim's own choice
  std::optional<int> n_devices;
  bool strict = false;
  bool strict_exit = false;         // and exit code 1 for findings
  std::vector<std::string> faults;  // scripts, or the files that hold them
  std::vector<std::string> quirks;
  std::string report;  // file for the report at the end
  std::string log;     // folder for the logs; "" = where CANN would write
  std::optional<int> workspace;  // bytes that every operator asks for
  bool pace = false;             // simulated time takes real time
};

using SimVariables = std::vector<std::pair<std::string, std::string>>;

// The variables to set, paths in front of what is set now. SYS-001 when there
// is no toolkit at the root, or no such profile.
StatusOr<SimVariables> SimEnvironment(const SimOptions& options);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SIM_TOOLKIT_H_
