// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/variable.h"

#include <cstdlib>

namespace belay::apps {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace belay::apps
