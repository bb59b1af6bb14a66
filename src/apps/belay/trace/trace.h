// SPDX-License-Identifier: Apache-2.0
// Runs a prompt and a few decode steps and keeps every stage under the names of
// the golden files.
#ifndef BELAY_APPS_BELAY_TRACE_TRACE_H_
#define BELAY_APPS_BELAY_TRACE_TRACE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/belay/trace/recorder.h"
#include "base/error.h"
#include "model/weights.h"
#include "ops/backend.h"
#include "ops/communicator.h"
#include "spec/config.h"
#include "spec/rank.h"

namespace belay::trace {

// A golden tensor by its name without prefix; empty when there is none.
using GoldenLookup =
    std::function<StatusOr<ConstTensorView>(const std::string& name)>;

struct TraceOptions {
  std::vector<int32_t> prompt;
  int32_t n_decode = 0;
  // n_decode + 1 ids: feed[0] follows the prompt, feed[k + 1] follows decode
  // step k. Empty: the model's own greedy tokens.
  std::vector<int32_t> feed;
  int64_t chunk = 0;       // tokens a prefill step; 0 = the whole prompt
  GoldenLookup replay;     // expert ids and index selections; null = none
  ConstTensorView inject;  // [n_prompt, hc, dim]; empty = none
  int inject_layer = 0;
  // Asked after every step, with the decode steps done; false ends the trace
  // with SYS-004. Null = go on.
  std::function<bool(int32_t n_decoded)> keep_going;
};

struct TraceParts {
  const spec::ModelConfig* config = nullptr;
  const model::ModelWeights* weights = nullptr;
  ops::Backend* backend = nullptr;
  ops::Communicator* communicator = nullptr;
  spec::Rank rank;
};

// Tensors of the result, for N prompt tokens, K decode steps, L layers, V
// vocabulary: ids [N] i64, logits_all [N, V] f32, greedy_tokens [K + 1] i64,
// decode_logits [K, V], hidden [L + 1, N, hc, dim], experts [L, N, k] i32,
// gate_weights [L, N, k], gate_margin [L, N], index_scores.L [N, N / 4],
// index_topk.L [N, min(topk, N / 4)], index_margin.L [N], decode_experts [K, L,
// k], decode_gate_margin [K, L], decode_index_topk [K, L, topk] (-2 = no
// place), and with an MTP head mtp_logits [V], mtp_logits_all [N, V],
// mtp_decode_logits [K, V]. hidden and the index_* and gate_* of the prompt
// need chunk == 0. Errors: ARG-001 (replay or inject of a prompt in chunks),
// ARG-003, ARG-004, ARG-005 (feed of another length),
// TRACE-001 (a replay or inject tensor is missing or does not fit), ENG-001.
StatusOr<Tensors> RunTrace(const TraceParts& parts,
                           const TraceOptions& options);

}  // namespace belay::trace

#endif  // BELAY_APPS_BELAY_TRACE_TRACE_H_
