// SPDX-License-Identifier: Apache-2.0
// The gate of DeepSeek-V4: square root of softplus, experts by score or by a
// table of token ids.
#include "aclnnop/aclnn_moe_gating_top_k_hash.h"
#include "cannsim/ops/v4/gate.h"

extern "C" {

aclnnStatus aclnnMoeGatingTopKHashGetWorkspaceSize(
    const aclTensor* x, const aclTensor* biasOptional,
    const aclTensor* inputIdsOptional, const aclTensor* tid2eidOptional,
    int64_t k, int64_t kGroup, int64_t groupCount, double routedScalingFactor,
    double eps, int64_t groupSelectMode, int64_t renorm, int64_t normType,
    bool outFlag, const aclTensor* y, const aclTensor* expertIdx,
    const aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMoeGatingTopKHash", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.Require(renorm == 0, "renorm must be 0");
  call.Require(normType >= 0 && normType <= 2,
               "normType must be 0 (softmax), 1 (sigmoid) or 2 (square root "
               "of softplus)");
  call.Require(groupSelectMode == 0 || groupSelectMode == 1,
               "groupSelectMode must be 0 or 1");
  return cannsim::FinishGate(
      call,
      {x, biasOptional, inputIdsOptional, tid2eidOptional, y, expertIdx, out},
      {k, kGroup, groupCount, groupSelectMode == 1, normType, outFlag,
       routedScalingFactor, eps});
}
CANNSIM_PHASE2(MoeGatingTopKHash)

}  // extern "C"
