// SPDX-License-Identifier: Apache-2.0
// Attention: the part of FusedInferAttentionScoreV2 that clients of ours use.
// Whatever else its 46 arguments can say is refused, not passed over.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>

#include "aclnnop/aclnn_fused_infer_attention_score_v2.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

// [batch, sequence, heads, dim] of any layout as strides in that order.
struct Heads {
  Array array;
  int64_t batch = 0;
  int64_t length = 0;
  int64_t heads = 0;
  int64_t dim = 0;
  int64_t steps[4] = {0, 0, 0, 0};

  double At(int64_t b, int64_t s, int64_t h, int64_t d) const {
    return LoadF(array,
                 b * steps[0] + s * steps[1] + h * steps[2] + d * steps[3]);
  }
};

Heads HeadsOf(const Array& array, bool bnsd) {
  Heads h;
  h.array = array;
  const size_t s = bnsd ? 2 : 1;
  const size_t n = bnsd ? 1 : 2;
  h.batch = array.dims[0];
  h.length = array.dims[s];
  h.heads = array.dims[n];
  h.dim = array.dims[3];
  h.steps[0] = array.strides[0];
  h.steps[1] = array.strides[s];
  h.steps[2] = array.strides[n];
  h.steps[3] = array.strides[3];
  return h;
}

struct Attention {
  double scale = 1;
  bool bnsd = false;
};

// Scores of one query, with what the shift adds.
void Score(const Heads& q, const Heads& k, const Array& shift,
           const Attention& how, const int64_t* at, std::vector<double>* out) {
  const int64_t group = q.heads / k.heads;
  const Dims steps =
      shift.present ? StepsFor(shift, {q.batch, q.heads, q.length, k.length})
                    : Dims(4, 0);
  for (int64_t t = 0; t < k.length; ++t) {
    double dot = 0;
    for (int64_t d = 0; d < q.dim; ++d) {
      dot += q.At(at[0], at[1], at[2], d) * k.At(at[0], t, at[2] / group, d);
    }
    dot *= how.scale;
    if (shift.present) {
      dot += LoadF(shift, at[0] * steps[0] + at[2] * steps[1] +
                              at[1] * steps[2] + t * steps[3]);
    }
    (*out)[static_cast<size_t>(t)] = dot;
  }
}

// In place; a row in which everything is masked gives zeros.
void Softmax(std::vector<double>* row) {
  double largest = -HUGE_VAL;
  for (const double x : *row) largest = std::max(largest, x);
  double sum = 0;
  for (double& x : *row) {
    x = std::isinf(largest) ? 0 : std::exp(x - largest);
    sum += x;
  }
  for (double& x : *row) x = sum == 0 ? 0 : x / sum;
}

// The output of one query: values weighted by the row.
void Mix(const Heads& v, const Heads& out, const std::vector<double>& row,
         const int64_t* at) {
  const int64_t group = out.heads / v.heads;
  for (int64_t d = 0; d < v.dim; ++d) {
    double sum = 0;
    for (int64_t t = 0; t < v.length; ++t) {
      sum += row[static_cast<size_t>(t)] * v.At(at[0], t, at[2] / group, d);
    }
    StoreF(out.array,
           at[0] * out.steps[0] + at[1] * out.steps[1] + at[2] * out.steps[2] +
               d * out.steps[3],
           sum);
  }
}

int Attend(const Arrays& a, const Attention& how) {
  const Heads q = HeadsOf(a[0], how.bnsd);
  const Heads k = HeadsOf(a[1], how.bnsd);
  const Heads v = HeadsOf(a[2], how.bnsd);
  const Heads out = HeadsOf(a[4], how.bnsd);
  std::vector<double> row(static_cast<size_t>(k.length));
  const int64_t n = q.batch * q.length * q.heads;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at[3] = {i / q.heads / q.length, i / q.heads % q.length,
                           i % q.heads};
    Score(q, k, a[3], how, at, &row);
    Softmax(&row);
    Mix(v, out, row, at);
  }
  return 0;
}

// Shapes of query, key, value and output, which have 4 axes.
void CheckShapes(Phase1& call, const aclTensor* q, const aclTensor* k,
                 const aclTensor* v, const aclTensor* out, bool bnsd) {
  const size_t s = bnsd ? 2 : 1;
  const size_t n = bnsd ? 1 : 2;
  call.Require(
      q->rank() == 4 && k->rank() == 4 && v->rank() == 4 && out->rank() == 4,
      "query, key, value and attentionOut must have 4 axes");
  if (!call.ok()) return;
  Dims shape = q->dims;
  shape[3] = v->dims[3];
  const bool fits = k->dims[0] == q->dims[0] && v->dims[0] == q->dims[0] &&
                    k->dims[3] == q->dims[3] && k->dims[s] == v->dims[s] &&
                    k->dims[n] == v->dims[n] && shape == out->dims &&
                    k->dims[n] > 0 && q->dims[n] % k->dims[n] == 0;
  call.Require(fits,
               "the shapes of query, key, value and attentionOut do not "
               "fit each other");
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnFusedInferAttentionScoreV2GetWorkspaceSize(
    const aclTensor* query, const aclTensorList* key,
    const aclTensorList* value, const aclTensor* pseShiftOptional,
    const aclTensor* attenMaskOptional,
    const aclIntArray* actualSeqLengthsOptional,
    const aclIntArray* actualSeqLengthsKvOptional,
    const aclTensor* deqScale1Optional, const aclTensor* quantScale1Optional,
    const aclTensor* deqScale2Optional, const aclTensor* quantScale2Optional,
    const aclTensor* quantOffset2Optional,
    const aclTensor* antiquantScaleOptional,
    const aclTensor* antiquantOffsetOptional,
    const aclTensor* blockTableOptional,
    const aclTensor* queryPaddingSizeOptional,
    const aclTensor* kvPaddingSizeOptional,
    const aclTensor* keyAntiquantScaleOptional,
    const aclTensor* keyAntiquantOffsetOptional,
    const aclTensor* valueAntiquantScaleOptional,
    const aclTensor* valueAntiquantOffsetOptional,
    const aclTensor* keySharedPrefixOptional,
    const aclTensor* valueSharedPrefixOptional,
    const aclIntArray* actualSharedPrefixLenOptional, int64_t numHeads,
    double scaleValue, int64_t, int64_t, char* inputLayout,
    int64_t numKeyValueHeads, int64_t sparseMode, int64_t, int64_t, int64_t,
    bool softmaxLseFlag, int64_t, int64_t, const aclTensor* attentionOut,
    const aclTensor*, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnFusedInferAttentionScoreV2", workspaceSize,
                       executor);
  call.NotNull(key, "key").NotNull(value, "value");
  call.NotNull(inputLayout, "inputLayout");
  for (const void* unused :
       std::initializer_list<const void*>{attenMaskOptional,
                                          actualSeqLengthsOptional,
                                          actualSeqLengthsKvOptional,
                                          deqScale1Optional,
                                          quantScale1Optional,
                                          deqScale2Optional,
                                          quantScale2Optional,
                                          quantOffset2Optional,
                                          antiquantScaleOptional,
                                          antiquantOffsetOptional,
                                          blockTableOptional,
                                          queryPaddingSizeOptional,
                                          kvPaddingSizeOptional,
                                          keyAntiquantScaleOptional,
                                          keyAntiquantOffsetOptional,
                                          valueAntiquantScaleOptional,
                                          valueAntiquantOffsetOptional,
                                          keySharedPrefixOptional,
                                          valueSharedPrefixOptional,
                                          actualSharedPrefixLenOptional}) {
    call.Require(unused == nullptr,
                 "masks, lengths, quantisation, paging and prefixes are not "
                 "simulated: pass null");
  }
  if (!call.ok()) return call.Finish(nullptr);
  const std::string layout = inputLayout;
  call.Require((layout == "BSND" || layout == "BNSD") && sparseMode == 0 &&
                   !softmaxLseFlag && key->members.size() == 1 &&
                   value->members.size() == 1,
               "simulated are the layouts BSND and BNSD, sparseMode 0, one key "
               "and one value, no softmaxLse");
  if (!call.ok()) return call.Finish(nullptr);
  const aclTensor* k = key->members[0];
  const aclTensor* v = value->members[0];
  call.In(query, "query").In(k, "key").In(v, "value");
  call.InOptional(pseShiftOptional, "pseShift");
  call.Out(attentionOut, "attentionOut");
  cannsim::NeedsFloat(call, query, "query");
  if (!call.ok()) return call.Finish(nullptr);
  const bool bnsd = layout == "BNSD";
  cannsim::CheckShapes(call, query, k, v, attentionOut, bnsd);
  if (!call.ok()) return call.Finish(nullptr);
  const size_t n = bnsd ? 1 : 2;
  const size_t s = bnsd ? 2 : 1;
  const int64_t kv_heads = numKeyValueHeads == 0 ? numHeads : numKeyValueHeads;
  call.Require(numHeads == query->dims[n] && kv_heads == k->dims[n],
               "numHeads or numKeyValueHeads is not what the shapes say");
  cannsim::Dims shape;
  const cannsim::Dims scores = {query->dims[0], query->dims[n], query->dims[s],
                                k->dims[s]};
  call.Require(
      pseShiftOptional == nullptr ||
          (pseShiftOptional->rank() == 4 &&
           cannsim::Broadcast(scores, pseShiftOptional->dims, &shape) &&
           shape == scores),
      "pseShift must broadcast to [batch, heads, query, key]");
  const cannsim::Attention how{.scale = scaleValue, .bnsd = bnsd};
  return call.Finish(
      [how](const cannsim::Arrays& a) { return cannsim::Attend(a, how); });
}
CANNSIM_PHASE2(FusedInferAttentionScoreV2)

}  // extern "C"
