// SPDX-License-Identifier: Apache-2.0
// SwiGLU with clamp, routing weight and FP8 in groups (A5), in the interface of
// vllm-ascend: CANN has another operator of the same name.
#include "aclnnop/aclnn_swiglu_group_quant.h"
#include "cannsim/ops/v4/scale.h"
#include "cannsim/ops/v4/swiglu.h"

namespace cannsim {
namespace {

enum QuantMode { kGroup = 1, kMx = 2 };

struct GroupQuantOptions {
  int64_t mode = kGroup;
  bool round_scale = false;
  bool cumulative = false;
  bool origin = false;
  double clamp = 0;
};

// The number of rows that have an expert; all without a list, more than there
// are for a list that cannot be.
int64_t NumRows(const Array& groups, int64_t n_rows, bool cumulative) {
  if (!Given(groups)) return n_rows;
  int64_t n = 0;
  for (int64_t e = 0; e < groups.dims[0]; ++e) {
    const int64_t value = AtI(groups, e);
    if (value < 0 || value > n_rows - (cumulative ? 0 : n)) return n_rows + 1;
    n = cumulative ? value : n + value;
  }
  return n;
}

// The scale of a block whose largest number is `peak`.
double BlockScale(double peak, const GroupQuantOptions& options) {
  const double scale = std::max(peak, kSmallestPeak) / kE4m3Largest;
  if (options.mode == kMx || options.round_scale) {
    return std::ldexp(1.0, CeilLog2(scale));
  }
  return RoundTo(ACL_FLOAT, scale);
}

void WriteBlocks(const Arrays& a, int64_t r, std::vector<double>* row,
                 const GroupQuantOptions& options) {
  const Array& scale = a[4];
  const size_t block = options.mode == kMx ? 32 : 128;
  for (size_t first = 0, b = 0; first < row->size(); first += block, ++b) {
    const size_t n = std::min(block, row->size() - first);
    const double s = BlockScale(PeakOf(row->data() + first, n), options);
    if (options.mode == kMx) {
      Put(scale, s, r, b / 2, b % 2);
    } else {
      Put(scale, s, r, b);
    }
    for (size_t i = first; i < first + n; ++i) (*row)[i] /= s;
  }
  WriteRow(a[3], Place(a[3], r), *row);
}

// x, topkWeight, groupIndex, y, scale, yOrigin.
int SwigluQuant(const Arrays& a, const GroupQuantOptions& options) {
  const Array& x = a[0];
  const int64_t n_rows = NumRows(a[2], x.dims[0], options.cumulative);
  if (n_rows > x.dims[0]) {
    return IndexOutOfRange("end of the groups", n_rows, x.dims[0] + 1);
  }
  const Swiglu glu{options.clamp, 1, 0};
  const int64_t n = x.dims[1] / 2;
  for (int64_t r = 0; r < n_rows; ++r) {
    const double weight = Given(a[1]) ? At(a[1], r) : 1;
    std::vector<double> row;
    for (int64_t i = 0; i < n; ++i) {
      row.push_back(glu(At(x, r, i), At(x, r, n + i)) * weight);
    }
    if (options.origin) WriteRow(a[5], Place(a[5], r), row);
    WriteBlocks(a, r, &row, options);
  }
  return 0;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnSwigluGroupQuantGetWorkspaceSize(
    const aclTensor* x, const aclTensor* topkWeightOptional,
    const aclTensor* groupIndexOptional, int64_t dstType, int64_t quantMode,
    int64_t groupSize, bool roundScale, bool ue8m0Scale, bool outputOrigin,
    int64_t groupListType, double clampValue, const aclTensor* y,
    const aclTensor* scale, const aclTensor* yOrigin, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnSwigluGroupQuant", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA5});
  call.In(x, "x").InOptional(topkWeightOptional, "topkWeight");
  call.InOptional(groupIndexOptional, "groupIndex").Out(y, "y");
  call.Out(scale, "scale").OutOptional(yOrigin, "yOrigin");
  if (!call.ok()) return call.Finish(nullptr);
  const bool mx = quantMode == cannsim::kMx;
  call.Require((quantMode == cannsim::kGroup && groupSize == 128) ||
                   (mx && groupSize == 32),
               "only quantMode 1 with groups of 128 and 2 with groups of 32 "
               "are simulated");
  call.Require(dstType == ACL_FLOAT8_E4M3FN && y->dtype == dstType,
               "y must be FLOAT8_E4M3FN: others are not simulated");
  call.Require(groupListType == 0 || groupListType == 1,
               "groupListType must be 0 (cumulative) or 1 (counts)");
  call.Require(!ue8m0Scale || roundScale || mx,
               "an E8M0 scale needs roundScale");
  call.Require(x->rank() == 2 && x->dims[1] % 2 == 0 &&
                   (x->dtype == ACL_FLOAT16 || x->dtype == ACL_BF16),
               "x must be FLOAT16 or BF16 [rows, 2 n]");
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t n_rows = x->dims[0];
  const int64_t n = x->dims[1] / 2;
  const cannsim::Dims scales = mx ? cannsim::Dims{n_rows, (n + 63) / 64, 2}
                                  : cannsim::Dims{n_rows, (n + 127) / 128};
  call.Require(y->dims == cannsim::Dims{n_rows, n} && scale->dims == scales,
               "y must be [rows, n], scale [rows, ceil(n / 128)] or, for MX, "
               "[rows, ceil(n / 64), 2]");
  call.Require(scale->dtype == (mx || ue8m0Scale ? ACL_FLOAT8_E8M0 : ACL_FLOAT),
               "scale must be FLOAT8_E8M0 for MX and ue8m0Scale, else FLOAT");
  call.Require(!cannsim::Given(topkWeightOptional) ||
                   (topkWeightOptional->dtype == ACL_FLOAT &&
                    cannsim::IsColumn(topkWeightOptional, n_rows)),
               "topkWeight must be FLOAT [rows]");
  call.Require(!cannsim::Given(groupIndexOptional) ||
                   (groupIndexOptional->dtype == ACL_INT64 &&
                    groupIndexOptional->rank() == 1),
               "groupIndex must be INT64 [experts]");
  call.Require(
      !outputOrigin || (cannsim::Given(yOrigin) && yOrigin->dims == y->dims &&
                        yOrigin->dtype == x->dtype),
      "yOrigin must be [rows, n] of x's dtype");
  const cannsim::GroupQuantOptions options{
      quantMode, roundScale, groupListType == 0, outputOrigin, clampValue};
  return call.Finish([options](const cannsim::Arrays& a) {
    return cannsim::SwigluQuant(a, options);
  });
}
CANNSIM_PHASE2(SwigluGroupQuant)

}  // extern "C"
