// SPDX-License-Identifier: Apache-2.0
#include "cannsim/custom/sparse_attention.h"

#include <algorithm>
#include <cmath>

#include "cannsim/custom/packed_row.h"

namespace cannsim {
namespace {

enum SharedKvArray {
  kQ,
  kOriKv,
  kCmpKv,
  kCmpIndex,
  kOriTable,
  kCmpTable,
  kSeqQ,
  kLengths,
  kSinks,
  kOut
};

constexpr int64_t kBand = 4;
constexpr int64_t kCausal = 3;

// A row of a cache, plain or packed.
int ReadKey(const Array& cache, const Array& table, int64_t batch, int64_t j,
            const SharedKvOptions& options,
            std::vector<std::vector<double>>* keys) {
  int64_t at = 0;
  const int code = FindKey(cache, table, batch, j, &at);
  if (code != 0) return code;
  keys->push_back(options.packed ? UnpackRow(cache.base + at)
                                 : ReadRow(cache, at));
  return 0;
}

// All rows that a token sees: the window from the oldest on, then compressed
// ones.
int ReadKeys(const Arrays& a, const QueryToken& token,
             const SharedKvOptions& options,
             std::vector<std::vector<double>>* keys) {
  for (int64_t p = std::max<int64_t>(token.position - options.window, 0);
       p <= token.position; ++p) {
    const int code =
        ReadKey(a[kOriKv], a[kOriTable], token.batch, p, options, keys);
    if (code != 0) return code;
  }
  if (!Given(a[kCmpKv])) return 0;
  const int64_t visible = (token.position + 1) / options.ratio;
  const bool chosen = Given(a[kCmpIndex]);
  const int64_t n = chosen ? a[kCmpIndex].dims[2] : visible;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t j = chosen ? AtI(a[kCmpIndex], token.row, int64_t{0}, i) : i;
    if (j < 0 || j >= visible) continue;  // padding, or masked
    const int code =
        ReadKey(a[kCmpKv], a[kCmpTable], token.batch, j, options, keys);
    if (code != 0) return code;
  }
  return 0;
}

// One head: the sink adds to the denominator only.
std::vector<double> Attend(const std::vector<double>& q,
                           const std::vector<std::vector<double>>& keys,
                           double scale, double sink) {
  std::vector<double> scores;
  double most = sink;
  for (const std::vector<double>& key : keys) {
    double dot = 0;
    for (size_t d = 0; d < q.size(); ++d) dot += q[d] * key[d];
    scores.push_back(dot * scale);
    most = std::max(most, scores.back());
  }
  double total = std::exp(sink - most);
  std::vector<double> out(q.size(), 0.0);
  for (size_t i = 0; i < keys.size(); ++i) {
    const double p = std::exp(scores[i] - most);
    total += p;
    for (size_t d = 0; d < out.size(); ++d) out[d] += p * keys[i][d];
  }
  for (double& x : out) x /= total;
  return out;
}

int SharedKv(const Arrays& a, const SharedKvOptions& options) {
  std::vector<int64_t> ends;
  for (int64_t b = 1; b < a[kSeqQ].dims[0]; ++b) {
    ends.push_back(AtI(a[kSeqQ], b));
  }
  std::vector<QueryToken> tokens;
  int code = ReadTokens(ends, a[kLengths], a[kQ].dims[0], &tokens);
  if (code != 0) return code;
  for (const QueryToken& token : tokens) {
    std::vector<std::vector<double>> keys;
    code = ReadKeys(a, token, options, &keys);
    if (code != 0) return code;
    for (int64_t h = 0; h < a[kQ].dims[1]; ++h) {
      WriteRow(a[kOut], Place(a[kOut], token.row, h),
               Attend(ReadRow(a[kQ], Place(a[kQ], token.row, h)), keys,
                      options.scale, At(a[kSinks], h)));
    }
  }
  return 0;
}

void CheckLists(Phase1& call, const SharedKvTensors& t) {
  for (const aclTensor* one :
       {t.ori_table, t.cu_seqlens_q, t.lengths, t.metadata}) {
    call.Require(one->dtype == ACL_INT32, "tables and lists must be INT32");
  }
  call.Require(t.lengths->rank() == 1 &&
                   t.cu_seqlens_q->dims == Dims{t.lengths->dims[0] + 1} &&
                   t.ori_table->rank() == 2 &&
                   t.ori_table->dims[0] == t.lengths->dims[0],
               "cuSeqlensQ must be [B + 1], sequsedKv [B], oriBlockTable "
               "[B, blocks]");
  if (!Given(t.cmp_kv) || !call.ok()) return;
  call.Require(Given(t.cmp_table) && t.cmp_table->dtype == ACL_INT32 &&
                   t.cmp_table->rank() == 2 &&
                   t.cmp_table->dims[0] == t.lengths->dims[0],
               "cmpKv needs cmpBlockTable INT32 [B, blocks]");
  call.Require(
      !Given(t.cmp_index) ||
          (t.cmp_index->dtype == ACL_INT32 && t.cmp_index->rank() == 3 &&
           t.cmp_index->dims[0] == t.q->dims[0] && t.cmp_index->dims[1] == 1),
      "cmpSparseIndices must be INT32 [T, 1, K]");
}

void CheckModes(Phase1& call, const SharedKvModes& modes) {
  call.Require(modes.ori_mask == kBand && modes.cmp_mask == kCausal,
               "oriMaskMode must be 4 and cmpMaskMode 3");
  call.Require(modes.left == 127 && modes.right == 0,
               "oriWinLeft must be 127 and oriWinRight 0");
  call.Require(
      IsText(modes.layout_q, "TND") && IsText(modes.layout_kv, "PA_ND"),
      "only the layouts TND and PA_ND are simulated");
  call.Require(!modes.return_lse, "returnLse is not simulated");
}

}  // namespace

aclnnStatus FinishSharedKv(Phase1& call, const SharedKvTensors& t,
                           const SharedKvModes& modes,
                           const SharedKvOptions& options) {
  call.In(t.q, "q").In(t.ori_kv, "oriKv").InOptional(t.cmp_kv, "cmpKv");
  call.InOptional(t.cmp_index, "cmpSparseIndices");
  call.In(t.ori_table, "oriBlockTable");
  call.InOptional(t.cmp_table, "cmpBlockTable");
  call.In(t.cu_seqlens_q, "cuSeqlensQ").In(t.lengths, "sequsedKv");
  call.In(t.sinks, "sinks").Out(t.out, "out");
  call.NotNull(t.metadata, "metadata");
  if (!call.ok()) return call.Finish(nullptr);
  CheckModes(call, modes);
  const int64_t width = options.packed ? kPackedBytes : kRowDim;
  call.Require(t.q->rank() == 3 && t.q->dims[2] == kRowDim &&
                   t.out->dims == t.q->dims && t.out->dtype == t.q->dtype,
               "q must be [T, heads, 512], out alike");
  call.Require(IsPaged(t.ori_kv, width) &&
                   (!Given(t.cmp_kv) || (IsPaged(t.cmp_kv, width) &&
                                         t.cmp_kv->dtype == t.ori_kv->dtype)),
               "oriKv and cmpKv must be [blocks, block, 1, row], the block 16 "
               "to 1024 in steps of 16");
  call.Require(
      !options.packed || (t.ori_kv->strides.back() == 1 &&
                          (!Given(t.cmp_kv) || t.cmp_kv->strides.back() == 1)),
      "packed rows must be whole");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(
      t.sinks->dtype == ACL_FLOAT && t.sinks->dims == Dims{t.q->dims[1]},
      "sinks must be FLOAT [heads]");
  CheckLists(call, t);
  return call.Finish(
      [options](const Arrays& a) { return SharedKv(a, options); });
}

}  // namespace cannsim
