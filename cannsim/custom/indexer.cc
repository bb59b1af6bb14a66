// SPDX-License-Identifier: Apache-2.0
// The lightning indexer with quantised queries and keys, as vllm-ascend names
// it: INT8 with FLOAT16 scales on A2 and A3, E4M3 with FLOAT scales on A5.
//
// score(j) = sum over heads of weight * relu(query scale * key scale * q k).
// The best `sparseCount` visible keys, best first, the lowest index first among
// equals; -1 where there are no more.
#include <algorithm>
#include <limits>
#include <numeric>

#include "aclnnop/aclnn_vllm_quant_lightning_indexer.h"
#include "aclnnop/aclnn_vllm_quant_lightning_indexer_metadata.h"
#include "cannsim/custom/paged.h"

namespace cannsim {
namespace {

constexpr int64_t kHeads = 64;
constexpr int64_t kDim = 128;
constexpr int64_t kCausal = 3;

// query, key, weights, queryScale, keyScale, seqQ, seqK, table, indices.
enum IndexerArray {
  kQuery,
  kKey,
  kWeights,
  kQueryScale,
  kKeyScale,
  kSeqQ,
  kSeqK,
  kTable,
  kIndices
};

struct IndexerOptions {
  int64_t ratio = 1;
  bool causal = false;
};

// Weight and scale of a head together; both are 0 or more only by chance.
struct Head {
  std::vector<double> query;
  double scale = 0;
  double weight = 0;
};

std::vector<Head> HeadsOf(const Arrays& a, int64_t row) {
  std::vector<Head> heads;
  for (int64_t h = 0; h < kHeads; ++h) {
    heads.push_back({ReadRow(a[kQuery], Place(a[kQuery], row, h)),
                     At(a[kQueryScale], row, h), At(a[kWeights], row, h)});
  }
  return heads;
}

int ScoreKeys(const Arrays& a, const QueryToken& token,
              const IndexerOptions& options, std::vector<double>* scores) {
  const int64_t seen = options.causal ? token.position + 1 : token.length;
  const std::vector<Head> heads = HeadsOf(a, token.row);
  for (int64_t j = 0; j < seen / options.ratio; ++j) {
    int64_t at = 0;
    int64_t scale_at = 0;
    int code = FindKey(a[kKey], a[kTable], token.batch, j, &at);
    if (code == 0) {
      code = FindKey(a[kKeyScale], a[kTable], token.batch, j, &scale_at);
    }
    if (code != 0) return code;
    const std::vector<double> key = ReadRow(a[kKey], at);
    const double key_scale = LoadF(a[kKeyScale], scale_at);
    double score = 0;
    for (const Head& head : heads) {
      const double dot =
          std::inner_product(key.begin(), key.end(), head.query.begin(), 0.0);
      score += head.weight * std::max(dot * head.scale * key_scale, 0.0);
    }
    scores->push_back(score);
  }
  return 0;
}

int SelectKeys(const Arrays& a, const IndexerOptions& options) {
  std::vector<int64_t> ends;
  for (int64_t b = 0; b < a[kSeqQ].dims[0]; ++b) {
    ends.push_back(AtI(a[kSeqQ], b));
  }
  std::vector<QueryToken> tokens;
  int code = ReadTokens(ends, a[kSeqK], a[kQuery].dims[0], &tokens);
  if (code != 0) return code;
  const Array& out = a[kIndices];
  for (const QueryToken& token : tokens) {
    std::vector<double> scores;
    code = ScoreKeys(a, token, options, &scores);
    if (code != 0) return code;
    std::vector<size_t> order(scores.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
      return IsGreater(scores[x], scores[y]);
    });
    for (int64_t i = 0; i < out.dims[2]; ++i) {
      const auto k = static_cast<size_t>(i);
      StoreI(out, Place(out, token.row, int64_t{0}, i),
             k < order.size() ? static_cast<int64_t>(order[k]) : -1);
    }
  }
  return 0;
}

struct IndexerTensors {
  const aclTensor* query;
  const aclTensor* key;
  const aclTensor* weights;
  const aclTensor* query_scale;
  const aclTensor* key_scale;
  const aclTensor* seq_q;
  const aclTensor* seq_k;
  const aclTensor* table;
  const aclTensor* indices;
};

void CheckIndexer(Phase1& call, const IndexerTensors& t, int64_t count,
                  int64_t ratio) {
  const bool a5 = cannsim_profile()->generation == Generation::kA5;
  const aclDataType codes = a5 ? ACL_FLOAT8_E4M3FN : ACL_INT8;
  const aclDataType scales = a5 ? ACL_FLOAT : ACL_FLOAT16;
  call.Require(t.query->dtype == codes && t.key->dtype == codes,
               a5 ? "query and key must be FLOAT8_E4M3FN"
                  : "query and key must be INT8");
  call.Require(t.weights->dtype == scales && t.query_scale->dtype == scales &&
                   t.key_scale->dtype == scales,
               a5 ? "weights and scales must be FLOAT"
                  : "weights and scales must be FLOAT16");
  call.Require(
      a5 ? count == 512 : count >= 1 && count <= 2048,
      a5 ? "sparseCount must be 512" : "sparseCount must be 1 to 2048");
  call.Require(a5 ? ratio == 1 || ratio == 4 || ratio == 128
                  : ratio >= 1 && ratio <= 128 && (ratio & (ratio - 1)) == 0,
               a5 ? "cmpRatio must be 1, 4 or 128"
                  : "cmpRatio must be a power of two up to 128");
  const int64_t n = t.query->dims.empty() ? 0 : t.query->dims[0];
  call.Require(t.query->dims == Dims{n, kHeads, kDim} &&
                   t.weights->dims == Dims{n, kHeads} &&
                   t.query_scale->dims == t.weights->dims,
               "query must be [T, 64, 128], weights and queryScale [T, 64]");
  call.Require(IsPaged(t.key, kDim) && t.key_scale->rank() == 3 &&
                   t.key_scale->dims == Leading(t.key->dims, 1),
               "key must be [blocks, block, 1, 128], the block 16 to 1024 in "
               "steps of 16, keyScale [blocks, block, 1]");
  call.Require(t.seq_q->dtype == ACL_INT32 && t.seq_k->dtype == ACL_INT32 &&
                   t.table->dtype == ACL_INT32 && t.seq_q->rank() == 1 &&
                   t.seq_k->dims == t.seq_q->dims && t.table->rank() == 2 &&
                   t.table->dims[0] == t.seq_q->dims[0],
               "lengths must be INT32 [B], blockTable INT32 [B, blocks]");
  call.Require(
      t.indices->dtype == ACL_INT32 && t.indices->dims == Dims{n, 1, count},
      "sparseIndices must be INT32 [T, 1, sparseCount]");
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnVllmQuantLightningIndexerGetWorkspaceSize(
    const aclTensor* query, const aclTensor* key, const aclTensor* weights,
    const aclTensor* queryScale, const aclTensor* keyScale,
    const aclTensor* actualSeqQOptional, const aclTensor* actualSeqKOptional,
    const aclTensor* blockTableOptional, const aclTensor* metadataOptional,
    int64_t queryQuantMode, int64_t keyQuantMode, char* layoutQuery,
    char* layoutKey, int64_t sparseCount, int64_t sparseMode, int64_t preTokens,
    int64_t nextTokens, int64_t cmpRatio, bool returnValue, int64_t keyStride,
    int64_t keyScaleStride, const aclTensor* sparseIndices,
    const aclTensor* sparseValues, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnVllmQuantLightningIndexer", workspaceSize,
                       executor);
  call.OnlyOn(cannsim::kNpus);
  (void)metadataOptional;  // a plan for the cores
  (void)sparseValues;      // returnValue is false
  call.NotNull(key, "key").NotNull(keyScale, "keyScale");
  if (!call.ok()) return call.Finish(nullptr);
  const aclTensor keys = cannsim::WithFirstStride(*key, keyStride);
  const aclTensor scales = cannsim::WithFirstStride(*keyScale, keyScaleStride);
  call.In(query, "query").In(&keys, "key").In(weights, "weights");
  call.In(queryScale, "queryScale").In(&scales, "keyScale");
  // Optional by name: without them there is no layout that is simulated.
  call.In(actualSeqQOptional, "actualSeqQ")
      .In(actualSeqKOptional, "actualSeqK");
  call.In(blockTableOptional, "blockTable").Out(sparseIndices, "sparseIndices");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(cannsim::IsText(layoutQuery, "TND") &&
                   cannsim::IsText(layoutKey, "PA_BSND"),
               "only the layouts TND and PA_BSND are simulated");
  call.Require(queryQuantMode == 0 && keyQuantMode == 0,
               "the quant modes must be 0");
  call.Require(sparseMode == 0 || sparseMode == cannsim::kCausal,
               "sparseMode must be 0 or 3");
  const int64_t all = std::numeric_limits<int64_t>::max();
  call.Require(preTokens == all && nextTokens == all,
               "preTokens and nextTokens must be the largest INT64");
  call.Require(!returnValue, "returnValue must be false");
  cannsim::CheckIndexer(
      call,
      {query, &keys, weights, queryScale, &scales, actualSeqQOptional,
       actualSeqKOptional, blockTableOptional, sparseIndices},
      sparseCount, cmpRatio);
  const cannsim::IndexerOptions options{cmpRatio,
                                        sparseMode == cannsim::kCausal};
  return call.Finish([options](const cannsim::Arrays& a) {
    return cannsim::SelectKeys(a, options);
  });
}
CANNSIM_PHASE2(VllmQuantLightningIndexer)

aclnnStatus aclnnVllmQuantLightningIndexerMetadataGetWorkspaceSize(
    const aclTensor* actualSeqQ, const aclTensor* actualSeqK, int64_t numHeadsQ,
    int64_t numHeadsK, int64_t headDim, int64_t queryQuantMode,
    int64_t keyQuantMode, int64_t batchSize, int64_t maxSeqQ, int64_t maxSeqK,
    char* layoutQuery, char* layoutKey, int64_t sparseCount, int64_t sparseMode,
    int64_t preTokens, int64_t nextTokens, int64_t cmpRatio,
    const aclTensor* metadata, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnVllmQuantLightningIndexerMetadata", workspaceSize,
                       executor);
  call.OnlyOn(cannsim::kNpus);
  (void)preTokens, (void)nextTokens, (void)sparseCount, (void)sparseMode;
  (void)cmpRatio, (void)maxSeqQ, (void)maxSeqK, (void)queryQuantMode;
  (void)keyQuantMode;
  call.InOptional(actualSeqQ, "actualSeqQ");
  call.InOptional(actualSeqK, "actualSeqK");
  call.NotNull(layoutQuery, "layoutQuery").NotNull(layoutKey, "layoutKey");
  call.Require(numHeadsQ == cannsim::kHeads && numHeadsK == 1 &&
                   headDim == cannsim::kDim && batchSize >= 0,
               "there must be 64 query heads and 1 key head of 128");
  return cannsim::FinishPlan(call, metadata);
}
CANNSIM_PHASE2(VllmQuantLightningIndexerMetadata)

}  // extern "C"
