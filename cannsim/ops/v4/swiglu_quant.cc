// SPDX-License-Identifier: Apache-2.0
// SwiGLU between two grouped products: dequantise, gate, clamp, quantise.
#include "aclnnop/aclnn_clipped_swiglu.h"
#include "aclnnop/aclnn_dequant_swiglu_quant_v2.h"
#include "cannsim/ops/v4/scale.h"
#include "cannsim/ops/v4/swiglu.h"

namespace cannsim {
namespace {

// Where gate and up stand in a row.
enum SwigluMode { kPlain = 0, kInterleaved = 1, kHalves = 2, kSiluHalves = 3 };

struct DequantOptions {
  int64_t mode = kPlain;
  bool left = true;  // the half that is activated
  Swiglu glu;
};

// Ends of the groups from their counts; without groups all rows are one. Counts
// that cannot be give an end behind all rows.
std::vector<int64_t> EndsOf(const Array& counts, int64_t n_rows) {
  if (!Given(counts)) return {n_rows};
  std::vector<int64_t> ends;
  int64_t end = 0;
  for (int64_t e = 0; e < counts.dims[0]; ++e) {
    const int64_t count = AtI(counts, e);
    if (count < 0 || count > n_rows - end) return {n_rows + 1};
    ends.push_back(end += count);
  }
  return ends;
}

// Gate and up of a row that was dequantised, to the activated half row.
std::vector<double> GateRow(const std::vector<double>& row,
                            const DequantOptions& options) {
  const size_t n = row.size() / 2;
  std::vector<double> out;
  for (size_t i = 0; i < n; ++i) {
    const bool pairs = options.mode == kInterleaved;
    const double first = row[pairs ? 2 * i : i];
    const double second = row[pairs ? 2 * i + 1 : n + i];
    out.push_back(options.left ? options.glu(first, second)
                               : options.glu(second, first));
  }
  return out;
}

// x, weightScale, activationScale, quantScale, groupIndex, y, scale.
int DequantSwigluQuant(const Arrays& a, const DequantOptions& options) {
  const Array& x = a[0];
  const std::vector<int64_t> ends = EndsOf(a[4], x.dims[0]);
  if (ends.back() > x.dims[0]) {
    return IndexOutOfRange("end of the groups", ends.back(), x.dims[0] + 1);
  }
  std::vector<double> codes;
  for (int64_t r = 0, e = 0; r < ends.back(); ++r) {
    while (r >= ends[static_cast<size_t>(e)]) ++e;
    const auto group = [&](const Array& scale) {
      return scale.rank() == 2 && scale.dims[0] > 1 ? Place(scale, e) : 0;
    };
    std::vector<double> row = ReadRow(x, Place(x, r));
    for (size_t i = 0; i < row.size(); ++i) {
      const auto k = static_cast<int64_t>(i);
      if (Given(a[1])) {
        row[i] *= LoadF(a[1], group(a[1]) + k * a[1].strides.back());
      }
      if (Given(a[2])) row[i] *= At(a[2], r);
    }
    row = GateRow(row, options);
    for (size_t i = 0; Given(a[3]) && i < row.size(); ++i) {
      row[i] *= LoadF(
          a[3], group(a[3]) + static_cast<int64_t>(i) * a[3].strides.back());
    }
    Put(a[6], QuantiseRow(row, 127, &codes), r);
    WriteRow(a[5], Place(a[5], r), codes);
  }
  return 0;
}

// [n] or [1, n] or [experts, n] of FLOAT.
bool FitsScale(const aclTensor* scale, int64_t n, int64_t n_groups) {
  if (scale->dtype != ACL_FLOAT) return false;
  if (scale->rank() == 1) return scale->dims[0] == n;
  return scale->rank() == 2 && scale->dims[1] == n &&
         (scale->dims[0] == 1 || scale->dims[0] == n_groups);
}

void CheckMode(Phase1& call, const DequantOptions& options) {
  const int64_t mode = options.mode;
  call.Require(mode >= kPlain && mode <= kSiluHalves,
               "swigluMode must be 0 to 3");
  call.Require(
      mode <= kInterleaved || cannsim_profile()->generation == Generation::kA5,
      "swigluMode 2 and 3 exist on the 950 only");
  call.Require(mode == kPlain || options.left,
               "activateLeft must be true unless swigluMode is 0");
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnDequantSwigluQuantV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* weightScaleOptional,
    const aclTensor* activationScaleOptional, const aclTensor* biasOptional,
    const aclTensor* quantScaleOptional, const aclTensor* quantOffsetOptional,
    const aclTensor* groupIndexOptional, bool activateLeft, char* quantMode,
    int64_t dstType, char* roundMode, int64_t activateDim, int64_t swigluMode,
    double clampLimit, double gluAlpha, double gluBias, const aclTensor* yOut,
    const aclTensor* scaleOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnDequantSwigluQuantV2", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.In(x, "x").InOptional(weightScaleOptional, "weightScale");
  call.InOptional(activationScaleOptional, "activationScale");
  call.InOptional(quantScaleOptional, "quantScale");
  call.InOptional(groupIndexOptional, "groupIndex");
  call.Out(yOut, "yOut").Out(scaleOut, "scaleOut");
  call.NotNull(quantMode, "quantMode").NotNull(roundMode, "roundMode");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(cannsim::IsText(quantMode, "dynamic") &&
                   cannsim::IsText(roundMode, "rint") && dstType == ACL_INT8 &&
                   !cannsim::Given(biasOptional) &&
                   !cannsim::Given(quantOffsetOptional),
               "only quantMode dynamic to INT8 with rint is simulated, without "
               "bias and quantOffset");
  call.Require(x->rank() == 2 && x->dims[1] % 2 == 0 &&
                   (activateDim == -1 || activateDim == 1),
               "x must be [rows, 2 n], and activateDim its last axis");
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t n = x->dims[1];
  const int64_t groups =
      cannsim::Given(groupIndexOptional) ? groupIndexOptional->n_elements() : 1;
  const bool whole = x->dtype == ACL_INT32;
  call.Require(whole || x->dtype == ACL_FLOAT16 || x->dtype == ACL_BF16,
               "x must be INT32, FLOAT16 or BF16");
  call.Require(whole == cannsim::Given(weightScaleOptional) &&
                   (whole || !cannsim::Given(activationScaleOptional)),
               "weightScale comes with an INT32 x, and only with it");
  call.Require(!cannsim::Given(weightScaleOptional) ||
                   cannsim::FitsScale(weightScaleOptional, n, groups),
               "weightScale must be FLOAT [experts, 2 n]");
  call.Require(!cannsim::Given(activationScaleOptional) ||
                   (activationScaleOptional->dtype == ACL_FLOAT &&
                    cannsim::IsColumn(activationScaleOptional, x->dims[0])),
               "activationScale must be FLOAT [rows]");
  call.Require(!cannsim::Given(quantScaleOptional) ||
                   cannsim::FitsScale(quantScaleOptional, n / 2, groups),
               "quantScale must be FLOAT [experts, n]");
  call.Require(!cannsim::Given(groupIndexOptional) ||
                   (groupIndexOptional->dtype == ACL_INT64 &&
                    groupIndexOptional->rank() == 1),
               "groupIndex must be INT64 [experts]");
  call.Require(yOut->dtype == ACL_INT8 &&
                   yOut->dims == cannsim::Dims{x->dims[0], n / 2} &&
                   scaleOut->dtype == ACL_FLOAT &&
                   scaleOut->dims == cannsim::Dims{x->dims[0]},
               "yOut must be INT8 [rows, n] and scaleOut FLOAT [rows]");
  cannsim::DequantOptions options{swigluMode, activateLeft, {}};
  cannsim::CheckMode(call, options);
  if (swigluMode != cannsim::kPlain) options.glu.limit = clampLimit;
  if (swigluMode == cannsim::kInterleaved || swigluMode == cannsim::kHalves) {
    options.glu.alpha = gluAlpha;
    options.glu.bias = gluBias;
  }
  return call.Finish([options](const cannsim::Arrays& a) {
    return cannsim::DequantSwigluQuant(a, options);
  });
}
CANNSIM_PHASE2(DequantSwigluQuantV2)

aclnnStatus aclnnClippedSwigluGetWorkspaceSize(
    const aclTensor* x, const aclTensor* groupIndexOptional, int64_t dim,
    double alpha, double limit, double bias, bool interleaved,
    const aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnClippedSwiglu", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.In(x, "x").InOptional(groupIndexOptional, "groupIndex").Out(out, "out");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(x->rank() == 2 && (dim == -1 || dim == 1) && x->dims[1] % 2 == 0,
               "x must be [rows, 2 n] and dim its last axis");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(cannsim::IsFloat(x->dtype) && out->dtype == x->dtype &&
                   out->dims == cannsim::Dims{x->dims[0], x->dims[1] / 2},
               "out must be [rows, n] of x's float dtype");
  call.Require(!cannsim::Given(groupIndexOptional) ||
                   (groupIndexOptional->dtype == ACL_INT64 &&
                    groupIndexOptional->rank() == 1),
               "groupIndex must be INT64 [experts]");
  const cannsim::DequantOptions options{
      interleaved ? cannsim::kInterleaved : cannsim::kHalves,
      true,
      {limit, alpha, bias}};
  return call.Finish([options](const cannsim::Arrays& a) {
    const auto ends = cannsim::EndsOf(a[1], a[0].dims[0]);
    if (ends.back() > a[0].dims[0]) {
      return cannsim::IndexOutOfRange("end of the groups", ends.back(),
                                      a[0].dims[0] + 1);
    }
    for (int64_t r = 0; r < ends.back(); ++r) {
      const auto row = cannsim::ReadRow(a[0], cannsim::Place(a[0], r));
      cannsim::WriteRow(a[2], cannsim::Place(a[2], r),
                        cannsim::GateRow(row, options));
    }
    return 0;
  });
}
CANNSIM_PHASE2(ClippedSwiglu)

}  // extern "C"
