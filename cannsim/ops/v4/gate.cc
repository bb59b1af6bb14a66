// SPDX-License-Identifier: Apache-2.0
// Choosing experts. Selection is by score plus bias, the lowest id first among
// equals; weights come from the scores alone.
#include "cannsim/ops/v4/gate.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "aclnnop/aclnn_moe_gating_top_k.h"
#include "aclnnop/aclnn_moe_gating_top_k_v2.h"

namespace cannsim {
namespace {

double ScoreOf(double x, int64_t norm) {
  if (norm == kGateSigmoid) return 1 / (1 + std::exp(-x));
  return std::sqrt(x > 30 ? x : std::log1p(std::exp(x)));
}

std::vector<double> ScoresOf(const std::vector<double>& logits, int64_t norm) {
  std::vector<double> scores;
  if (norm != kGateSoftmax) {
    for (const double x : logits) scores.push_back(ScoreOf(x, norm));
    return scores;
  }
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double x : logits) {
    scores.push_back(std::exp(x - largest));
    sum += scores.back();
  }
  for (double& s : scores) s /= sum;
  return scores;
}

// The n best of `values`, best first.
std::vector<size_t> Best(const std::vector<double>& values, size_t n) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return IsGreater(values[a], values[b]);
  });
  order.resize(std::min(n, order.size()));
  return order;
}

// Everything outside of the best groups becomes -inf.
void KeepGroups(const GateOptions& options, std::vector<double>* values) {
  if (options.n_groups <= 1) return;
  const size_t each = values->size() / static_cast<size_t>(options.n_groups);
  std::vector<double> groups;
  for (size_t first = 0; first < values->size(); first += each) {
    std::vector<double> group(
        values->begin() + static_cast<long>(first),
        values->begin() + static_cast<long>(first + each));
    std::sort(group.begin(), group.end(), IsGreater);
    groups.push_back(group[0] + (options.group_by_two ? group[1] : 0));
  }
  std::vector<bool> kept(groups.size(), false);
  for (const size_t g :
       Best(groups, static_cast<size_t>(options.n_groups_kept))) {
    kept[g] = true;
  }
  for (size_t i = 0; i < values->size(); ++i) {
    if (!kept[i / each]) (*values)[i] = -HUGE_VAL;
  }
}

// Which experts token `t` has, from the table where there is one.
int Choose(const Arrays& a, size_t t, const std::vector<double>& scores,
           const GateOptions& options, std::vector<size_t>* chosen) {
  const Array& ids = a[2];
  const Array& table = a[3];
  if (!Given(ids)) {
    std::vector<double> values = scores;
    for (size_t e = 0; Given(a[1]) && e < values.size(); ++e) {
      values[e] += At(a[1], e);
    }
    KeepGroups(options, &values);
    *chosen = Best(values, static_cast<size_t>(options.k));
    return 0;
  }
  const int64_t token = AtI(ids, t);
  if (token < 0 || token >= table.dims[0]) {
    return IndexOutOfRange("token id", token, table.dims[0]);
  }
  chosen->clear();
  for (int64_t i = 0; i < options.k; ++i) {
    const int64_t expert = AtI(table, token, i);
    const auto n = static_cast<int64_t>(scores.size());
    if (expert < 0 || expert >= n) {
      return IndexOutOfRange("expert", expert, n);
    }
    chosen->push_back(static_cast<size_t>(expert));
  }
  return 0;
}

int Gate(const Arrays& a, const GateOptions& options) {
  const auto rows = RowsOf(a[0], 1);
  for (size_t t = 0; t < rows.size(); ++t) {
    const std::vector<double> scores =
        ScoresOf(ReadRow(a[0], rows[t]), options.norm);
    std::vector<size_t> chosen;
    const int code = Choose(a, t, scores, options, &chosen);
    if (code != 0) return code;
    double sum = options.eps;
    for (const size_t e : chosen) sum += scores[e];
    if (options.norm == kGateSoftmax) sum = 1;
    for (size_t i = 0; i < chosen.size(); ++i) {
      Put(a[4], scores[chosen[i]] / sum * options.scale, t, i);
      StoreI(a[5], Place(a[5], t, i), static_cast<int64_t>(chosen[i]));
    }
    for (size_t e = 0; options.scores_out && e < scores.size(); ++e) {
      Put(a[6], scores[e], t, e);
    }
  }
  return 0;
}

void CheckShapes(Phase1& call, const GateTensors& t,
                 const GateOptions& options) {
  call.Require(t.x->rank() == 2, "x must be [tokens, experts]");
  if (!call.ok()) return;
  const int64_t n_tokens = t.x->dims[0];
  const int64_t n_experts = t.x->dims[1];
  call.Require(n_experts >= 1 && n_experts <= 2048,
               "there must be 1 to 2048 experts");
  call.Require(options.k >= 1 && options.k <= n_experts, "k is out of range");
  call.Require(
      t.y->dims == Dims{n_tokens, options.k} && t.index->dims == t.y->dims,
      "y and expertIdx must be [tokens, k]");
  call.Require(!Given(t.bias) || t.bias->dims == Dims{n_experts},
               "bias must be [experts]");
  call.Require(Given(t.ids) == Given(t.table),
               "inputIds and tid2eid go together");
  if (!call.ok()) return;
  call.Require(
      !Given(t.ids) || (t.ids->dims == Dims{n_tokens} && t.table->rank() == 2 &&
                        t.table->dims[1] == options.k),
      "inputIds must be [tokens] and tid2eid [vocabulary, k]");
  call.Require(
      !options.scores_out || (Given(t.out) && t.out->dims == t.x->dims &&
                              t.out->dtype == ACL_FLOAT),
      "out must be FLOAT [tokens, experts] when outFlag is set");
  const int64_t groups = options.n_groups;
  call.Require(groups >= 1 && n_experts % groups == 0 &&
                   options.n_groups_kept >= 1 &&
                   options.n_groups_kept <= groups &&
                   options.k <= n_experts / groups * options.n_groups_kept &&
                   (groups == 1 || n_experts / groups >= 2),
               "kGroup and groupCount do not fit the experts and k");
}

}  // namespace

aclnnStatus FinishGate(Phase1& call, const GateTensors& t,
                       const GateOptions& options) {
  call.In(t.x, "x").InOptional(t.bias, "bias");
  call.InOptional(t.ids, "inputIds").InOptional(t.table, "tid2eid");
  call.Out(t.y, "y").Out(t.index, "expertIdx").OutOptional(t.out, "out");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(t.x->dtype == ACL_FLOAT16 || t.x->dtype == ACL_BF16 ||
                   t.x->dtype == ACL_FLOAT,
               "x must be FLOAT16, BF16 or FLOAT");
  call.Require(t.y->dtype == t.x->dtype &&
                   (!Given(t.bias) || t.bias->dtype == t.x->dtype),
               "bias and y must be of x's dtype");
  call.Require(t.index->dtype == ACL_INT32, "expertIdx must be INT32");
  for (const aclTensor* t_ids : {t.ids, t.table}) {
    if (Given(t_ids)) NeedsIndex(call, t_ids, "inputIds and tid2eid");
  }
  if (call.ok()) CheckShapes(call, t, options);
  return call.Finish([options](const Arrays& a) { return Gate(a, options); });
}

}  // namespace cannsim

extern "C" {

aclnnStatus aclnnMoeGatingTopKGetWorkspaceSize(
    const aclTensor* x, const aclTensor* biasOptional, int64_t k,
    int64_t kGroup, int64_t groupCount, int64_t groupSelectMode, int64_t renorm,
    int64_t normType, bool outFlag, double routedScalingFactor, double eps,
    const aclTensor* y, const aclTensor* expertIdx, const aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMoeGatingTopK", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.Require(renorm == 0, "renorm must be 0");
  call.Require(normType == 0 || normType == 1,
               "normType must be 0 (softmax) or 1 (sigmoid)");
  call.Require(groupSelectMode == 0 || groupSelectMode == 1,
               "groupSelectMode must be 0 or 1");
  return cannsim::FinishGate(
      call, {x, biasOptional, nullptr, nullptr, y, expertIdx, out},
      {k, kGroup, groupCount, groupSelectMode == 1, normType, outFlag,
       routedScalingFactor, eps});
}
CANNSIM_PHASE2(MoeGatingTopK)

aclnnStatus aclnnMoeGatingTopKV2GetWorkspaceSize(
    const aclTensor* x, const aclTensor* biasOptional,
    const aclTensor* inputIdsOptional, const aclTensor* tid2eidOptional,
    int64_t k, int64_t kGroup, int64_t groupCount, int64_t groupSelectMode,
    int64_t renorm, int64_t normType, bool outFlag, double routedScalingFactor,
    double eps, const aclTensor* y, const aclTensor* expertIdx,
    const aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMoeGatingTopKV2", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.Require(renorm == 0, "renorm must be 0");
  call.Require(normType >= 0 && normType <= 2, "normType must be 0, 1 or 2");
  call.Require(groupSelectMode == 0 || groupSelectMode == 1,
               "groupSelectMode must be 0 or 1");
  return cannsim::FinishGate(
      call,
      {x, biasOptional, inputIdsOptional, tid2eidOptional, y, expertIdx, out},
      {k, kGroup, groupCount, groupSelectMode == 1, normType, outFlag,
       routedScalingFactor, eps});
}
CANNSIM_PHASE2(MoeGatingTopKV2)

}  // extern "C"
