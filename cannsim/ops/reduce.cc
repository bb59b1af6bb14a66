// SPDX-License-Identifier: Apache-2.0
// Sums, means, norms, running sums, the largest and its place.
#include <algorithm>
#include <cmath>

#include "aclnnop/aclnn_argmax.h"
#include "aclnnop/aclnn_argsort.h"
#include "aclnnop/aclnn_cumsum.h"
#include "aclnnop/aclnn_mean.h"
#include "aclnnop/aclnn_norm.h"
#include "aclnnop/aclnn_reduce_sum.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

// The axes of an array argument, ascending; all of them for none. Complains
// about axes that are not there or there twice.
std::vector<int> AxesOf(Phase1& call, const aclIntArray* dims, int rank) {
  std::vector<int> axes;
  if (dims->values.empty()) {
    for (int i = 0; i < rank; ++i) axes.push_back(i);
    return axes;
  }
  for (const int64_t dim : dims->values) {
    const int axis = FrontAxis(dim, rank);
    call.Require(axis >= 0, "an axis of dims does not exist");
    if (!call.ok()) return axes;
    if (rank > 0) axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end());
  call.Require(std::adjacent_find(axes.begin(), axes.end()) == axes.end(),
               "dims names an axis twice");
  return axes;
}

// The shape that is left.
Dims Reduced(const Dims& dims, const std::vector<int>& axes, bool keep) {
  Dims left;
  for (int i = 0; i < static_cast<int>(dims.size()); ++i) {
    const bool gone = std::binary_search(axes.begin(), axes.end(), i);
    if (!gone) left.push_back(dims[static_cast<size_t>(i)]);
    if (gone && keep) left.push_back(1);
  }
  return left;
}

// The output without its kept axes of size 1: it then has the rank of what is
// left of the input.
Array Dropped(const Array& out, const std::vector<int>& axes, bool keep) {
  return keep ? Without(out, axes) : out;
}

// fold(x's of one group, in order) into each element of the output.
template <typename Fold>
Kernel ReduceBy(std::vector<int> axes, bool keep, Fold fold) {
  return [axes = std::move(axes), keep, fold](const Arrays& a) {
    const Array rest = Without(a[0], axes);
    const Array group = Only(a[0], axes);
    const Array out = Dropped(a[1], axes, keep);
    Walk2(out, rest, [&](int64_t out_at, int64_t first) {
      StoreF(out, out_at, fold(group, first));
    });
    return 0;
  };
}

double SumOf(const Array& group, int64_t first) {
  double sum = 0;
  Walk1(group, [&](int64_t at) { sum += LoadF(group, first + at); });
  return sum;
}

// What all reductions over several axes check. The axes, if call.ok().
std::vector<int> CheckReduction(Phase1& call, const aclTensor* self,
                                const aclIntArray* dims, bool keep,
                                const aclTensor* out) {
  call.In(self, "self").Out(out, "out").NotNull(dims, "dims");
  NeedsNumber(call, self, "self");
  NeedsNumber(call, out, "out");
  if (!call.ok()) return {};
  std::vector<int> axes = AxesOf(call, dims, self->rank());
  if (!call.ok()) return {};
  call.Require(Reduced(self->dims, axes, keep) == out->dims,
               "out has another shape than what is left of self");
  return axes;
}

// The axis that dim names; -1 once the call is refused.
int CheckAxis(Phase1& call, const aclTensor* self, int64_t dim) {
  if (!call.ok()) return -1;
  const int axis = FrontAxis(dim, self->rank());
  call.Require(axis >= 0 && self->rank() > 0, "dim does not exist");
  return call.ok() ? axis : -1;
}

// The same for an operator whose lines along the axis keep their places.
int CheckLines(Phase1& call, const aclTensor* self, aclTensor* out,
               int64_t dim) {
  call.In(self, "self").Out(out, "out");
  NeedsNumber(call, self, "self");
  SameShape(call, self, out, "self and out");
  return CheckAxis(call, self, dim);
}

// f(first in out, first in in) for each line along the axis.
template <typename F>
void EachLine(const Array& in, const Array& out, int axis, const F& f) {
  const Array a = Without(in, {axis});
  const Array b = Without(out, {axis});
  Walk2(b, a, [&](int64_t out_at, int64_t at) { f(out_at, at); });
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnReduceSumGetWorkspaceSize(const aclTensor* self,
                                           const aclIntArray* dims,
                                           bool keepDims, aclDataType dtype,
                                           aclTensor* out,
                                           uint64_t* workspaceSize,
                                           aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnReduceSum", workspaceSize, executor);
  auto axes = cannsim::CheckReduction(call, self, dims, keepDims, out);
  if (call.ok()) call.Require(out->dtype == dtype, "out is not of dtype");
  return call.Finish(
      cannsim::ReduceBy(std::move(axes), keepDims, cannsim::SumOf));
}
CANNSIM_PHASE2(ReduceSum)

aclnnStatus aclnnMeanGetWorkspaceSize(const aclTensor* self,
                                      const aclIntArray* dim, bool keepDim,
                                      aclDataType dtype, aclTensor* out,
                                      uint64_t* workspaceSize,
                                      aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMean", workspaceSize, executor);
  auto axes = cannsim::CheckReduction(call, self, dim, keepDim, out);
  if (call.ok()) call.Require(out->dtype == dtype, "out is not of dtype");
  return call.Finish(cannsim::ReduceBy(
      std::move(axes), keepDim, [](const cannsim::Array& group, int64_t first) {
        return cannsim::SumOf(group, first) /
               static_cast<double>(group.n_elements());
      }));
}
CANNSIM_PHASE2(Mean)

aclnnStatus aclnnNormGetWorkspaceSize(const aclTensor* self,
                                      const aclScalar* pScalar,
                                      const aclIntArray* dim, bool keepdim,
                                      aclTensor* out, uint64_t* workspaceSize,
                                      aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnNorm", workspaceSize, executor);
  call.NotNull(pScalar, "pScalar");
  auto axes = cannsim::CheckReduction(call, self, dim, keepdim, out);
  if (!call.ok()) return call.Finish(nullptr);
  const double p = cannsim::ScalarF(pScalar);
  call.Require(p > 0 && std::isfinite(p), "only positive finite p is there");
  return call.Finish(cannsim::ReduceBy(
      std::move(axes), keepdim,
      [p](const cannsim::Array& group, int64_t first) {
        double sum = 0;
        cannsim::Walk1(group, [&](int64_t at) {
          sum += std::pow(std::abs(cannsim::LoadF(group, first + at)), p);
        });
        return std::pow(sum, 1 / p);
      }));
}
CANNSIM_PHASE2(Norm)

aclnnStatus aclnnCumsumGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                        aclDataType dtype, aclTensor* out,
                                        uint64_t* workspaceSize,
                                        aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnCumsum", workspaceSize, executor);
  const int axis = cannsim::CheckLines(call, self, out, dim);
  if (axis < 0) return call.Finish(nullptr);
  call.Require(out->dtype == dtype, "out is not of dtype");
  return call.Finish([axis](const cannsim::Arrays& a) {
    const auto i = static_cast<size_t>(axis);
    cannsim::EachLine(a[0], a[1], axis, [&](int64_t out_at, int64_t at) {
      double sum = 0;
      for (int64_t k = 0; k < a[0].dims[i]; ++k) {
        sum += cannsim::LoadF(a[0], at + k * a[0].strides[i]);
        cannsim::StoreF(a[1], out_at + k * a[1].strides[i], sum);
      }
    });
    return 0;
  });
}
CANNSIM_PHASE2(Cumsum)

aclnnStatus aclnnArgMaxGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                        bool keepdim, aclTensor* out,
                                        uint64_t* workspaceSize,
                                        aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnArgMax", workspaceSize, executor);
  call.In(self, "self").Out(out, "out");
  cannsim::NeedsNumber(call, self, "self");
  cannsim::NeedsIndex(call, out, "out");
  const int axis = cannsim::CheckAxis(call, self, dim);
  if (axis >= 0) {
    call.Require(cannsim::Reduced(self->dims, {axis}, keepdim) == out->dims &&
                     self->dims[static_cast<size_t>(axis)] > 0,
                 "out has another shape than what is left of self");
  }
  return call.Finish(cannsim::ReduceBy(
      {axis}, keepdim, [](const cannsim::Array& group, int64_t first) {
        int64_t best = 0;
        double largest = -HUGE_VAL;
        for (int64_t k = 0; k < group.dims[0]; ++k) {
          const double x = cannsim::LoadF(group, first + k * group.strides[0]);
          if (std::isnan(x)) return static_cast<double>(k);
          if (x > largest) {
            largest = x;
            best = k;
          }
        }
        return static_cast<double>(best);
      }));
}
CANNSIM_PHASE2(ArgMax)

aclnnStatus aclnnArgsortGetWorkspaceSize(const aclTensor* self, int64_t dim,
                                         bool descending, aclTensor* out,
                                         uint64_t* workspaceSize,
                                         aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnArgsort", workspaceSize, executor);
  const int axis = cannsim::CheckLines(call, self, out, dim);
  if (axis < 0) return call.Finish(nullptr);
  call.Require(out->dtype == ACL_INT64, "out must be INT64");
  return call.Finish([axis, descending](const cannsim::Arrays& a) {
    const auto i = static_cast<size_t>(axis);
    std::vector<int64_t> order(static_cast<size_t>(a[0].dims[i]));
    cannsim::EachLine(a[0], a[1], axis, [&](int64_t out_at, int64_t at) {
      for (size_t k = 0; k < order.size(); ++k) {
        order[k] = static_cast<int64_t>(k);
      }
      const auto value = [&](int64_t k) {
        return cannsim::LoadF(a[0], at + k * a[0].strides[i]);
      };
      // Equal ones keep their order.
      std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
        return descending ? value(x) > value(y) : value(x) < value(y);
      });
      for (size_t k = 0; k < order.size(); ++k) {
        cannsim::StoreI(
            a[1], out_at + static_cast<int64_t>(k) * a[1].strides[i], order[k]);
      }
    });
    return 0;
  });
}
CANNSIM_PHASE2(Argsort)

}  // extern "C"
