// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_SHELL_CLI_H_
#define BELAY_APPS_BELAY_SHELL_CLI_H_

#include <string>
#include <vector>

#include "apps/belay/shell/context.h"

namespace belay::apps {

// The whole program: parses `args` (without the program's name), runs the
// command and reports its error. Returns the exit code.
int RunBelay(std::vector<std::string> args, const Environment& environment);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SHELL_CLI_H_
