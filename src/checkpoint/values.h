// SPDX-License-Identifier: Apache-2.0
// Values that no checkpoint may hold. Private to this room.
#ifndef BELAY_CHECKPOINT_VALUES_H_
#define BELAY_CHECKPOINT_VALUES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tensor/view.h"

namespace belay::checkpoint {

struct BadElement {
  int64_t index = 0;  // in row-major order
  std::string value;
};

// The first scale that is NaN (e8m0 code 255), or, in F32, not finite or not
// positive. `scale` is contiguous, F8_E8M0 or F32.
std::optional<BadElement> FindBadScale(ConstTensorView scale);

// The first id outside [0, n_experts). `table` is contiguous, I64.
std::optional<BadElement> FindBadExpertId(ConstTensorView table,
                                          int64_t n_experts);

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_VALUES_H_
