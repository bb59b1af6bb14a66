// SPDX-License-Identifier: Apache-2.0
// Tokens to their experts and back.
#include <algorithm>
#include <numeric>

#include "aclnnop/aclnn_moe_finalize_routing_v2.h"
#include "aclnnop/aclnn_moe_init_routing_v3.h"
#include "aclnnop/aclnn_moe_token_unpermute.h"
#include "cannsim/ops/at.h"
#include "cannsim/ops/v4/scale.h"

namespace cannsim {
namespace {

struct InitOptions {
  int64_t first_expert = 0;
  int64_t last_expert = 0;  // not included
  int64_t count_type = 0;
  bool count = false;
  bool quantise = false;
  bool scatter = false;  // rowIdxType 1
};

enum CountType { kCumsum = 0, kCount = 1, kKeyValue = 2 };

// x, expertIdx, scale, expandedX, expandedRowIdx, counts, expandedScale.
enum InitArray { kX, kExpert, kScale, kOutX, kRowIdx, kCounts, kOutScale };

// The places of (token, choice) in the order of their experts; those of other
// experts are left out. Equal experts stay in the order of tokens.
std::vector<int64_t> SortByExpert(const Array& expert,
                                  const InitOptions& options) {
  const int64_t k = expert.dims[1];
  std::vector<int64_t> order;
  for (int64_t i = 0; i < expert.n_elements(); ++i) {
    const int64_t e = AtI(expert, i / k, i % k);
    if (e >= options.first_expert && e < options.last_expert) {
      order.push_back(i);
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return AtI(expert, a / k, a % k) < AtI(expert, b / k, b % k);
  });
  return order;
}

void WriteRowIdx(const Array& out, const std::vector<int64_t>& order,
                 bool scatter) {
  for (int64_t i = 0; i < out.n_elements(); ++i) StoreI(out, Place(out, i), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    const auto place = static_cast<int64_t>(i);
    StoreI(out, Place(out, scatter ? place : order[i]),
           scatter ? order[i] : place);
  }
}

void WriteCounts(const Array& expert, const Array& out,
                 const InitOptions& options) {
  const auto n =
      static_cast<size_t>(options.last_expert - options.first_expert);
  std::vector<int64_t> counts(n, 0);
  Walk1(expert, [&](int64_t at) {
    const int64_t e = LoadI(expert, at) - options.first_expert;
    if (e >= 0 && e < static_cast<int64_t>(n)) ++counts[static_cast<size_t>(e)];
  });
  if (options.count_type == kKeyValue) {
    int64_t row = 0;
    for (size_t e = 0; e < n; ++e) {
      if (counts[e] == 0) continue;
      StoreI(out, Place(out, row, 0),
             options.first_expert + static_cast<int64_t>(e));
      StoreI(out, Place(out, row++, 1), counts[e]);
    }
    for (; row < out.dims[0]; ++row) {
      StoreI(out, Place(out, row, 0), 0);
      StoreI(out, Place(out, row, 1), 0);
    }
    return;
  }
  if (options.count_type == kCumsum) {
    std::partial_sum(counts.begin(), counts.end(), counts.begin());
  }
  for (size_t e = 0; e < n; ++e) StoreI(out, Place(out, e), counts[e]);
}

// Row `to` of the expanded tokens: copied, or as INT8 with a scale of its own
// after a smooth scale of its expert.
void Expand(const Arrays& a, int64_t to, int64_t choice,
            const InitOptions& options) {
  const int64_t k = a[kExpert].dims[1];
  const int64_t token = choice / k;
  std::vector<double> row = ReadRow(a[kX], Place(a[kX], token));
  const Array& scale = a[kScale];
  if (!options.quantise) {
    WriteRow(a[kOutX], Place(a[kOutX], to), row);
    if (Given(a[kOutScale]) && Given(scale)) {
      Put(a[kOutScale], At(scale, token), to);
    }
    return;
  }
  if (Given(scale)) {
    const int64_t e = scale.dims[0] == 1 ? 0
                                         : AtI(a[kExpert], token, choice % k) -
                                               options.first_expert;
    for (size_t i = 0; i < row.size(); ++i) row[i] *= At(scale, e, i);
  }
  std::vector<double> codes;
  Put(a[kOutScale], QuantiseRow(row, 127, &codes), to);
  WriteRow(a[kOutX], Place(a[kOutX], to), codes);
}

int InitRouting(const Arrays& a, const InitOptions& options) {
  const std::vector<int64_t> order = SortByExpert(a[kExpert], options);
  WriteRowIdx(a[kRowIdx], order, options.scatter);
  if (options.count) WriteCounts(a[kExpert], a[kCounts], options);
  for (size_t i = 0; i < order.size(); ++i) {
    Expand(a, static_cast<int64_t>(i), order[i], options);
  }
  return 0;
}

// The scale, and what is written of it, in each mode of quantisation.
void CheckInitScale(Phase1& call, const aclTensor* x, const aclTensor* scale,
                    const aclTensor* out_scale, const aclTensor* row_idx,
                    const InitOptions& options) {
  const int64_t n_experts = options.last_expert - options.first_expert;
  call.Require(!Given(out_scale) || (out_scale->dtype == ACL_FLOAT &&
                                     out_scale->dims == row_idx->dims),
               "expandedScale must be FLOAT [tokens k]");
  if (options.quantise) {
    call.Require(Given(out_scale), "a quantised x needs expandedScale");
    call.Require(!Given(scale) ||
                     (scale->dtype == ACL_FLOAT && scale->rank() == 2 &&
                      (scale->dims[0] == 1 || scale->dims[0] == n_experts) &&
                      scale->dims[1] == x->dims[1]),
                 "scale must be FLOAT [experts, H] or [1, H]");
    return;
  }
  call.Require(
      !Given(scale) || (scale->dtype == ACL_FLOAT &&
                        scale->dims == Dims{x->dims[0]} && Given(out_scale)),
      "scale must be FLOAT [tokens], and comes with expandedScale");
}

void CheckInit(Phase1& call, const aclTensor* x, const aclTensor* expert,
               const aclTensor* out, const aclTensor* row_idx,
               const InitOptions& options) {
  call.Require(x->rank() == 2 && expert->rank() == 2 &&
                   expert->dims[0] == x->dims[0] && expert->dtype == ACL_INT32,
               "x must be [tokens, H] and expertIdx INT32 [tokens, k]");
  if (!call.ok()) return;
  call.Require(out->dims == Dims{expert->n_elements(), x->dims[1]} &&
                   out->dtype == (options.quantise ? ACL_INT8 : x->dtype),
               "expandedX must be [tokens k, H], INT8 when quantised, else of "
               "x's dtype");
  call.Require(row_idx->dtype == ACL_INT32 &&
                   row_idx->dims == Dims{expert->n_elements()},
               "expandedRowIdx must be INT32 [tokens k]");
}

// out[t] = sum over the choices of weight * row, each row found by `place`.
struct Gathered {
  const Array& rows;
  const Array& index;
  const Array& weights;
};

int Unpermute(const Arrays& a) {
  const Gathered g{a[0], a[1], a[2]};
  const Array& out = a[3];
  const int64_t n_tokens = out.dims[0];
  const int64_t k = n_tokens == 0 ? 0 : g.index.n_elements() / n_tokens;
  for (int64_t t = 0; t < n_tokens; ++t) {
    std::vector<double> sum(static_cast<size_t>(out.dims[1]), 0.0);
    for (int64_t j = 0; j < k; ++j) {
      const int64_t row = AtI(g.index, t * k + j);
      if (row < 0) continue;  // this choice was another rank's
      if (row >= g.rows.dims[0]) {
        return IndexOutOfRange("sorted index", row, g.rows.dims[0]);
      }
      const double weight = Given(g.weights) ? At(g.weights, t, j) : 1;
      for (size_t d = 0; d < sum.size(); ++d) {
        sum[d] += weight * At(g.rows, row, d);
      }
    }
    WriteRow(out, Place(out, t), sum);
  }
  return 0;
}

// expandedX, rowIdx, x1, x2, bias, scales, expertIdx, out. Place (token t,
// choice j) of rowIdx is j * tokens + t, or t * k + j by rows.
int Finalize(const Arrays& a, bool by_rows) {
  const Array& x = a[0];
  const Array& out = a[7];
  const int64_t n_tokens = out.dims[0];
  const int64_t k = n_tokens == 0 ? 0 : a[1].n_elements() / n_tokens;
  for (int64_t t = 0; t < n_tokens; ++t) {
    std::vector<double> sum(static_cast<size_t>(out.dims[1]), 0.0);
    for (const size_t skip : {size_t{2}, size_t{3}}) {
      for (size_t d = 0; Given(a[skip]) && d < sum.size(); ++d) {
        sum[d] += At(a[skip], t, d);
      }
    }
    for (int64_t j = 0; j < k; ++j) {
      const int64_t row = AtI(a[1], by_rows ? t * k + j : j * n_tokens + t);
      if (row < 0) continue;
      if (row >= x.dims[0]) return IndexOutOfRange("row", row, x.dims[0]);
      const double weight = Given(a[5]) ? At(a[5], t, j) : 1;
      const int64_t e = Given(a[4]) ? AtI(a[6], t, j) : 0;
      if (Given(a[4]) && (e < 0 || e >= a[4].dims[0])) {
        return IndexOutOfRange("expert", e, a[4].dims[0]);
      }
      for (size_t d = 0; d < sum.size(); ++d) {
        const double bias = Given(a[4]) ? At(a[4], e, d) : 0;
        sum[d] += weight * (At(x, row, d) + bias);
      }
    }
    WriteRow(out, Place(out, t), sum);
  }
  return 0;
}

bool IsActivation(aclDataType dtype) {
  return dtype == ACL_FLOAT16 || dtype == ACL_BF16 || dtype == ACL_FLOAT;
}

// Rows, their index of a whole number for each token, and the sum.
void CheckGather(Phase1& call, const aclTensor* rows, const aclTensor* index,
                 const aclTensor* out) {
  if (!call.ok()) return;
  call.Require(IsActivation(rows->dtype) && out->dtype == rows->dtype,
               "tokens and out must agree in dtype: FLOAT16, BF16 or FLOAT");
  call.Require(
      rows->rank() == 2 && out->rank() == 2 && rows->dims[1] == out->dims[1],
      "tokens must be [rows, H] and out [tokens, H]");
  call.Require(index->dtype == ACL_INT32 && index->rank() == 1,
               "the index must be INT32 of one axis");
  if (!call.ok()) return;
  call.Require(out->dims[0] > 0 && index->dims[0] % out->dims[0] == 0,
               "the index must have as many rows for each token");
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnMoeInitRoutingV3GetWorkspaceSize(
    const aclTensor* x, const aclTensor* expertIdx,
    const aclTensor* scaleOptional, const aclTensor* offsetOptional,
    int64_t activeNum, int64_t expertCapacity, int64_t expertNum,
    int64_t dropPadMode, int64_t expertTokensNumType, bool expertTokensNumFlag,
    int64_t quantMode, const aclIntArray* activeExpertRangeOptional,
    int64_t rowIdxType, const aclTensor* expandedXOut,
    const aclTensor* expandedRowIdxOut,
    const aclTensor* expertTokensCountOrCumsumOut,
    const aclTensor* expandedScaleOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMoeInitRoutingV3", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.In(x, "x").In(expertIdx, "expertIdx");
  call.InOptional(scaleOptional, "scale").Out(expandedXOut, "expandedX");
  call.Out(expandedRowIdxOut, "expandedRowIdx");
  call.OutOptional(expertTokensCountOrCumsumOut, "expertTokensCountOrCumsum");
  call.OutOptional(expandedScaleOut, "expandedScale");
  if (!call.ok()) return call.Finish(nullptr);
  (void)expertCapacity;  // of the modes that drop
  call.Require(!cannsim::Given(offsetOptional) && dropPadMode == 0 &&
                   (quantMode == -1 || quantMode == 1),
               "only dropPadMode 0 and quantMode -1 and 1 are simulated, "
               "without an offset");
  call.Require(expertNum >= 1 && expertTokensNumType >= 0 &&
                   expertTokensNumType <= 2 &&
                   (rowIdxType == 0 || rowIdxType == 1),
               "expertNum, expertTokensNumType or rowIdxType is out of range");
  call.Require(activeNum <= 0 || activeNum == expertIdx->n_elements(),
               "activeNum must be tokens times k (or 0): fewer rows are not "
               "simulated");
  cannsim::InitOptions options;
  options.last_expert = expertNum;
  const aclIntArray* range = activeExpertRangeOptional;
  if (range != nullptr && !range->values.empty()) {
    call.Require(range->values.size() == 2 && range->values[0] >= 0 &&
                     range->values[0] < range->values[1] &&
                     range->values[1] <= expertNum,
                 "activeExpertRange must be [first, last) below expertNum");
    if (!call.ok()) return call.Finish(nullptr);
    options.first_expert = range->values[0];
    options.last_expert = range->values[1];
  }
  options.count = expertTokensNumFlag;
  options.count_type = expertTokensNumType;
  options.quantise = quantMode == 1;
  options.scatter = rowIdxType == 1;
  cannsim::CheckInit(call, x, expertIdx, expandedXOut, expandedRowIdxOut,
                     options);
  if (!call.ok()) return call.Finish(nullptr);
  cannsim::CheckInitScale(call, x, scaleOptional, expandedScaleOut,
                          expandedRowIdxOut, options);
  const int64_t n = options.last_expert - options.first_expert;
  const aclTensor* counts = expertTokensCountOrCumsumOut;
  const cannsim::Dims shape =
      expertTokensNumType == 2 ? cannsim::Dims{n, 2} : cannsim::Dims{n};
  call.Require(!expertTokensNumFlag ||
                   (cannsim::Given(counts) && counts->dtype == ACL_INT64 &&
                    counts->dims == shape),
               "expertTokensCountOrCumsum must be INT64 [experts], or "
               "[experts, 2] for type 2");
  return call.Finish([options](const cannsim::Arrays& a) {
    return cannsim::InitRouting(a, options);
  });
}
CANNSIM_PHASE2(MoeInitRoutingV3)

aclnnStatus aclnnMoeTokenUnpermuteGetWorkspaceSize(
    const aclTensor* permutedTokens, const aclTensor* sortedIndices,
    const aclTensor* probsOptional, bool paddedMode,
    const aclIntArray* restoreShapeOptional, const aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMoeTokenUnpermute", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.In(permutedTokens, "permutedTokens").In(sortedIndices, "sortedIndices");
  call.InOptional(probsOptional, "probs").Out(out, "out");
  cannsim::CheckGather(call, permutedTokens, sortedIndices, out);
  if (!call.ok()) return call.Finish(nullptr);
  (void)restoreShapeOptional;  // of the padded mode
  call.Require(!paddedMode, "paddedMode is not simulated");
  const int64_t n_tokens = out->dims[0];
  const int64_t k = sortedIndices->dims[0] / n_tokens;
  call.Require(cannsim::Given(probsOptional)
                   ? probsOptional->dims == cannsim::Dims{n_tokens, k} &&
                         cannsim::IsActivation(probsOptional->dtype)
                   : k == 1,
               "probs must be [tokens, k]; without them k is 1");
  return call.Finish(
      [](const cannsim::Arrays& a) { return cannsim::Unpermute(a); });
}
CANNSIM_PHASE2(MoeTokenUnpermute)

aclnnStatus aclnnMoeFinalizeRoutingV2GetWorkspaceSize(
    const aclTensor* expandedX, const aclTensor* expandedRowIdx,
    const aclTensor* x1Optional, const aclTensor* x2Optional,
    const aclTensor* biasOptional, const aclTensor* scalesOptional,
    const aclTensor* expertIdxOptional, int64_t dropPadMode,
    const aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMoeFinalizeRoutingV2", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.In(expandedX, "expandedX").In(expandedRowIdx, "expandedRowIdx");
  call.InOptional(x1Optional, "x1").InOptional(x2Optional, "x2");
  call.InOptional(biasOptional, "bias").InOptional(scalesOptional, "scales");
  call.InOptional(expertIdxOptional, "expertIdx").Out(out, "out");
  cannsim::CheckGather(call, expandedX, expandedRowIdx, out);
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(dropPadMode == 0 || dropPadMode == 2,
               "dropPadMode must be 0 or 2; those that drop are not "
               "simulated");
  const cannsim::Dims choices{out->dims[0],
                              expandedRowIdx->dims[0] / out->dims[0]};
  for (const aclTensor* one : {x1Optional, x2Optional}) {
    call.Require(!cannsim::Given(one) ||
                     (one->dims == out->dims && one->dtype == out->dtype),
                 "x1 and x2 must be like out");
  }
  call.Require(!cannsim::Given(scalesOptional) ||
                   (scalesOptional->dims == choices &&
                    cannsim::IsActivation(scalesOptional->dtype)),
               "scales must be [tokens, k]");
  call.Require(
      !cannsim::Given(biasOptional) ||
          (biasOptional->rank() == 2 && biasOptional->dims[1] == out->dims[1] &&
           cannsim::Given(expertIdxOptional) &&
           expertIdxOptional->dtype == ACL_INT32 &&
           expertIdxOptional->dims == choices),
      "bias must be [experts, H] and comes with expertIdx INT32 "
      "[tokens, k]");
  const bool by_rows = dropPadMode == 2;
  return call.Finish([by_rows](const cannsim::Arrays& a) {
    return cannsim::Finalize(a, by_rows);
  });
}
CANNSIM_PHASE2(MoeFinalizeRoutingV2)

}  // extern "C"
