// SPDX-License-Identifier: Apache-2.0
// The largest numbers of a line, and what a sampler leaves of the logits.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "aclnnop/aclnn_apply_top_k_top_p.h"
#include "aclnnop/aclnn_topk.h"
#include "cannsim/ops/at.h"

namespace cannsim {
namespace {

// Places of `values` from the smallest on, or from the largest; equal ones keep
// their order.
std::vector<size_t> Sorted(const std::vector<double>& values, bool largest) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return largest ? IsGreater(values[a], values[b])
                   : IsLess(values[a], values[b]);
  });
  return order;
}

// Everything below the k-th largest becomes -inf.
void KeepTopK(int64_t k, const std::vector<size_t>& order,
              std::vector<double>* row) {
  const auto n = static_cast<int64_t>(row->size());
  if (k <= 0 || k >= n) return;
  const double least = (*row)[order[static_cast<size_t>(n - k)]];
  for (double& x : *row) x = x < least ? -HUGE_VAL : x;
}

// What lies within the first 1 - p of the probability, from the least likely
// on, becomes -inf; the last one always stays.
void KeepTopP(double p, const std::vector<size_t>& order,
              std::vector<double>* row) {
  if (order.empty()) return;
  const double largest = (*row)[order.back()];
  double total = 0;
  for (const double x : *row) total += std::exp(x - largest);
  double sum = 0;
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    double& x = (*row)[order[i]];
    sum += std::exp(x - largest) / total;
    if (sum <= 1 - p) x = -HUGE_VAL;
  }
}

// logits, p, k, out.
int ApplyTopKTopP(const Arrays& a) {
  for (int64_t r = 0; r < a[0].dims[0]; ++r) {
    std::vector<double> row = ReadRow(a[0], Place(a[0], r));
    const std::vector<size_t> order = Sorted(row, false);
    if (Given(a[2])) KeepTopK(AtI(a[2], r), order, &row);
    if (Given(a[1])) KeepTopP(At(a[1], r), order, &row);
    WriteRow(a[3], Place(a[3], r), row);
  }
  return 0;
}

// self, values, indices.
int TopK(const Arrays& a, int axis, bool largest) {
  const auto i = static_cast<size_t>(axis);
  const Array in = Without(a[0], {axis});
  const Array values = Without(a[1], {axis});
  const Array indices = Without(a[2], {axis});
  Walk<3>(
      in.dims, {in.strides, values.strides, indices.strides},
      [&](const std::array<int64_t, 3>& at) {
        std::vector<double> line(static_cast<size_t>(a[0].dims[i]));
        for (size_t k = 0; k < line.size(); ++k) {
          line[k] =
              LoadF(a[0], at[0] + static_cast<int64_t>(k) * a[0].strides[i]);
        }
        const std::vector<size_t> order = Sorted(line, largest);
        for (int64_t k = 0; k < a[1].dims[i]; ++k) {
          const size_t from = order[static_cast<size_t>(k)];
          StoreF(a[1], at[1] + k * a[1].strides[i], line[from]);
          StoreI(a[2], at[2] + k * a[2].strides[i], static_cast<int64_t>(from));
        }
      });
  return 0;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnApplyTopKTopPGetWorkspaceSize(
    const aclTensor* logits, const aclTensor* p, const aclTensor* k,
    aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnApplyTopKTopP", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.In(logits, "logits").InOptional(p, "p").InOptional(k, "k");
  call.Out(out, "out");
  cannsim::NeedsFloat(call, logits, "logits");
  cannsim::SameShape(call, logits, out, "logits and out");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(cannsim::Given(p) || cannsim::Given(k),
               "p and k must not both be null");
  call.Require(logits->rank() == 2 && out->dtype == logits->dtype,
               "logits must be [batch, vocabulary], out of its dtype");
  if (!call.ok()) return call.Finish(nullptr);
  const cannsim::Dims lines{logits->dims[0]};
  call.Require(
      !cannsim::Given(p) || (p->dims == lines && p->dtype == logits->dtype),
      "p must be [batch] of logits' dtype");
  call.Require(
      !cannsim::Given(k) || (k->dims == lines && k->dtype == ACL_INT32),
      "k must be INT32 [batch]");
  return call.Finish(
      [](const cannsim::Arrays& a) { return cannsim::ApplyTopKTopP(a); });
}
CANNSIM_PHASE2(ApplyTopKTopP)

// Always sorted, which `sorted` false allows; equal numbers in their order.
aclnnStatus aclnnTopkGetWorkspaceSize(const aclTensor* self, int64_t k,
                                      int64_t dim, bool largest, bool sorted,
                                      aclTensor* valuesOut,
                                      aclTensor* indicesOut,
                                      uint64_t* workspaceSize,
                                      aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnTopk", workspaceSize, executor);
  (void)sorted;
  call.In(self, "self").Out(valuesOut, "valuesOut");
  call.Out(indicesOut, "indicesOut");
  cannsim::NeedsNumber(call, self, "self");
  if (!call.ok()) return call.Finish(nullptr);
  const int axis = cannsim::FrontAxis(dim, self->rank());
  call.Require(axis >= 0 && self->rank() > 0, "dim does not exist");
  if (!call.ok()) return call.Finish(nullptr);
  const auto i = static_cast<size_t>(axis);
  call.Require(k >= 0 && k <= self->dims[i], "k is out of range");
  cannsim::Dims shape = self->dims;
  shape[i] = k;
  call.Require(valuesOut->dims == shape && indicesOut->dims == shape &&
                   valuesOut->dtype == self->dtype &&
                   indicesOut->dtype == ACL_INT64,
               "valuesOut must be self with k in dim, indicesOut INT64 alike");
  return call.Finish([axis, largest](const cannsim::Arrays& a) {
    return cannsim::TopK(a, axis, largest);
  });
}
CANNSIM_PHASE2(Topk)

}  // extern "C"
