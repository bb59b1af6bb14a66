// SPDX-License-Identifier: Apache-2.0
// Choosing experts: what CANN's gate and the custom one share.
#ifndef BELAY_CANNSIM_OPS_V4_GATE_H_
#define BELAY_CANNSIM_OPS_V4_GATE_H_

#include <cstdint>

#include "cannsim/ops/at.h"

namespace cannsim {

enum GateNorm { kGateSoftmax = 0, kGateSigmoid = 1, kGateSqrtSoftplus = 2 };

struct GateOptions {
  int64_t k = 0;
  int64_t n_groups_kept = 1;
  int64_t n_groups = 1;
  bool group_by_two = false;  // a group counts its best two, else its best
  int64_t norm = kGateSoftmax;
  bool scores_out = false;
  double scale = 1;
  double eps = 0;
};

// x, bias, ids, table, y, expertIdx, out.
struct GateTensors {
  const aclTensor* x;
  const aclTensor* bias;
  const aclTensor* ids;    // null: chosen by score
  const aclTensor* table;  // null together with ids
  const aclTensor* y;
  const aclTensor* index;
  const aclTensor* out;
};

// Names the tensors in the order above, checks and finishes.
aclnnStatus FinishGate(Phase1& call, const GateTensors& t,
                       const GateOptions& options);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_OPS_V4_GATE_H_
