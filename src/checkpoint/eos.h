// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_CHECKPOINT_EOS_H_
#define BELAY_CHECKPOINT_EOS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace belay::checkpoint {

// The ids that end a turn: that of config.json, then those that
// generation_config.json beside it names (an id or a list). No such file: the
// one id. Errors: CONF-004 (not JSON), CONF-003 (no id).
StatusOr<std::vector<int32_t>> EosIds(const std::string& folder,
                                      int32_t config_eos);

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_EOS_H_
