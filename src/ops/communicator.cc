// SPDX-License-Identifier: Apache-2.0
#include "ops/communicator.h"

#include <cstring>

namespace belay::ops {

void SingleRank::AllGatherColumns(ConstTensorView local, TensorView out) {
  if (local.data() != out.data()) {
    std::memcpy(out.data(), local.data(), local.bytes());
  }
}

}  // namespace belay::ops
