// SPDX-License-Identifier: Apache-2.0
#include "cannsim/ops/at.h"

#include <fmt/format.h>

namespace cannsim {

int IndexOutOfRange(const char* what, int64_t index, int64_t n) {
  return cannsim_fail(
      ACL_ERROR_RT_AICORE_EXCEPTION,
      fmt::format("{} {} is not in [0, {})", what, index, n).c_str());
}

}  // namespace cannsim
