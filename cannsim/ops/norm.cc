// SPDX-License-Identifier: Apache-2.0
// Softmax and normalisations.
#include <algorithm>
#include <cmath>

#include "aclnnop/aclnn_add_rms_norm.h"
#include "aclnnop/aclnn_layer_norm.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_softmax.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

// The last `n` axes, and those before them.
struct Split {
  Array outer;
  Array inner;
};

Split SplitLast(const Array& array, int n) {
  std::vector<int> first;
  std::vector<int> last;
  for (int i = 0; i < array.rank(); ++i) {
    (i < array.rank() - n ? first : last).push_back(i);
  }
  return {Only(array, first), Only(array, last)};
}

double MeanOfSquares(const Array& row, int64_t first, double minus) {
  double sum = 0;
  Walk1(row, [&](int64_t at) {
    const double x = LoadF(row, first + at) - minus;
    sum += x * x;
  });
  return sum / static_cast<double>(row.n_elements());
}

double MeanOf(const Array& row, int64_t first) {
  double sum = 0;
  Walk1(row, [&](int64_t at) { sum += LoadF(row, first + at); });
  return sum / static_cast<double>(row.n_elements());
}

// y = x / sqrt(mean(x^2) + eps) * gamma over the last axes, as many as gamma
// has; rstd has 1 in the place of each of them.
void RmsNorm(const Array& x, const Array& gamma, const Array& y,
             const Array& rstd, double eps) {
  const int n = gamma.rank();
  const Split in = SplitLast(x, n);
  const Split out = SplitLast(y, n);
  const Split scale = SplitLast(rstd, rstd.present ? n : 0);
  Dims none(in.outer.dims.size(), 0);
  Walk<3>(in.outer.dims,
          {in.outer.strides, out.outer.strides,
           rstd.present ? scale.outer.strides : none},
          [&](const std::array<int64_t, 3>& first) {
            const double r =
                1 / std::sqrt(MeanOfSquares(in.inner, first[0], 0) + eps);
            if (rstd.present) StoreF(rstd, first[2], r);
            Walk3(out.inner, in.inner, gamma,
                  [&](int64_t to, int64_t from, int64_t g) {
                    StoreF(y, first[1] + to,
                           LoadF(x, first[0] + from) * r * LoadF(gamma, g));
                  });
          });
}

// gamma is the end of x's shape; rstd, where given, has ones there.
void CheckRms(Phase1& call, const aclTensor* x, const aclTensor* gamma,
              const aclTensor* rstd) {
  if (!call.ok()) return;
  const auto n = gamma->dims.size();
  call.Require(n >= 1 && n <= x->dims.size() &&
                   std::equal(gamma->dims.rbegin(), gamma->dims.rend(),
                              x->dims.rbegin()),
               "gamma's shape is not the end of x's");
  if (!call.ok() || rstd == nullptr) return;
  Dims shape = x->dims;
  std::fill(shape.end() - static_cast<long>(n), shape.end(), 1);
  call.Require(rstd->dims == shape && rstd->dtype == ACL_FLOAT,
               "rstdOut must be FLOAT, of x's shape with 1 in the axes of "
               "gamma");
}

// The quirk eps-underflow: versions that keep eps in FP16 and refuse what is
// (nearly) nothing there.
void CheckEps(Phase1& call, const aclTensor* x, double eps) {
  if (!call.ok() || x->dtype != ACL_FLOAT16 || eps >= 1e-6 ||
      !cannsim_quirk(Quirk::kEpsUnderflow)) {
    return;
  }
  cannsim_tell(Quirk::kEpsUnderflow,
               "an eps below 1e-6 is refused for FLOAT16");
  call.Require(false, "invalid parameter: epsilon is below 1e-6");
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnRmsNormGetWorkspaceSize(const aclTensor* x,
                                         const aclTensor* gamma, double epsilon,
                                         const aclTensor* yOut,
                                         const aclTensor* rstdOut,
                                         uint64_t* workspaceSize,
                                         aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnRmsNorm", workspaceSize, executor);
  call.In(x, "x").In(gamma, "gamma").Out(yOut, "yOut").Out(rstdOut, "rstdOut");
  cannsim::NeedsFloat(call, x, "x");
  cannsim::NeedsFloat(call, gamma, "gamma");
  cannsim::SameShape(call, x, yOut, "x and yOut");
  cannsim::CheckRms(call, x, gamma, rstdOut);
  cannsim::CheckEps(call, x, epsilon);
  return call.Finish([epsilon](const cannsim::Arrays& a) {
    cannsim::RmsNorm(a[0], a[1], a[2], a[3], epsilon);
    return 0;
  });
}
CANNSIM_PHASE2(RmsNorm)

aclnnStatus aclnnAddRmsNormGetWorkspaceSize(
    const aclTensor* x1, const aclTensor* x2, const aclTensor* gamma,
    double epsilon, const aclTensor* yOut, const aclTensor* rstdOut,
    const aclTensor* xOut, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnAddRmsNorm", workspaceSize, executor);
  call.In(x1, "x1").In(x2, "x2").In(gamma, "gamma");
  call.Out(yOut, "yOut").Out(rstdOut, "rstdOut").Out(xOut, "xOut");
  cannsim::NeedsFloat(call, x1, "x1");
  cannsim::NeedsFloat(call, x2, "x2");
  cannsim::NeedsFloat(call, gamma, "gamma");
  cannsim::SameShape(call, x1, x2, "x1 and x2");
  cannsim::SameShape(call, x1, yOut, "x1 and yOut");
  cannsim::SameShape(call, x1, xOut, "x1 and xOut");
  cannsim::CheckRms(call, x1, gamma, rstdOut);
  cannsim::CheckEps(call, x1, epsilon);
  return call.Finish([epsilon](const cannsim::Arrays& a) {
    // The sum is rounded to its dtype, then normalised.
    cannsim::Walk3(a[5], a[0], a[1], [&](int64_t out, int64_t x, int64_t y) {
      cannsim::StoreF(a[5], out,
                      cannsim::LoadF(a[0], x) + cannsim::LoadF(a[1], y));
    });
    cannsim::RmsNorm(a[5], a[2], a[3], a[4], epsilon);
    return 0;
  });
}
CANNSIM_PHASE2(AddRmsNorm)

aclnnStatus aclnnLayerNormGetWorkspaceSize(
    const aclTensor* input, const aclIntArray* normalizedShape,
    const aclTensor* weightOptional, const aclTensor* biasOptional, double eps,
    aclTensor* out, aclTensor* meanOutOptional, aclTensor* rstdOutOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnLayerNorm", workspaceSize, executor);
  call.In(input, "input").Out(out, "out");
  call.InOptional(weightOptional, "weight").InOptional(biasOptional, "bias");
  call.OutOptional(meanOutOptional, "meanOut");
  call.OutOptional(rstdOutOptional, "rstdOut");
  call.NotNull(normalizedShape, "normalizedShape");
  cannsim::NeedsFloat(call, input, "input");
  cannsim::SameShape(call, input, out, "input and out");
  if (!call.ok()) return call.Finish(nullptr);
  const std::vector<int64_t>& shape = normalizedShape->values;
  call.Require(
      !shape.empty() && shape.size() <= input->dims.size() &&
          std::equal(shape.rbegin(), shape.rend(), input->dims.rbegin()),
      "normalizedShape is not the end of input's shape");
  for (const aclTensor* one : {weightOptional, biasOptional}) {
    call.Require(one == nullptr || one->dims == shape,
                 "weight and bias must have normalizedShape");
  }
  call.Require(meanOutOptional == nullptr && rstdOutOptional == nullptr,
               "meanOut and rstdOut are not simulated: pass null");
  const auto n = static_cast<int>(shape.size());
  return call.Finish([eps, n](const cannsim::Arrays& a) {
    const auto in = cannsim::SplitLast(a[0], n);
    const auto to = cannsim::SplitLast(a[1], n);
    const cannsim::Dims none(static_cast<size_t>(n), 0);
    const cannsim::Dims w = a[2].present ? a[2].strides : none;
    const cannsim::Dims b = a[3].present ? a[3].strides : none;
    cannsim::Walk2(to.outer, in.outer, [&](int64_t out_first, int64_t first) {
      const double mean = cannsim::MeanOf(in.inner, first);
      const double r =
          1 / std::sqrt(cannsim::MeanOfSquares(in.inner, first, mean) + eps);
      cannsim::Walk<4>(
          in.inner.dims, {to.inner.strides, in.inner.strides, w, b},
          [&](const std::array<int64_t, 4>& at) {
            double y = (cannsim::LoadF(a[0], first + at[1]) - mean) * r;
            if (a[2].present) y *= cannsim::LoadF(a[2], at[2]);
            if (a[3].present) y += cannsim::LoadF(a[3], at[3]);
            cannsim::StoreF(a[1], out_first + at[0], y);
          });
    });
    return 0;
  });
}
CANNSIM_PHASE2(LayerNorm)

aclnnStatus aclnnSoftmaxGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                         aclTensor* out,
                                         uint64_t* workspaceSize,
                                         aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnSoftmax", workspaceSize, executor);
  call.In(self, "self").Out(out, "out");
  cannsim::NeedsFloat(call, self, "self");
  cannsim::SameShape(call, self, out, "self and out");
  if (!call.ok()) return call.Finish(nullptr);
  const int axis = cannsim::FrontAxis(dim, self->rank());
  call.Require(axis >= 0 && self->rank() > 0, "dim does not exist");
  return call.Finish([axis](const cannsim::Arrays& a) {
    const auto i = static_cast<size_t>(axis);
    const int64_t n = a[0].dims[i];
    std::vector<double> line(static_cast<size_t>(n));
    const cannsim::Array in = cannsim::Without(a[0], {axis});
    const cannsim::Array to = cannsim::Without(a[1], {axis});
    cannsim::Walk2(to, in, [&](int64_t out_first, int64_t first) {
      double largest = -HUGE_VAL;
      for (int64_t k = 0; k < n; ++k) {
        line[static_cast<size_t>(k)] =
            cannsim::LoadF(a[0], first + k * a[0].strides[i]);
        largest = std::max(largest, line[static_cast<size_t>(k)]);
      }
      double sum = 0;
      for (double& x : line) sum += x = std::exp(x - largest);
      for (int64_t k = 0; k < n; ++k) {
        cannsim::StoreF(a[1], out_first + k * a[1].strides[i],
                        line[static_cast<size_t>(k)] / sum);
      }
    });
    return 0;
  });
}
CANNSIM_PHASE2(Softmax)

}  // extern "C"
