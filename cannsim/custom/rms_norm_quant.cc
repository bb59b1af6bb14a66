// SPDX-License-Identifier: Apache-2.0
// RMSNorm with one or two quantised results (A2, A3).
#include "aclnnop/aclnn_rms_norm_dynamic_quant.h"
#include "cannsim/ops/v4/scale.h"

namespace cannsim {
namespace {

// x, gamma, smooth1, smooth2, beta, y1, y2, scale1, scale2.
int NormAndQuantise(const Arrays& a, double eps, bool first, bool second) {
  const auto rows = RowsOf(a[0], 1);
  std::vector<double> codes;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<double> row = ReadRow(a[0], rows[r]);
    double sum = 0;
    for (const double x : row) sum += x * x;
    const double inverse =
        1 / std::sqrt(sum / static_cast<double>(row.size()) + eps);
    for (size_t i = 0; i < row.size(); ++i) {
      row[i] = row[i] * inverse * At(a[1], i) + (Given(a[4]) ? At(a[4], i) : 0);
    }
    for (const size_t k : {size_t{0}, size_t{1}}) {
      if (!(k == 0 ? first : second)) continue;
      const Array& smooth = a[2 + k];
      const Array& y = a[5 + k];
      const Array& scale = a[7 + k];
      std::vector<double> smoothed = row;
      for (size_t i = 0; Given(smooth) && i < row.size(); ++i) {
        smoothed[i] *= At(smooth, i);
      }
      StoreF(scale, RowsOf(scale, 0)[r],
             QuantiseRow(smoothed, y.dtype == ACL_INT4 ? 7 : 127, &codes));
      WriteRow(y, RowsOf(y, 1)[r], codes);
    }
  }
  return 0;
}

void CheckResult(Phase1& call, const aclTensor* x, const aclTensor* y,
                 const aclTensor* scale, int64_t dst_type) {
  call.NotNull(y, "y of a result that outputMask wants");
  call.NotNull(scale, "scale of a result that outputMask wants");
  if (!call.ok()) return;
  call.Require(y->dims == x->dims && y->dtype == dst_type &&
                   (dst_type == ACL_INT8 || dst_type == ACL_INT4),
               "y must have x's shape and dstType, INT8 or INT4");
  call.Require(scale->dtype == ACL_FLOAT && scale->dims == Leading(x->dims, 1),
               "scale must be FLOAT with an axis less than x");
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnRmsNormDynamicQuantGetWorkspaceSize(
    const aclTensor* x, const aclTensor* gamma,
    const aclTensor* smooth1Optional, const aclTensor* smooth2Optional,
    const aclTensor* betaOptional, double eps, const aclBoolArray* outputMask,
    int64_t dstType, const aclTensor* y1, const aclTensor* y2,
    const aclTensor* scale1, const aclTensor* scale2, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnRmsNormDynamicQuant", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA2, cannsim::Generation::kA3});
  call.In(x, "x").In(gamma, "gamma").InOptional(smooth1Optional, "smooth1");
  call.InOptional(smooth2Optional, "smooth2").InOptional(betaOptional, "beta");
  call.OutOptional(y1, "y1").OutOptional(y2, "y2");
  call.OutOptional(scale1, "scale1").OutOptional(scale2, "scale2");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(
      x->rank() >= 1 && (x->dtype == ACL_FLOAT16 || x->dtype == ACL_BF16),
      "x must be FLOAT16 or BF16");
  if (!call.ok()) return call.Finish(nullptr);
  for (const aclTensor* one :
       {gamma, smooth1Optional, smooth2Optional, betaOptional}) {
    call.Require((one != gamma && !cannsim::Given(one)) ||
                     (one->dims == cannsim::Dims{x->dims.back()} &&
                      one->dtype == x->dtype),
                 "gamma, beta and the smooth scales must be [n] of x's dtype");
  }
  // Without a mask only the first result is made.
  bool first = true;
  bool second = false;
  if (outputMask != nullptr && !outputMask->values.empty()) {
    call.Require(outputMask->values.size() == 2,
                 "outputMask must have two values");
    if (!call.ok()) return call.Finish(nullptr);
    first = outputMask->values[0];
    second = outputMask->values[1];
  }
  if (first) cannsim::CheckResult(call, x, y1, scale1, dstType);
  if (second) cannsim::CheckResult(call, x, y2, scale2, dstType);
  return call.Finish([eps, first, second](const cannsim::Arrays& a) {
    return cannsim::NormAndQuantise(a, eps, first, second);
  });
}
CANNSIM_PHASE2(RmsNormDynamicQuant)

}  // extern "C"
