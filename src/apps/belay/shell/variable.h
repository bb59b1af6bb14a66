// SPDX-License-Identifier: Apache-2.0
// The process's environment. Only apps read it; the rooms below get an options
// struct, or this function.
#ifndef BELAY_APPS_BELAY_SHELL_VARIABLE_H_
#define BELAY_APPS_BELAY_SHELL_VARIABLE_H_

#include <string>

namespace belay::apps {

// The value of an environment variable; "" when it is not set.
std::string Variable(const char* name);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SHELL_VARIABLE_H_
