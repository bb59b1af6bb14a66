// SPDX-License-Identifier: Apache-2.0
// Two tensors, or a tensor and a scalar, element by element with broadcasting.
// The result is rounded to what the two dtypes become together, then to the
// output's.
#include <algorithm>
#include <cmath>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_clamp.h"
#include "aclnnop/aclnn_div.h"
#include "aclnnop/aclnn_eq_tensor.h"
#include "aclnnop/aclnn_gt_scalar.h"
#include "aclnnop/aclnn_mul.h"
#include "aclnnop/aclnn_pow.h"
#include "aclnnop/aclnn_pow_tensor_tensor.h"
#include "aclnnop/aclnn_sub.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

// f(a, b) into the third array; i(a, b) where everything is an integer.
template <typename F, typename I>
Kernel Combine(aclDataType together, F f, I i) {
  return [together, f, i](const Arrays& a) {
    const bool whole = !IsFloat(together) && !IsFloat(a[2].dtype);
    Walk3(a[2], a[0], a[1], [&](int64_t out, int64_t x, int64_t y) {
      if (whole) {
        StoreI(a[2], out, i(LoadI(a[0], x), LoadI(a[1], y)));
      } else {
        StoreF(a[2], out, RoundTo(together, f(LoadF(a[0], x), LoadF(a[1], y))));
      }
    });
    return 0;
  };
}

void CheckTwo(Phase1& call, const aclTensor* a, const aclTensor* b,
              const aclTensor* out) {
  call.In(a, "self").In(b, "other").Out(out, "out");
  NeedsNumber(call, a, "self");
  NeedsNumber(call, b, "other");
  NeedsNumber(call, out, "out");
  if (!call.ok()) return;
  Dims shape;
  call.Require(Broadcast(a->dims, b->dims, &shape) && shape == out->dims,
               "the shapes of self and other do not broadcast to out's");
}

template <typename F, typename I>
aclnnStatus Binary(Phase1& call, const aclTensor* a, const aclTensor* b,
                   const aclTensor* out, F f, I i) {
  CheckTwo(call, a, b, out);
  if (!call.ok()) return call.Finish(nullptr);
  return call.Finish(Combine(Promote(a->dtype, b->dtype), f, i));
}

// self + alpha * other.
aclnnStatus AddScaled(Phase1& call, const aclTensor* self,
                      const aclTensor* other, const aclScalar* alpha,
                      const aclTensor* out, int sign) {
  call.NotNull(alpha, "alpha");
  const double by = call.ok() ? sign * ScalarF(alpha) : 0;
  const auto whole = static_cast<int64_t>(by);
  return Binary(
      call, self, other, out, [by](double x, double y) { return x + by * y; },
      [whole](int64_t x, int64_t y) { return x + whole * y; });
}

// f(self, scalar) with self's dtype, or FLOAT where a fraction meets integers.
template <typename F>
aclnnStatus WithScalar(Phase1& call, const aclTensor* self,
                       const aclScalar* other, const aclTensor* out, F f) {
  call.In(self, "self").Out(out, "out").NotNull(other, "other");
  NeedsNumber(call, self, "self");
  NeedsNumber(call, out, "out");
  SameShape(call, self, out, "self and out");
  if (!call.ok()) return call.Finish(nullptr);
  const double scalar = ScalarF(other);
  const bool fraction = IsFloat(other->dtype) && !IsFloat(self->dtype);
  const aclDataType together = fraction ? ACL_FLOAT : self->dtype;
  return call.Finish([=](const Arrays& a) {
    Walk2(a[1], a[0], [&](int64_t out_at, int64_t at) {
      StoreF(a[1], out_at, RoundTo(together, f(LoadF(a[0], at), scalar)));
    });
    return 0;
  });
}

aclnnStatus Mul(Phase1& call, const aclTensor* a, const aclTensor* b,
                const aclTensor* out) {
  return Binary(
      call, a, b, out, [](double x, double y) { return x * y; },
      [](int64_t x, int64_t y) { return x * y; });
}

// True division: integers give FLOAT.
aclnnStatus Div(Phase1& call, const aclTensor* a, const aclTensor* b,
                const aclTensor* out) {
  CheckTwo(call, a, b, out);
  if (!call.ok()) return call.Finish(nullptr);
  const aclDataType both = Promote(a->dtype, b->dtype);
  return call.Finish(Combine(
      IsFloat(both) ? both : ACL_FLOAT,
      [](double x, double y) { return x / y; },
      [](int64_t x, int64_t) { return x; }));
}

aclnnStatus Clamp(Phase1& call, const aclTensor* self, const aclScalar* low,
                  const aclScalar* high, const aclTensor* out) {
  call.In(self, "self").Out(out, "out");
  NeedsNumber(call, self, "self");
  SameShape(call, self, out, "self and out");
  call.Require(low != nullptr || high != nullptr, "both limits are null");
  if (!call.ok()) return call.Finish(nullptr);
  const double from = low == nullptr ? -HUGE_VAL : ScalarF(low);
  const double to = high == nullptr ? HUGE_VAL : ScalarF(high);
  return call.Finish([from, to](const Arrays& a) {
    Walk2(a[1], a[0], [&](int64_t out_at, int64_t at) {
      const double x = LoadF(a[0], at);
      StoreF(a[1], out_at, std::isnan(x) ? x : std::min(std::max(x, from), to));
    });
    return 0;
  });
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnAddGetWorkspaceSize(const aclTensor* self,
                                     const aclTensor* other,
                                     const aclScalar* alpha, aclTensor* out,
                                     uint64_t* workspaceSize,
                                     aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnAdd", workspaceSize, executor);
  return cannsim::AddScaled(call, self, other, alpha, out, 1);
}
CANNSIM_PHASE2(Add)

aclnnStatus aclnnInplaceAddGetWorkspaceSize(const aclTensor* selfRef,
                                            const aclTensor* other,
                                            const aclScalar* alpha,
                                            uint64_t* workspaceSize,
                                            aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceAdd", workspaceSize, executor);
  return cannsim::AddScaled(call, selfRef, other, alpha, selfRef, 1);
}
CANNSIM_PHASE2(InplaceAdd)

aclnnStatus aclnnSubGetWorkspaceSize(const aclTensor* self,
                                     const aclTensor* other,
                                     const aclScalar* alpha, aclTensor* out,
                                     uint64_t* workspaceSize,
                                     aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnSub", workspaceSize, executor);
  return cannsim::AddScaled(call, self, other, alpha, out, -1);
}
CANNSIM_PHASE2(Sub)

aclnnStatus aclnnInplaceSubGetWorkspaceSize(aclTensor* selfRef,
                                            const aclTensor* other,
                                            const aclScalar* alpha,
                                            uint64_t* workspaceSize,
                                            aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceSub", workspaceSize, executor);
  return cannsim::AddScaled(call, selfRef, other, alpha, selfRef, -1);
}
CANNSIM_PHASE2(InplaceSub)

aclnnStatus aclnnInplaceAddsGetWorkspaceSize(const aclTensor* selfRef,
                                             const aclScalar* other,
                                             const aclScalar* alpha,
                                             uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceAdds", workspaceSize, executor);
  call.NotNull(alpha, "alpha");
  const double by = call.ok() ? cannsim::ScalarF(alpha) : 0;
  return cannsim::WithScalar(call, selfRef, other, selfRef,
                             [by](double x, double y) { return x + by * y; });
}
CANNSIM_PHASE2(InplaceAdds)

aclnnStatus aclnnInplaceSubsGetWorkspaceSize(aclTensor* selfRef,
                                             const aclScalar* other,
                                             const aclScalar* alpha,
                                             uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceSubs", workspaceSize, executor);
  call.NotNull(alpha, "alpha");
  const double by = call.ok() ? cannsim::ScalarF(alpha) : 0;
  return cannsim::WithScalar(call, selfRef, other, selfRef,
                             [by](double x, double y) { return x - by * y; });
}
CANNSIM_PHASE2(InplaceSubs)

aclnnStatus aclnnMulGetWorkspaceSize(const aclTensor* self,
                                     const aclTensor* other, aclTensor* out,
                                     uint64_t* workspaceSize,
                                     aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMul", workspaceSize, executor);
  return cannsim::Mul(call, self, other, out);
}
CANNSIM_PHASE2(Mul)

aclnnStatus aclnnInplaceMulGetWorkspaceSize(aclTensor* selfRef,
                                            const aclTensor* other,
                                            uint64_t* workspaceSize,
                                            aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceMul", workspaceSize, executor);
  return cannsim::Mul(call, selfRef, other, selfRef);
}
CANNSIM_PHASE2(InplaceMul)

aclnnStatus aclnnMulsGetWorkspaceSize(const aclTensor* self,
                                      const aclScalar* other, aclTensor* out,
                                      uint64_t* workspaceSize,
                                      aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMuls", workspaceSize, executor);
  return cannsim::WithScalar(call, self, other, out,
                             [](double x, double y) { return x * y; });
}
CANNSIM_PHASE2(Muls)

aclnnStatus aclnnInplaceMulsGetWorkspaceSize(aclTensor* selfRef,
                                             const aclScalar* other,
                                             uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceMuls", workspaceSize, executor);
  return cannsim::WithScalar(call, selfRef, other, selfRef,
                             [](double x, double y) { return x * y; });
}
CANNSIM_PHASE2(InplaceMuls)

aclnnStatus aclnnDivGetWorkspaceSize(const aclTensor* self,
                                     const aclTensor* other, aclTensor* out,
                                     uint64_t* workspaceSize,
                                     aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnDiv", workspaceSize, executor);
  return cannsim::Div(call, self, other, out);
}
CANNSIM_PHASE2(Div)

aclnnStatus aclnnInplaceDivGetWorkspaceSize(aclTensor* selfRef,
                                            const aclTensor* other,
                                            uint64_t* workspaceSize,
                                            aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceDiv", workspaceSize, executor);
  return cannsim::Div(call, selfRef, other, selfRef);
}
CANNSIM_PHASE2(InplaceDiv)

aclnnStatus aclnnInplaceDivsGetWorkspaceSize(aclTensor* selfRef,
                                             const aclScalar* other,
                                             uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceDivs", workspaceSize, executor);
  return cannsim::WithScalar(call, selfRef, other, selfRef,
                             [](double x, double y) { return x / y; });
}
CANNSIM_PHASE2(InplaceDivs)

aclnnStatus aclnnEqTensorGetWorkspaceSize(const aclTensor* self,
                                          const aclTensor* other,
                                          aclTensor* out,
                                          uint64_t* workspaceSize,
                                          aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnEqTensor", workspaceSize, executor);
  cannsim::CheckTwo(call, self, other, out);
  // Into any dtype: clients give one that is not BOOL.
  return call.Finish([](const cannsim::Arrays& a) {
    cannsim::Walk3(a[2], a[0], a[1], [&](int64_t out_at, int64_t x, int64_t y) {
      const bool equal = cannsim::LoadF(a[0], x) == cannsim::LoadF(a[1], y);
      cannsim::StoreF(a[2], out_at, equal ? 1 : 0);
    });
    return 0;
  });
}
CANNSIM_PHASE2(EqTensor)

aclnnStatus aclnnGtScalarGetWorkspaceSize(const aclTensor* self,
                                          const aclScalar* other,
                                          aclTensor* out,
                                          uint64_t* workspaceSize,
                                          aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnGtScalar", workspaceSize, executor);
  return cannsim::WithScalar(call, self, other, out, [](double x, double y) {
    return x > y ? 1.0 : 0.0;
  });
}
CANNSIM_PHASE2(GtScalar)

aclnnStatus aclnnInplacePowTensorTensorGetWorkspaceSize(
    const aclTensor* self, const aclTensor* exponent, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplacePowTensorTensor", workspaceSize, executor);
  return cannsim::Binary(
      call, self, exponent, self,
      [](double x, double y) { return std::pow(x, y); },
      [](int64_t x, int64_t y) {
        return static_cast<int64_t>(
            std::pow(static_cast<double>(x), static_cast<double>(y)));
      });
}
CANNSIM_PHASE2(InplacePowTensorTensor)

aclnnStatus aclnnPowScalarTensorGetWorkspaceSize(const aclScalar* self,
                                                 const aclTensor* exponent,
                                                 const aclTensor* out,
                                                 uint64_t* workspaceSize,
                                                 aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnPowScalarTensor", workspaceSize, executor);
  return cannsim::WithScalar(
      call, exponent, self, out,
      [](double x, double base) { return std::pow(base, x); });
}
CANNSIM_PHASE2(PowScalarTensor)

aclnnStatus aclnnClampGetWorkspaceSize(const aclTensor* self,
                                       const aclScalar* clipValueMin,
                                       const aclScalar* clipValueMax,
                                       aclTensor* out, uint64_t* workspaceSize,
                                       aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnClamp", workspaceSize, executor);
  return cannsim::Clamp(call, self, clipValueMin, clipValueMax, out);
}
CANNSIM_PHASE2(Clamp)

aclnnStatus aclnnClampMinGetWorkspaceSize(const aclTensor* self,
                                          const aclScalar* clipValueMin,
                                          aclTensor* out,
                                          uint64_t* workspaceSize,
                                          aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnClampMin", workspaceSize, executor);
  return cannsim::Clamp(call, self, clipValueMin, nullptr, out);
}
CANNSIM_PHASE2(ClampMin)

aclnnStatus aclnnInplaceClampMaxGetWorkspaceSize(const aclTensor* selfRef,
                                                 const aclScalar* clipValueMax,
                                                 uint64_t* workspaceSize,
                                                 aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceClampMax", workspaceSize, executor);
  return cannsim::Clamp(call, selfRef, nullptr, clipValueMax, selfRef);
}
CANNSIM_PHASE2(InplaceClampMax)

}  // extern "C"
