// SPDX-License-Identifier: Apache-2.0
// Quantising activations: INT8 or INT4 with a scale a row, and MX blocks.
#include "aclnnop/aclnn_dynamic_mx_quant.h"
#include "aclnnop/aclnn_dynamic_quant.h"
#include "aclnnop/aclnn_dynamic_quant_v2.h"
#include "cannsim/ops/v4/scale.h"

namespace cannsim {
namespace {

constexpr int64_t kMxBlock = 32;

double LimitOf(aclDataType dtype) { return dtype == ACL_INT4 ? 7 : 127; }

// Which row of the smooth scales belongs to row `r`: groups end at the values
// of a cumulative list.
int64_t GroupOf(const Array& ends, int64_t r) {
  int64_t e = 0;
  while (e < ends.dims[0] - 1 && r >= AtI(ends, e)) ++e;
  return e;
}

// x, smooth, group, y, scale.
int Quantise(const Arrays& a) {
  const auto rows = RowsOf(a[0], 1);
  const auto to = RowsOf(a[3], 1);
  const auto scales = RowsOf(a[4], 0);
  std::vector<double> codes;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<double> row = ReadRow(a[0], rows[r]);
    if (Given(a[1])) {
      const int64_t group =
          Given(a[2]) ? GroupOf(a[2], static_cast<int64_t>(r)) : 0;
      const int64_t first = a[1].rank() == 2 ? Place(a[1], group) : 0;
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] *=
            LoadF(a[1], first + static_cast<int64_t>(i) * a[1].strides.back());
      }
    }
    StoreF(a[4], scales[r], QuantiseRow(row, LimitOf(a[3].dtype), &codes));
    WriteRow(a[3], to[r], codes);
  }
  return 0;
}

struct DynamicTensors {
  const aclTensor* x;
  const aclTensor* smooth;
  const aclTensor* group;
  const aclTensor* y;
  const aclTensor* scale;
};

aclnnStatus Dynamic(Phase1& call, const DynamicTensors& t) {
  call.In(t.x, "x").InOptional(t.smooth, "smoothScales");
  call.InOptional(t.group, "groupIndex").Out(t.y, "yOut");
  call.Out(t.scale, "scaleOut");
  SameShape(call, t.x, t.y, "x and yOut");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(t.x->dtype == ACL_FLOAT16 || t.x->dtype == ACL_BF16,
               "x must be FLOAT16 or BF16");
  call.Require(t.y->dtype == ACL_INT8 || t.y->dtype == ACL_INT4,
               "yOut must be INT8 or INT4");
  call.Require(t.x->rank() >= 2 && t.scale->dtype == ACL_FLOAT &&
                   t.scale->dims == Leading(t.x->dims, 1),
               "x must have 2 axes or more, scaleOut be FLOAT with one axis "
               "less");
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t n = t.x->dims.back();
  const bool groups = Given(t.group);
  call.Require(
      !groups || (t.group->dtype == ACL_INT32 && t.group->rank() == 1 &&
                  Given(t.smooth)),
      "groupIndex must be INT32 [experts] and comes with smoothScales");
  if (!call.ok()) return call.Finish(nullptr);
  if (Given(t.smooth)) {
    call.Require(t.smooth->dtype == t.x->dtype,
                 "smoothScales must be of x's "
                 "dtype");
    call.Require(
        t.smooth->dims == (groups ? Dims{t.group->dims[0], n} : Dims{n}),
        "smoothScales must be [n], or [experts, n] with groupIndex");
  }
  call.Require(t.y->dtype != ACL_INT4 || n % 2 == 0,
               "the last axis must be even for INT4");
  return call.Finish([](const Arrays& a) { return Quantise(a); });
}

struct MxFormat {
  double largest;
  int exponent;  // of the largest
};

MxFormat FormatOf(int64_t dtype) {
  switch (dtype) {
    case ACL_FLOAT8_E4M3FN:
      return {448, 8};
    case ACL_FLOAT8_E5M2:
      return {57344, 15};
    default:
      return {6, 2};  // FLOAT4_E2M1
  }
}

// The exponent of a block's scale. A block of zeros has the smallest.
int MxExponent(double peak, const MxFormat& format, int64_t algorithm) {
  if (peak == 0) return -127;
  const int e = algorithm == 0 ? std::ilogb(peak) - format.exponent
                               : CeilLog2(peak / format.largest);
  return std::clamp(e, -127, 127);
}

int MxQuantise(const Arrays& a, int64_t algorithm) {
  const auto rows = RowsOf(a[0], 1);
  const auto to = RowsOf(a[1], 1);
  const auto scales = RowsOf(a[2], 2);
  const MxFormat format = FormatOf(a[1].dtype);
  const size_t pair_axis = a[2].strides.size() - 2;
  for (size_t r = 0; r < rows.size(); ++r) {
    std::vector<double> row = ReadRow(a[0], rows[r]);
    const int64_t n_blocks = 2 * a[2].dims[pair_axis];
    for (int64_t b = 0; b < n_blocks; ++b) {
      const auto first =
          std::min(static_cast<size_t>(b * kMxBlock), row.size());
      const size_t n = std::min<size_t>(kMxBlock, row.size() - first);
      const int e =
          MxExponent(PeakOf(row.data() + first, n), format, algorithm);
      StoreF(a[2],
             scales[r] + b / 2 * a[2].strides[pair_axis] +
                 b % 2 * a[2].strides.back(),
             std::ldexp(1.0, e));
      for (size_t i = first; i < first + n; ++i) {
        row[i] = std::ldexp(row[i], -e);
      }
    }
    WriteRow(a[1], to[r], row);
  }
  return 0;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnDynamicQuantGetWorkspaceSize(
    const aclTensor* x, const aclTensor* smoothScalesOptional,
    const aclTensor* yOut, const aclTensor* scaleOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnDynamicQuant", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  return cannsim::Dynamic(call,
                          {x, smoothScalesOptional, nullptr, yOut, scaleOut});
}
CANNSIM_PHASE2(DynamicQuant)

aclnnStatus aclnnDynamicQuantV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* smoothScalesOptional,
    const aclTensor* groupIndexOptional, int64_t dstType, const aclTensor* yOut,
    const aclTensor* scaleOut, const aclTensor* offsetOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnDynamicQuantV2", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.NotNull(yOut, "yOut");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(dstType == yOut->dtype, "dstType is not yOut's dtype");
  call.Require(!cannsim::Given(offsetOut),
               "offsetOut (asymmetric quantisation) is not simulated");
  return cannsim::Dynamic(
      call, {x, smoothScalesOptional, groupIndexOptional, yOut, scaleOut});
}
CANNSIM_PHASE2(DynamicQuantV2)

aclnnStatus aclnnDynamicMxQuantGetWorkspaceSize(
    const aclTensor* x, int64_t axis, char* roundMode, int64_t dstType,
    int64_t blocksize, int64_t scaleAlg, const aclTensor* y,
    const aclTensor* mxscale, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnDynamicMxQuant", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA5});
  call.In(x, "x").Out(y, "y").Out(mxscale, "mxscale");
  call.NotNull(roundMode, "roundMode");
  cannsim::SameShape(call, x, y, "x and y");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(x->dtype == ACL_FLOAT16 || x->dtype == ACL_BF16,
               "x must be FLOAT16 or BF16");
  call.Require(
      x->rank() >= 1 && cannsim::FrontAxis(axis, x->rank()) == x->rank() - 1,
      "only the last axis is simulated");
  call.Require(cannsim::IsText(roundMode, "rint") && blocksize == 32,
               "only roundMode rint and blocksize 32 are simulated");
  const bool fp4 = dstType == ACL_FLOAT4_E2M1;
  call.Require(dstType == y->dtype && (fp4 || cannsim::IsFp8(y->dtype)),
               "dstType must be y's dtype: FLOAT8_E4M3FN, FLOAT8_E5M2 or "
               "FLOAT4_E2M1 (E1M2 is not simulated)");
  call.Require(scaleAlg == 0 || (scaleAlg == 1 && !fp4),
               "scaleAlg must be 0, or 1 for FP8");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(!fp4 || x->dims.back() % 2 == 0,
               "the last axis must be even for FP4");
  call.Require(
      mxscale->dtype == ACL_FLOAT8_E8M0 &&
          mxscale->dims == cannsim::With(cannsim::Leading(x->dims, 1),
                                         {(x->dims.back() + 63) / 64, 2}),
      "mxscale must be FLOAT8_E8M0 [.., ceil(n / 64), 2]");
  return call.Finish([scaleAlg](const cannsim::Arrays& a) {
    return cannsim::MxQuantise(a, scaleAlg);
  });
}
CANNSIM_PHASE2(DynamicMxQuant)

}  // extern "C"
