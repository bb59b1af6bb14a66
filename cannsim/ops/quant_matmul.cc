// SPDX-License-Identifier: Apache-2.0
// Products with quantised weights.
#include "aclnnop/aclnn_weight_quant_batch_matmul_v2.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

// Steps of a scale or offset over groups of K and over N: [groups, N], [1, N],
// [N] or [1].
struct ScaleSteps {
  int64_t group = 0;
  int64_t column = 0;
};

ScaleSteps StepsOfScale(const Array& scale) {
  ScaleSteps steps;
  if (!scale.present) return steps;
  const size_t n = scale.dims.size();
  if (n >= 1 && scale.dims[n - 1] > 1) steps.column = scale.strides[n - 1];
  if (n >= 2 && scale.dims[n - 2] > 1) steps.group = scale.strides[n - 2];
  return steps;
}

// y[m, n] = sum_k x[m, k] * (w[k, n] + offset) * scale + bias[n].
int Multiply(const Arrays& a, int64_t group) {
  const Array& x = a[0];
  const Array& w = a[1];
  const Array& y = a[5];
  const ScaleSteps scale = StepsOfScale(a[2]);
  const ScaleSteps offset = StepsOfScale(a[3]);
  for (int64_t m = 0; m < y.dims[0]; ++m) {
    for (int64_t n = 0; n < y.dims[1]; ++n) {
      double sum = 0;
      for (int64_t k = 0; k < x.dims[1]; ++k) {
        const int64_t g = group == 0 ? 0 : k / group;
        double weight =
            static_cast<double>(LoadI(w, k * w.strides[0] + n * w.strides[1]));
        if (a[3].present) {
          weight += LoadF(a[3], g * offset.group + n * offset.column);
        }
        weight *= LoadF(a[2], g * scale.group + n * scale.column);
        sum += LoadF(x, m * x.strides[0] + k * x.strides[1]) * weight;
      }
      if (a[4].present) sum += LoadF(a[4], n * a[4].strides.back());
      StoreF(y, m * y.strides[0] + n * y.strides[1], sum);
    }
  }
  return 0;
}

// A scale is one number, one a column, or one a group and column.
bool FitsScale(const aclTensor* scale, int64_t n_groups, int64_t n_columns) {
  const Dims& d = scale->dims;
  if (d.size() == 1) return d[0] == 1 || (d[0] == n_columns && n_groups == 1);
  return d.size() == 2 && d[0] == n_groups && d[1] == n_columns;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnWeightQuantBatchMatmulV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* weight,
    const aclTensor* antiquantScale, const aclTensor* antiquantOffsetOptional,
    const aclTensor* quantScaleOptional, const aclTensor* quantOffsetOptional,
    const aclTensor* biasOptional, int antiquantGroupSize, const aclTensor* y,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnWeightQuantBatchMatmulV2", workspaceSize,
                       executor);
  call.In(x, "x").In(weight, "weight").In(antiquantScale, "antiquantScale");
  call.InOptional(antiquantOffsetOptional, "antiquantOffset");
  call.InOptional(biasOptional, "bias").Out(y, "y");
  call.Require(quantScaleOptional == nullptr && quantOffsetOptional == nullptr,
               "a quantised output is not simulated: pass null");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require((x->dtype == ACL_FLOAT16 || x->dtype == ACL_BF16) &&
                   (weight->dtype == ACL_INT8 || weight->dtype == ACL_INT4),
               "x must be FLOAT16 or BF16, weight INT8 or INT4");
  call.Require(x->rank() == 2 && weight->rank() == 2 && y->rank() == 2 &&
                   x->dims[1] == weight->dims[0] &&
                   y->dims == cannsim::Dims{x->dims[0], weight->dims[1]},
               "x must be [M, K], weight [K, N] and y [M, N]");
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t k = x->dims[1];
  const int64_t group = antiquantGroupSize;
  call.Require(group == 0 || (group >= 32 && group % 32 == 0 && group < k),
               "antiquantGroupSize must be 0, or a multiple of 32 below K");
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t n_groups = group == 0 ? 1 : (k + group - 1) / group;
  for (const aclTensor* one : {antiquantScale, antiquantOffsetOptional}) {
    call.Require(
        one == nullptr || cannsim::FitsScale(one, n_groups, weight->dims[1]),
        "a scale or offset must be [1], [N] or [groups, N]");
  }
  call.Require(
      biasOptional == nullptr || biasOptional->dims.back() == weight->dims[1],
      "bias must be [N]");
  return call.Finish([group](const cannsim::Arrays& a) {
    return cannsim::Multiply(a, group);
  });
}
CANNSIM_PHASE2(WeightQuantBatchMatmulV2)

}  // extern "C"
