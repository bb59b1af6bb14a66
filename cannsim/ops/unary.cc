// SPDX-License-Identifier: Apache-2.0
// One tensor, element by element.
#include <cmath>

#include "aclnnop/aclnn_abs.h"
#include "aclnnop/aclnn_cos.h"
#include "aclnnop/aclnn_elu.h"
#include "aclnnop/aclnn_exp.h"
#include "aclnnop/aclnn_gelu.h"
#include "aclnnop/aclnn_gelu_v2.h"
#include "aclnnop/aclnn_hardsigmoid.h"
#include "aclnnop/aclnn_hardswish.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "aclnnop/aclnn_log.h"
#include "aclnnop/aclnn_neg.h"
#include "aclnnop/aclnn_relu.h"
#include "aclnnop/aclnn_sigmoid.h"
#include "aclnnop/aclnn_sign.h"
#include "aclnnop/aclnn_silu.h"
#include "aclnnop/aclnn_sin.h"
#include "aclnnop/aclnn_softplus.h"
#include "aclnnop/aclnn_sqrt.h"
#include "aclnnop/aclnn_tanh.h"
#include "aclnnop/aclnn_threshold.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Clamped01(double x) { return x < 0 ? 0 : (x > 1 ? 1 : x); }

double GeluErf(double x) { return 0.5 * x * (1 + std::erf(x * M_SQRT1_2)); }

double GeluTanh(double x) {
  const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

// f of each element of the first array into the second; through integers
// where all are.
template <typename F>
Kernel Map(F f) {
  return [f](const Arrays& a) {
    Walk2(a[1], a[0], [&](int64_t out, int64_t in) {
      StoreF(a[1], out, f(LoadF(a[0], in)));
    });
    return 0;
  };
}

template <typename F>
aclnnStatus Unary(Phase1& call, const aclTensor* self, const aclTensor* out,
                  bool integers, F f) {
  call.In(self, "self").Out(out, "out");
  if (integers) {
    NeedsNumber(call, self, "self");
  } else {
    NeedsFloat(call, self, "self");
  }
  NeedsNumber(call, out, "out");
  SameShape(call, self, out, "self and out");
  return call.Finish(Map(f));
}

}  // namespace
}  // namespace cannsim

#define CANNSIM_UNARY_AS(op, out_type, integers, expression)              \
  aclnnStatus aclnn##op##GetWorkspaceSize(                                \
      const aclTensor* self, out_type* out, uint64_t* workspaceSize,      \
      aclOpExecutor** executor) {                                         \
    cannsim::Phase1 call("aclnn" #op, workspaceSize, executor);           \
    return cannsim::Unary(call, self, out, integers,                      \
                          [](double x) -> double { return expression; }); \
  }                                                                       \
  CANNSIM_PHASE2(op)

#define CANNSIM_UNARY(op, integers, expression) \
  CANNSIM_UNARY_AS(op, aclTensor, integers, expression)

#define CANNSIM_INPLACE(op, expression)                                        \
  aclnnStatus aclnn##op##GetWorkspaceSize(                                     \
      aclTensor* selfRef, uint64_t* workspaceSize, aclOpExecutor** executor) { \
    cannsim::Phase1 call("aclnn" #op, workspaceSize, executor);                \
    return cannsim::Unary(call, selfRef, selfRef, false,                       \
                          [](double x) -> double { return expression; });      \
  }                                                                            \
  CANNSIM_PHASE2(op)

extern "C" {

CANNSIM_UNARY(Abs, true, std::abs(x))
CANNSIM_UNARY(Cos, false, std::cos(x))
CANNSIM_UNARY(Exp, false, std::exp(x))
CANNSIM_UNARY(Gelu, false, cannsim::GeluTanh(x))
CANNSIM_UNARY(Hardsigmoid, false, cannsim::Clamped01(x / 6 + 0.5))
CANNSIM_UNARY_AS(Hardswish, const aclTensor, false,
                 x* cannsim::Clamped01(x / 6 + 0.5))
CANNSIM_UNARY(Log, false, std::log(x))
CANNSIM_UNARY(Neg, true, -x)
CANNSIM_UNARY_AS(Relu, const aclTensor, true, x > 0 || std::isnan(x) ? x : 0)
CANNSIM_UNARY(Sigmoid, false, cannsim::Sigmoid(x))
CANNSIM_UNARY(Sign, true, static_cast<double>((x > 0) - (x < 0)))
CANNSIM_UNARY(Silu, false, x* cannsim::Sigmoid(x))
CANNSIM_UNARY(Sin, false, std::sin(x))
CANNSIM_UNARY(Sqrt, false, std::sqrt(x))
CANNSIM_UNARY(Tanh, false, std::tanh(x))

CANNSIM_INPLACE(InplaceCos, std::cos(x))
CANNSIM_INPLACE(InplaceExp, std::exp(x))
CANNSIM_INPLACE(InplaceSin, std::sin(x))

aclnnStatus aclnnGeluV2GetWorkspaceSize(const aclTensor* x, int64_t approximate,
                                        aclTensor* y, uint64_t* workspaceSize,
                                        aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnGeluV2", workspaceSize, executor);
  call.In(x, "x").Out(y, "y");
  call.Require(approximate == 0 || approximate == 1,
               "approximate must be 0 (erf) or 1 (tanh)");
  cannsim::NeedsFloat(call, x, "x");
  cannsim::SameShape(call, x, y, "x and y");
  return call.Finish(
      cannsim::Map(approximate == 0 ? cannsim::GeluErf : cannsim::GeluTanh));
}
CANNSIM_PHASE2(GeluV2)

aclnnStatus aclnnEluGetWorkspaceSize(const aclTensor* self,
                                     const aclScalar* alpha,
                                     const aclScalar* scale,
                                     const aclScalar* inputScale,
                                     aclTensor* out, uint64_t* workspaceSize,
                                     aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnElu", workspaceSize, executor);
  call.In(self, "self").Out(out, "out");
  call.NotNull(alpha, "alpha").NotNull(scale, "scale");
  call.NotNull(inputScale, "inputScale");
  cannsim::NeedsFloat(call, self, "self");
  cannsim::SameShape(call, self, out, "self and out");
  if (!call.ok()) return call.Finish(nullptr);
  const double a = cannsim::ScalarF(alpha);
  const double s = cannsim::ScalarF(scale);
  const double in = cannsim::ScalarF(inputScale);
  return call.Finish(cannsim::Map([a, s, in](double x) {
    return x > 0 ? s * x : s * a * std::expm1(x * in);
  }));
}
CANNSIM_PHASE2(Elu)

aclnnStatus aclnnLeakyReluGetWorkspaceSize(const aclTensor* self,
                                           const aclScalar* negativeSlope,
                                           aclTensor* out,
                                           uint64_t* workspaceSize,
                                           aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnLeakyRelu", workspaceSize, executor);
  call.In(self, "self").Out(out, "out");
  call.NotNull(negativeSlope, "negativeSlope");
  cannsim::NeedsFloat(call, self, "self");
  cannsim::SameShape(call, self, out, "self and out");
  if (!call.ok()) return call.Finish(nullptr);
  const double slope = cannsim::ScalarF(negativeSlope);
  return call.Finish(
      cannsim::Map([slope](double x) { return x > 0 ? x : x * slope; }));
}
CANNSIM_PHASE2(LeakyRelu)

aclnnStatus aclnnSoftplusGetWorkspaceSize(
    const aclTensor* self, const aclScalar* beta, const aclScalar* threshold,
    aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnSoftplus", workspaceSize, executor);
  call.In(self, "self").Out(out, "out");
  call.NotNull(beta, "beta").NotNull(threshold, "threshold");
  cannsim::NeedsFloat(call, self, "self");
  cannsim::SameShape(call, self, out, "self and out");
  if (!call.ok()) return call.Finish(nullptr);
  const double b = cannsim::ScalarF(beta);
  const double t = cannsim::ScalarF(threshold);
  return call.Finish(cannsim::Map([b, t](double x) {
    return x * b > t ? x : std::log1p(std::exp(x * b)) / b;
  }));
}
CANNSIM_PHASE2(Softplus)

aclnnStatus aclnnInplaceThresholdGetWorkspaceSize(aclTensor* selfRef,
                                                  const aclScalar* threshold,
                                                  const aclScalar* value,
                                                  uint64_t* workspaceSize,
                                                  aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplaceThreshold", workspaceSize, executor);
  call.In(selfRef, "selfRef").Out(selfRef, "selfRef");
  call.NotNull(threshold, "threshold").NotNull(value, "value");
  cannsim::NeedsNumber(call, selfRef, "selfRef");
  if (!call.ok()) return call.Finish(nullptr);
  const double t = cannsim::ScalarF(threshold);
  const double v = cannsim::ScalarF(value);
  return call.Finish(cannsim::Map([t, v](double x) { return x > t ? x : v; }));
}
CANNSIM_PHASE2(InplaceThreshold)

}  // extern "C"
