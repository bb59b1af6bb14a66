// SPDX-License-Identifier: Apache-2.0
// Rotary position embedding of some channels, in place.
#include <algorithm>
#include <array>

#include "aclnnop/aclnn_inplace_partial_rotary_mul.h"
#include "cannsim/ops/at.h"

namespace cannsim {
namespace {

enum RotaryMode { kHalf = 0, kInterleave = 1, kQuarter = 2 };

// The channel that `i` of `n` is turned with, and the sign of its part.
struct Partner {
  int64_t channel;
  double sign;
};

Partner PartnerOf(int64_t i, int64_t n, int64_t mode) {
  if (mode == kInterleave) return {i ^ 1, i % 2 == 0 ? -1.0 : 1.0};
  const int64_t block = std::max<int64_t>(mode == kHalf ? n : n / 2, 1);
  const int64_t inside = i % block;
  return inside < block / 2 ? Partner{i + block / 2, -1.0}
                            : Partner{i - block / 2, 1.0};
}

// Channels [first, last) of the last axis. cos and sin broadcast to them.
int Rotate(const Arrays& a, int64_t first, int64_t last, int64_t mode) {
  Array x = a[0];
  const int64_t n = last - first;
  x.dims.back() = n;
  // Only the channels move: an offset in elements, whatever the dtype.
  const int64_t step = x.strides.back();
  Array rows = Without(x, {x.rank() - 1});
  Dims cos_steps = StepsFor(a[1], x.dims);
  Dims sin_steps = StepsFor(a[2], x.dims);
  const int64_t cos_step = cos_steps.back();
  const int64_t sin_step = sin_steps.back();
  cos_steps.pop_back();
  sin_steps.pop_back();
  std::vector<double> before(static_cast<size_t>(n));
  Walk<3>(
      rows.dims, {rows.strides, cos_steps, sin_steps},
      [&](const std::array<int64_t, 3>& at) {
        for (int64_t i = 0; i < n; ++i) {
          before[static_cast<size_t>(i)] = LoadF(x, at[0] + (first + i) * step);
        }
        for (int64_t i = 0; i < n; ++i) {
          const Partner other = PartnerOf(i, n, mode);
          StoreF(x, at[0] + (first + i) * step,
                 before[static_cast<size_t>(i)] *
                         LoadF(a[1], at[1] + i * cos_step) +
                     other.sign * before[static_cast<size_t>(other.channel)] *
                         LoadF(a[2], at[2] + i * sin_step));
        }
      });
  return 0;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnInplacePartialRotaryMulGetWorkspaceSize(
    aclTensor* x, const aclTensor* cos, const aclTensor* sin, int64_t mode,
    const aclIntArray* partialSlice, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnInplacePartialRotaryMul", workspaceSize, executor);
  call.Out(x, "x").In(cos, "cos").In(sin, "sin");
  call.NotNull(partialSlice, "partialSlice");
  cannsim::SameShape(call, cos, sin, "cos and sin");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(mode >= cannsim::kHalf && mode <= cannsim::kQuarter,
               "mode must be 0 (half), 1 (interleave) or 2 (quarter); 3 is "
               "not simulated");
  call.Require(x->rank() == 4 && partialSlice->values.size() == 2,
               "x must have 4 axes and partialSlice 2 numbers");
  call.Require(
      x->dtype == ACL_FLOAT16 || x->dtype == ACL_BF16 || x->dtype == ACL_FLOAT,
      "x must be FLOAT16, BF16 or FLOAT");
  call.Require(cos->dtype == sin->dtype &&
                   (cos->dtype == x->dtype || cos->dtype == ACL_FLOAT),
               "cos and sin must be of x's dtype, or FLOAT");
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t first = partialSlice->values[0];
  const int64_t last = partialSlice->values[1];
  call.Require(0 <= first && first < last && last <= x->dims[3] &&
                   (last - first) % (mode == cannsim::kQuarter ? 4 : 2) == 0,
               "partialSlice must be an even part of the last axis");
  if (!call.ok()) return call.Finish(nullptr);
  cannsim::Dims shape = x->dims;
  shape[3] = last - first;
  cannsim::Dims together;
  call.Require(cannsim::Broadcast(shape, cos->dims, &together) &&
                   together == shape && !cos->dims.empty() &&
                   cos->dims.back() == last - first,
               "cos and sin must be as wide as partialSlice and broadcast to "
               "x");
  return call.Finish([first, last, mode](const cannsim::Arrays& a) {
    return cannsim::Rotate(a, first, last, mode);
  });
}
CANNSIM_PHASE2(InplacePartialRotaryMul)

}  // extern "C"
