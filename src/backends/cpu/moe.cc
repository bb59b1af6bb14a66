// SPDX-License-Identifier: Apache-2.0
// Route, RoutedExperts, SharedExpert.
#include <algorithm>
#include <cmath>

#include "backends/cpu/backend.h"
#include "kernels/gate.h"
#include "kernels/quantize.h"
#include "kernels/vector.h"

namespace belay::cpu {

// Pair i is one token at one expert. Pairs of an expert stand together, tokens
// in ascending order, so that a decoded weight serves all of them.
struct ExpertPairs {
  int64_t n_pairs = 0;
  int32_t* token = nullptr;   // [n_pairs] of the pass
  float* weight = nullptr;    // [n_pairs]
  int32_t* begin = nullptr;   // [n_local + 1] first pair of an expert
  int32_t* active = nullptr;  // [n_active] experts that have pairs
  int64_t n_active = 0;
  std::byte* x = nullptr;  // [n_tokens] packed inputs of w1 and w3
  // The kernels that x and hidden are packed for.
  const kernels::MatMulKernel* up = nullptr;
  const kernels::MatMulKernel* down = nullptr;
  std::byte* hidden = nullptr;  // [n_pairs] packed inputs of w2
  float* out = nullptr;         // [n_pairs, dim] outputs of w2, rounded
};

namespace {

// Lists the experts that have pairs.
void ListActive(int64_t n_local, ExpertPairs& pairs) {
  pairs.n_active = 0;
  for (int64_t e = 0; e < n_local; ++e) {
    if (pairs.begin[e + 1] > pairs.begin[e]) {
      pairs.active[pairs.n_active++] = static_cast<int32_t>(e);
    }
  }
}

// Sorts tokens [first, first + n) of p by local expert, by counting. Pairs of
// other ranks' experts are left out. `pair_of` [n, k] gets each pair's place or
// -1.
void SortPairs(const ops::RoutedExpertsParams& p, int64_t first, int64_t n,
               ExpertPairs& pairs, int32_t* pair_of) {
  const int64_t k = p.ids.dim(1);
  const int64_t n_local = p.experts->n_local();
  const auto local = [&](int64_t t, int64_t i) -> int64_t {
    const int64_t e =
        p.ids.row<int32_t>(first + t)[i] - p.experts->first_expert();
    return e >= 0 && e < n_local ? e : -1;
  };
  std::fill_n(pairs.begin, n_local + 1, 0);
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t i = 0; i < k; ++i) {
      if (local(t, i) >= 0) ++pairs.begin[local(t, i) + 1];
    }
  }
  for (int64_t e = 0; e < n_local; ++e) pairs.begin[e + 1] += pairs.begin[e];
  pairs.n_pairs = pairs.begin[n_local];
  ListActive(n_local, pairs);

  // begin[e] runs through the pairs of e and ends where e + 1 began.
  for (int64_t t = 0; t < n; ++t) {
    for (int64_t i = 0; i < k; ++i) {
      const int64_t e = local(t, i);
      pair_of[t * k + i] = -1;
      if (e < 0) continue;
      const int32_t at = pairs.begin[e]++;
      pair_of[t * k + i] = at;
      pairs.token[at] = static_cast<int32_t>(t);
      pairs.weight[at] = p.weights.row<float>(first + t)[i];
    }
  }
  for (int64_t e = n_local; e > 0; --e) pairs.begin[e] = pairs.begin[e - 1];
  pairs.begin[0] = 0;
}

// Memory for a pass over the tokens x with at most n_pairs pairs; `hidden`
// is the dtype that w2's inputs are rounded to.
ExpertPairs TakePairs(const CpuExperts& experts, ConstTensorView x,
                      int64_t n_pairs, DType hidden, Scratch& shared) {
  const CpuExpert& one = experts.expert(0);
  ExpertPairs pairs;
  pairs.up = &KernelFor(*one.w1, x.dtype());
  pairs.down = &KernelFor(*one.w2, hidden);
  const auto packed = [](const kernels::MatMulKernel& kernel, int64_t n) {
    return static_cast<int64_t>(kernel.packed_bytes(n));
  };
  pairs.token = shared.Take<int32_t>(n_pairs);
  pairs.weight = shared.Take<float>(n_pairs);
  pairs.begin = shared.Take<int32_t>(experts.n_local() + 1);
  pairs.active = shared.Take<int32_t>(experts.n_local());
  pairs.x =
      shared.Take<std::byte>(x.n_rows() * packed(*pairs.up, experts.dim()));
  pairs.hidden =
      shared.Take<std::byte>(n_pairs * packed(*pairs.down, experts.inter()));
  pairs.out = shared.Take<float>(n_pairs * experts.dim());
  return pairs;
}

}  // namespace

void CpuBackend::Route(const ops::RouteParams& p) {
  Project(AsCpu(p.gate), p.x, p.logits);
  const int64_t n = p.logits.dim(1);
  const int64_t k = p.experts.dim(1);
  Parallel(p.x.n_rows(), [&](size_t row, int thread) {
    const auto t = static_cast<int64_t>(row);
    Scratch scratch = workspace_.thread(thread);
    const auto count = static_cast<size_t>(n);
    float* score = scratch.Take<float>(n);
    float* biased =
        scratch.Take<float>(static_cast<int64_t>(kernels::TopKRoom(count)));
    kernels::GateScores(p.logits.row<float>(t), count, score);
    std::copy_n(score, n, biased);
    if (!p.bias.empty()) {
      kernels::AddRow(p.bias.as<float>().data(), count, biased);
    }
    if (!p.scores.empty()) std::copy_n(biased, n, p.scores.row<float>(t));

    int32_t* chosen = p.experts.row<int32_t>(t);
    if (p.by == ops::RouteBy::kScore) {
      kernels::TopK(biased, count, static_cast<size_t>(k), chosen);
    }
    if (p.by == ops::RouteBy::kTable) {
      const int64_t* entry =
          p.table.row<int64_t>(p.token_ids.as<int32_t>()[row]);
      for (int64_t i = 0; i < k; ++i) {
        chosen[i] = static_cast<int32_t>(entry[i]);
      }
    }
    float sum = 0.0f;
    for (int64_t i = 0; i < k; ++i) sum += score[chosen[i]];
    float* weights = p.weights.row<float>(t);
    for (int64_t i = 0; i < k; ++i) {
      weights[i] = score[chosen[i]] / sum * p.route_scale;
    }
  });
}

// One expert's first products for kExpertRows hidden values: w1, w3, the gated
// unit, the rounding and, since the rows make whole blocks, act_quant; packed
// as the input of w2.
void CpuBackend::ExpertUpTask(const CpuExperts& experts,
                              const ExpertPairs& pairs, int64_t task,
                              float limit, int thread) const {
  const int64_t inter = experts.inter();
  const int64_t tiles = (inter + kExpertRows - 1) / kExpertRows;
  const int64_t e = pairs.active[task / tiles];
  const CpuExpert& expert = experts.expert(e);
  Scratch scratch = workspace_.thread(thread);
  float* g = scratch.Take<float>(kExpertChunk * kExpertRows);
  float* u = scratch.Take<float>(kExpertChunk * kExpertRows);
  const CpuLinear& w2 = *expert.w2;
  const size_t hidden_bytes = pairs.down->packed_bytes(inter);

  kernels::MatMulArgs args;
  args.row_begin = task % tiles * kExpertRows;
  args.row_end = std::min(args.row_begin + kExpertRows, inter);
  args.x = pairs.x;
  args.x_row_bytes = pairs.up->packed_bytes(experts.dim());
  args.y_stride = kExpertRows;
  args.panel = workspace_.panel(thread);
  const int64_t n_rows = args.row_end - args.row_begin;
  for (int64_t first = pairs.begin[e]; first < pairs.begin[e + 1];
       first += kExpertChunk) {
    args.n_tokens = std::min(kExpertChunk, pairs.begin[e + 1] - first);
    args.x_index = pairs.token + first;
    args.weight = &expert.w1->view(*pairs.up);
    args.y = g;
    pairs.up->run(args);
    args.weight = &expert.w3->view(*pairs.up);
    args.y = u;
    pairs.up->run(args);
    for (int64_t i = 0; i < args.n_tokens; ++i) {
      float* gate = g + i * kExpertRows;
      float* up = u + i * kExpertRows;
      Round(gate, n_rows);
      Round(up, n_rows);
      kernels::SwiGlu({.g = gate,
                       .u = up,
                       .limit = limit,
                       .weight = pairs.weight[first + i],
                       .n = static_cast<size_t>(n_rows),
                       .out = gate});
      Round(gate, n_rows);
      if (w2.quantise_input()) {
        kernels::QuantizeE4m3(gate, static_cast<size_t>(n_rows),
                              static_cast<size_t>(numerics_.act_block), gate);
      }
      pairs.down->pack(
          gate, args.row_begin, n_rows, inter,
          pairs.hidden + static_cast<size_t>(first + i) * hidden_bytes);
    }
  }
}

// w2 of one expert for kExpertRows of its rows.
void CpuBackend::ExpertDownTask(const CpuExperts& experts,
                                const ExpertPairs& pairs, int64_t task,
                                int thread) const {
  const int64_t dim = experts.dim();
  const int64_t tiles = (dim + kExpertRows - 1) / kExpertRows;
  const int64_t e = pairs.active[task / tiles];
  const CpuLinear& w2 = *experts.expert(e).w2;
  const size_t hidden_bytes = pairs.down->packed_bytes(experts.inter());
  kernels::MatMulArgs args;
  args.weight = &w2.view(*pairs.down);
  args.row_begin = task % tiles * kExpertRows;
  args.row_end = std::min(args.row_begin + kExpertRows, dim);
  args.x_row_bytes = hidden_bytes;
  args.y_stride = dim;
  args.panel = workspace_.panel(thread);
  for (int64_t first = pairs.begin[e]; first < pairs.begin[e + 1];
       first += kExpertChunk) {
    args.n_tokens = std::min(kExpertChunk, pairs.begin[e + 1] - first);
    args.x = pairs.hidden + static_cast<size_t>(first) * hidden_bytes;
    float* y = pairs.out + first * dim + args.row_begin;
    args.y = y;
    pairs.down->run(args);
    for (int64_t i = 0; i < args.n_tokens; ++i) {
      Round(y + i * dim, args.row_end - args.row_begin);
    }
  }
}

// Fills pairs.out. All experts in two parallel regions over (expert, rows).
void CpuBackend::RunExperts(const CpuExperts& experts, ConstTensorView x,
                            const ExpertPairs& pairs, float limit) const {
  const CpuLinear& w1 = *experts.expert(0).w1;
  const size_t row_bytes = pairs.up->packed_bytes(experts.dim());
  Parallel(x.n_rows(), [&](size_t i, int thread) {
    PackToken(*pairs.up, w1.quantise_input(),
              {x, static_cast<int64_t>(i), 0, experts.dim()}, thread,
              pairs.x + i * row_bytes);
  });
  const auto tiles = [](int64_t n) {
    return (n + kExpertRows - 1) / kExpertRows;
  };
  Parallel(
      pairs.n_active * tiles(experts.inter()), [&](size_t task, int thread) {
        ExpertUpTask(experts, pairs, static_cast<int64_t>(task), limit, thread);
      });
  Parallel(pairs.n_active * tiles(experts.dim()), [&](size_t task, int thread) {
    ExpertDownTask(experts, pairs, static_cast<int64_t>(task), thread);
  });
}

void CpuBackend::RoutedExperts(const ops::RoutedExpertsParams& p) {
  const CpuExperts& experts = AsCpu(p.experts);
  const int64_t n_tokens = p.x.n_rows();
  const int64_t k = p.ids.dim(1);
  const int64_t dim = experts.dim();
  for (int64_t first = 0; first < n_tokens; first += kExpertTokens) {
    const int64_t n = std::min(kExpertTokens, n_tokens - first);
    Scratch shared = workspace_.shared();
    auto* pair_of = shared.Take<int32_t>(n * k);
    ExpertPairs pairs = TakePairs(experts, p.x.rows(first, n), n * k,
                                  numerics_.act_dtype(), shared);
    SortPairs(p, first, n, pairs, pair_of);
    RunExperts(experts, p.x.rows(first, n), pairs, p.swiglu_limit);
    Parallel(n, [&](size_t i, int) {
      // A pair's place grows with its expert's id: ascending places are the
      // official order of the sum.
      int32_t* places = pair_of + i * static_cast<size_t>(k);
      std::sort(places, places + k);
      float* acc = p.acc.row<float>(first + static_cast<int64_t>(i));
      std::fill_n(acc, dim, 0.0f);
      for (int64_t j = 0; j < k; ++j) {
        if (places[j] < 0) continue;
        kernels::AddRow(pairs.out + places[j] * dim, static_cast<size_t>(dim),
                        acc);
      }
    });
  }
}

void CpuBackend::SharedExpert(const ops::SharedExpertParams& p) {
  const CpuExperts& experts = AsCpu(p.expert);
  const int64_t n_tokens = p.x.n_rows();
  const int64_t dim = experts.dim();
  for (int64_t first = 0; first < n_tokens; first += kExpertTokens) {
    const int64_t n = std::min(kExpertTokens, n_tokens - first);
    Scratch shared = workspace_.shared();
    ExpertPairs pairs = TakePairs(experts, p.x.rows(first, n), n,
                                  numerics_.act_dtype(), shared);
    pairs.n_pairs = n;
    for (int64_t i = 0; i < n; ++i) {
      pairs.token[i] = static_cast<int32_t>(i);
      pairs.weight[i] = 1.0f;
    }
    pairs.begin[0] = 0;
    pairs.begin[1] = static_cast<int32_t>(n);
    ListActive(1, pairs);
    RunExperts(experts, p.x.rows(first, n), pairs, p.swiglu_limit);
    Parallel(n, [&](size_t i, int) {
      const int64_t t = first + static_cast<int64_t>(i);
      float* sum = pairs.out + static_cast<int64_t>(i) * dim;
      kernels::AddRow(p.acc.row<float>(t), static_cast<size_t>(dim), sum);
      Store(sum, dim, p.y, t, 0);
    });
  }
}

}  // namespace belay::cpu
