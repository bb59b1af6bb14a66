// SPDX-License-Identifier: Apache-2.0
// What the files of operators share: phase 2 by name, frequent checks.
#ifndef BELAY_CANNSIM_OPS_DEFINE_H_
#define BELAY_CANNSIM_OPS_DEFINE_H_

#include <initializer_list>

#include "cannsim/nnop/executor.h"
#include "cannsim/ops/element.h"
#include "cannsim/ops/walk.h"

// Phase 2 of an operator. Stands inside extern "C".
#define CANNSIM_PHASE2(op)                                                  \
  aclnnStatus aclnn##op(void* workspace, uint64_t workspaceSize,            \
                        aclOpExecutor* executor, aclrtStream stream) {      \
    return cannsim::Phase2("aclnn" #op, workspace, workspaceSize, executor, \
                           stream, __builtin_return_address(0));            \
  }

namespace cannsim {

// The three generations that have operators of DeepSeek-V4, for OnlyOn.
inline constexpr std::initializer_list<Generation> kNpus = {
    Generation::kA2, Generation::kA3, Generation::kA5};

// Each says what is wrong with which argument (161002).
inline void NeedsNumber(Phase1& call, const aclTensor* t, const char* what) {
  if (!call.ok()) return;
  call.Require(IsNumber(t->dtype),
               std::string(what) + ": this dtype is not supported");
}

inline void NeedsFloat(Phase1& call, const aclTensor* t, const char* what) {
  if (!call.ok()) return;
  call.Require(IsFloat(t->dtype), std::string(what) +
                                      " must be of a float "
                                      "dtype");
}

inline void NeedsIndex(Phase1& call, const aclTensor* t, const char* what) {
  if (!call.ok()) return;
  call.Require(t->dtype == ACL_INT32 || t->dtype == ACL_INT64,
               std::string(what) + " must be INT32 or INT64");
}

inline void SameShape(Phase1& call, const aclTensor* a, const aclTensor* b,
                      const char* what) {
  if (!call.ok()) return;
  call.Require(a->dims == b->dims, std::string(what) + ": the shapes differ");
}

}  // namespace cannsim

#endif  // BELAY_CANNSIM_OPS_DEFINE_H_
