// SPDX-License-Identifier: Apache-2.0
// Copies with a change of dtype, fills, ranges.
#include <cmath>

#include "aclnnop/aclnn_arange.h"
#include "aclnnop/aclnn_cast.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_fill_scalar.h"
#include "aclnnop/aclnn_zero.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

// The second array gets the first, which broadcasts to it.
int CopyAll(const Arrays& a) {
  const bool whole = !IsFloat(a[0].dtype) && !IsFloat(a[1].dtype);
  Walk2(a[1], a[0], [&](int64_t out, int64_t in) {
    if (whole) {
      StoreI(a[1], out, LoadI(a[0], in));
    } else {
      StoreF(a[1], out, LoadF(a[0], in));
    }
  });
  return 0;
}

aclnnStatus Fill(Phase1& call, const aclTensor* self, double value) {
  call.Out(self, "selfRef");
  NeedsNumber(call, self, "selfRef");
  return call.Finish([value](const Arrays& a) {
    Walk1(a[0], [&](int64_t at) { StoreF(a[0], at, value); });
    return 0;
  });
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnCastGetWorkspaceSize(const aclTensor* self,
                                      const aclDataType dtype, aclTensor* out,
                                      uint64_t* workspaceSize,
                                      aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnCast", workspaceSize, executor);
  call.In(self, "self").Out(out, "out");
  cannsim::NeedsNumber(call, self, "self");
  cannsim::NeedsNumber(call, out, "out");
  cannsim::SameShape(call, self, out, "self and out");
  if (call.ok()) {
    call.Require(out->dtype == dtype, "out is not of the dtype to cast to");
  }
  return call.Finish(cannsim::CopyAll);
}
CANNSIM_PHASE2(Cast)

aclnnStatus aclnnInplaceCopyGetWorkspaceSize(aclTensor* selfRef,
                                             const aclTensor* src,
                                             uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceCopy", workspaceSize, executor);
  call.In(src, "src").Out(selfRef, "selfRef");
  cannsim::NeedsNumber(call, src, "src");
  cannsim::NeedsNumber(call, selfRef, "selfRef");
  if (call.ok()) {
    cannsim::Dims shape;
    call.Require(cannsim::Broadcast(selfRef->dims, src->dims, &shape) &&
                     shape == selfRef->dims,
                 "src does not broadcast to selfRef");
  }
  return call.Finish(cannsim::CopyAll);
}
CANNSIM_PHASE2(InplaceCopy)

aclnnStatus aclnnInplaceFillScalarGetWorkspaceSize(aclTensor* selfRef,
                                                   const aclScalar* value,
                                                   uint64_t* workspaceSize,
                                                   aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceFillScalar", workspaceSize, executor);
  call.NotNull(value, "value");
  return cannsim::Fill(call, selfRef, call.ok() ? cannsim::ScalarF(value) : 0);
}
CANNSIM_PHASE2(InplaceFillScalar)

aclnnStatus aclnnInplaceZeroGetWorkspaceSize(aclTensor* selfRef,
                                             uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceZero", workspaceSize, executor);
  return cannsim::Fill(call, selfRef, 0);
}
CANNSIM_PHASE2(InplaceZero)

aclnnStatus aclnnArangeGetWorkspaceSize(const aclScalar* start,
                                        const aclScalar* end,
                                        const aclScalar* step, aclTensor* out,
                                        uint64_t* workspaceSize,
                                        aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnArange", workspaceSize, executor);
  call.Out(out, "out").NotNull(start, "start").NotNull(end, "end");
  call.NotNull(step, "step");
  cannsim::NeedsNumber(call, out, "out");
  if (!call.ok()) return call.Finish(nullptr);
  const double from = cannsim::ScalarF(start);
  const double by = cannsim::ScalarF(step);
  const double n = std::ceil((cannsim::ScalarF(end) - from) / by);
  call.Require(by != 0 && n >= 0, "the steps do not lead from start to end");
  if (call.ok()) {
    call.Require(static_cast<double>(out->n_elements()) == n,
                 "out has another number of elements than the range");
  }
  return call.Finish([from, by](const cannsim::Arrays& a) {
    double i = 0;
    cannsim::Walk1(a[0], [&](int64_t at) {
      cannsim::StoreF(a[0], at, from + by * i);
      ++i;
    });
    return 0;
  });
}
CANNSIM_PHASE2(Arange)

}  // extern "C"
