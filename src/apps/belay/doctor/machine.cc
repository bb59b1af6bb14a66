// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/doctor/machine.h"

#include <unistd.h>

#include <map>
#include <utility>

#include "toolkit/doctor/machine/live.h"

namespace belay::apps {

std::unique_ptr<doctor::Machine> ThisMachine(int timeout_ms,
                                             const std::string& root) {
  std::map<std::string, std::string> variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string text = *one;
    const size_t mark = text.find('=');
    if (mark != std::string::npos) {
      variables[text.substr(0, mark)] = text.substr(mark + 1);
    }
  }
  return doctor::NewLiveMachine(std::move(variables), timeout_ms, root);
}

}  // namespace belay::apps
