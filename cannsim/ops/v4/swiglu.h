// SPDX-License-Identifier: Apache-2.0
// SwiGLU with clamps: what CANN's operators and the custom ones share.
#ifndef BELAY_CANNSIM_OPS_V4_SWIGLU_H_
#define BELAY_CANNSIM_OPS_V4_SWIGLU_H_

#include <algorithm>
#include <cmath>

namespace cannsim {

// gate * sigmoid(alpha * gate) * (up + bias), the gate held below `limit` and
// up between its negative and itself; a limit of 0 or less holds nothing.
struct Swiglu {
  double limit = 0;
  double alpha = 1;
  double bias = 0;

  double operator()(double gate, double up) const {
    if (limit > 0) {
      gate = std::min(gate, limit);
      up = std::clamp(up, -limit, limit);
    }
    return gate / (1 + std::exp(-alpha * gate)) * (up + bias);
  }
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_OPS_V4_SWIGLU_H_
