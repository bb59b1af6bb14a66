// SPDX-License-Identifier: Apache-2.0
// The two operators of sparse attention with shared keys and values: plain rows
// (A2, A3) and packed FP8 rows (A5), and the plans for their cores.
#include "aclnnop/aclnn_kv_quant_sparse_attn_sharedkv.h"
#include "aclnnop/aclnn_kv_quant_sparse_attn_sharedkv_metadata.h"
#include "aclnnop/aclnn_sparse_attn_sharedkv.h"
#include "aclnnop/aclnn_sparse_attn_sharedkv_metadata.h"
#include "cannsim/custom/sparse_attention.h"

namespace cannsim {
namespace {

// What both metadata operators say of the heads and layouts.
struct PlanArgs {
  int64_t n_heads;
  int64_t n_kv_heads;
  int64_t head_dim;
  int64_t batch;
  const char* layout_q;
  const char* layout_kv;
};

void CheckPlan(Phase1& call, const PlanArgs& args) {
  call.NotNull(args.layout_q, "layoutQ").NotNull(args.layout_kv, "layoutKv");
  call.Require(args.n_heads >= 1 && args.n_kv_heads == 1 &&
                   args.head_dim == 512 && args.batch >= 0,
               "there must be 1 key head, and heads of 512");
}

}  // namespace
}  // namespace cannsim

extern "C" {

// oriSparseIndices, cuSeqlensOriKv, cuSeqlensCmpKv and sequsedQ have no
// meaning for paged caches; the real one passes over them too.
aclnnStatus aclnnSparseAttnSharedkvGetWorkspaceSize(
    const aclTensor* q, const aclTensor* oriKv, const aclTensor* cmpKv,
    const aclTensor* oriSparseIndices, const aclTensor* cmpSparseIndices,
    const aclTensor* oriBlockTable, const aclTensor* cmpBlockTable,
    const aclTensor* cuSeqlensQ, const aclTensor* cuSeqlensOriKv,
    const aclTensor* cuSeqlensCmpKv, const aclTensor* sequsedQ,
    const aclTensor* sequsedKv, const aclTensor* sinks,
    const aclTensor* metadata, double softmaxScale, int64_t cmpRatio,
    int64_t oriMaskMode, int64_t cmpMaskMode, int64_t oriKvStride,
    int64_t cmpKvStride, int64_t oriWinLeft, int64_t oriWinRight, char* layoutQ,
    char* layoutKv, bool returnLse, const aclTensor* out, const aclTensor* lse,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnSparseAttnSharedkv", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA2, cannsim::Generation::kA3});
  (void)oriSparseIndices, (void)cuSeqlensOriKv, (void)cuSeqlensCmpKv;
  (void)sequsedQ, (void)lse;
  call.NotNull(q, "q").NotNull(oriKv, "oriKv");
  if (!call.ok()) return call.Finish(nullptr);
  const bool compressed = cannsim::Given(cmpKv);
  call.Require((q->dtype == ACL_BF16 || q->dtype == ACL_FLOAT16) &&
                   oriKv->dtype == q->dtype,
               "q and the caches must agree in dtype: BF16 or FLOAT16");
  call.Require(q->rank() == 3 && q->dims[1] == 64, "there must be 64 heads");
  call.Require(!compressed || cmpRatio == 4 || cmpRatio == 128,
               "cmpRatio must be 4 or 128");
  call.Require(
      !cannsim::Given(cmpSparseIndices) ||
          (cmpSparseIndices->rank() == 3 && cmpSparseIndices->dims[2] == 512),
      "cmpSparseIndices must have 512 places");
  const aclTensor ori = cannsim::WithFirstStride(*oriKv, oriKvStride);
  const aclTensor cmp =
      compressed ? cannsim::WithFirstStride(*cmpKv, cmpKvStride) : aclTensor();
  return cannsim::FinishSharedKv(
      call,
      {q, &ori, compressed ? &cmp : nullptr, cmpSparseIndices, oriBlockTable,
       cmpBlockTable, cuSeqlensQ, sequsedKv, sinks, metadata, out},
      {oriMaskMode, cmpMaskMode, oriWinLeft, oriWinRight, layoutQ, layoutKv,
       returnLse},
      {softmaxScale, cmpRatio, oriWinLeft, false});
}
CANNSIM_PHASE2(SparseAttnSharedkv)

aclnnStatus aclnnKvQuantSparseAttnSharedkvGetWorkspaceSize(
    const aclTensor* q, const aclTensor* oriKv, const aclTensor* cmpKv,
    const aclTensor* oriSparseIndices, const aclTensor* cmpSparseIndices,
    const aclTensor* oriBlockTable, const aclTensor* cmpBlockTable,
    const aclTensor* cuSeqlensQ, const aclTensor* cuSeqlensOriKv,
    const aclTensor* cuSeqlensCmpKv, const aclTensor* sequsedQ,
    const aclTensor* sequsedKv, const aclTensor* sinks,
    const aclTensor* metadata, int64_t kvQuantMode, int64_t tileSize,
    int64_t ropeHeadDim, double softmaxScale, int64_t cmpRatio,
    int64_t oriMaskMode, int64_t cmpMaskMode, int64_t oriWinLeft,
    int64_t oriWinRight, char* layoutQ, char* layoutKv, int64_t oriKvStride0,
    int64_t cmpKvStride0, bool returnLse, const aclTensor* out,
    const aclTensor* lse, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnKvQuantSparseAttnSharedkv", workspaceSize,
                       executor);
  call.OnlyOn({cannsim::Generation::kA5});
  (void)oriSparseIndices, (void)cuSeqlensOriKv, (void)cuSeqlensCmpKv;
  (void)sequsedQ, (void)lse;
  call.NotNull(q, "q").NotNull(oriKv, "oriKv");
  if (!call.ok()) return call.Finish(nullptr);
  const bool compressed = cannsim::Given(cmpKv);
  call.Require(kvQuantMode == 1 && tileSize == 64 && ropeHeadDim == 64,
               "kvQuantMode must be 1, tileSize and ropeHeadDim 64");
  call.Require(q->dtype == ACL_BF16 && oriKv->dtype == ACL_FLOAT8_E4M3FN,
               "q must be BF16 and the caches FLOAT8_E4M3FN");
  call.Require(q->rank() == 3 && (q->dims[1] == 64 || q->dims[1] == 128),
               "there must be 64 or 128 heads");
  call.Require(!compressed || cmpRatio == 1 || cmpRatio == 4 || cmpRatio == 128,
               "cmpRatio must be 1, 4 or 128");
  call.Require(!cannsim::Given(cmpSparseIndices) ||
                   (cmpSparseIndices->rank() == 3 &&
                    (cmpSparseIndices->dims[2] == 512 ||
                     cmpSparseIndices->dims[2] == 1024)),
               "cmpSparseIndices must have 512 or 1024 places");
  const aclTensor ori = cannsim::WithFirstStride(*oriKv, oriKvStride0);
  const aclTensor cmp =
      compressed ? cannsim::WithFirstStride(*cmpKv, cmpKvStride0) : aclTensor();
  return cannsim::FinishSharedKv(
      call,
      {q, &ori, compressed ? &cmp : nullptr, cmpSparseIndices, oriBlockTable,
       cmpBlockTable, cuSeqlensQ, sequsedKv, sinks, metadata, out},
      {oriMaskMode, cmpMaskMode, oriWinLeft, oriWinRight, layoutQ, layoutKv,
       returnLse},
      {softmaxScale, cmpRatio, oriWinLeft, true});
}
CANNSIM_PHASE2(KvQuantSparseAttnSharedkv)

aclnnStatus aclnnSparseAttnSharedkvMetadataGetWorkspaceSize(
    const aclTensor* cuSeqlensQ, const aclTensor* cuSeqlensOri,
    const aclTensor* cuSeqlensCmp, const aclTensor* sequsedQ,
    const aclTensor* sequsedKv, int64_t numHeadsQ, int64_t numHeadsKv,
    int64_t headDim, int64_t batchSize, int64_t maxSeqQ, int64_t maxSeqKv,
    int64_t oriTopk, int64_t cmpTopk, int64_t cmpRatio, int64_t oriMaskMode,
    int64_t cmpMaskMode, int64_t oriWinLeft, int64_t oriWinRight, char* layoutQ,
    char* layoutKv, bool hasOriKv, bool hasCmpKv, const aclTensor* metadata,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnSparseAttnSharedkvMetadata", workspaceSize,
                       executor);
  call.OnlyOn({cannsim::Generation::kA2, cannsim::Generation::kA3});
  (void)cuSeqlensQ, (void)cuSeqlensOri, (void)cuSeqlensCmp, (void)sequsedQ;
  (void)sequsedKv, (void)maxSeqQ, (void)maxSeqKv, (void)oriTopk, (void)cmpTopk;
  (void)cmpRatio, (void)oriMaskMode, (void)cmpMaskMode, (void)oriWinLeft;
  (void)oriWinRight, (void)hasOriKv, (void)hasCmpKv;
  cannsim::CheckPlan(
      call, {numHeadsQ, numHeadsKv, headDim, batchSize, layoutQ, layoutKv});
  return cannsim::FinishPlan(call, metadata);
}
CANNSIM_PHASE2(SparseAttnSharedkvMetadata)

aclnnStatus aclnnKvQuantSparseAttnSharedkvMetadataGetWorkspaceSize(
    const aclTensor* cuSeqlensQ, const aclTensor* cuSeqlensOri,
    const aclTensor* cuSeqlensCmp, const aclTensor* sequsedQ,
    const aclTensor* sequsedKv, int64_t numHeadsQ, int64_t numHeadsKv,
    int64_t headDim, int64_t batchSize, int64_t maxSeqQ, int64_t maxSeqKv,
    int64_t oriTopk, int64_t cmpTopk, int64_t kvQuantMode, int64_t tileSize,
    int64_t ropeHeadDim, int64_t cmpRatio, int64_t oriMaskMode,
    int64_t cmpMaskMode, int64_t oriWinLeft, int64_t oriWinRight, char* layoutQ,
    char* layoutKv, bool hasOriKv, bool hasCmpKv, const aclTensor* metadata,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnKvQuantSparseAttnSharedkvMetadata", workspaceSize,
                       executor);
  call.OnlyOn({cannsim::Generation::kA5});
  (void)cuSeqlensQ, (void)cuSeqlensOri, (void)cuSeqlensCmp, (void)sequsedQ;
  (void)sequsedKv, (void)maxSeqQ, (void)maxSeqKv, (void)oriTopk, (void)cmpTopk;
  (void)kvQuantMode, (void)tileSize, (void)ropeHeadDim, (void)cmpRatio;
  (void)oriMaskMode, (void)cmpMaskMode, (void)oriWinLeft, (void)oriWinRight;
  (void)hasOriKv, (void)hasCmpKv;
  cannsim::CheckPlan(
      call, {numHeadsQ, numHeadsKv, headDim, batchSize, layoutQ, layoutKv});
  return cannsim::FinishPlan(call, metadata);
}
CANNSIM_PHASE2(KvQuantSparseAttnSharedkvMetadata)

}  // extern "C"
