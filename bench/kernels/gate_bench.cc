// SPDX-License-Identifier: Apache-2.0
// The router: experts by score + bias, and their scores. Beside it the same by
// a plain sort; scripts/bench_peers puts ONNX Runtime beside both.
//
//   gate_bench --benchmark_filter=...   arguments: experts, chosen, tokens
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/gate.h"
#include "kernels/vector.h"

namespace belay {
namespace {

// Enough different tokens that no branch predictor knows them by heart.
constexpr size_t kRows = 1024;

struct Problem {
  explicit Problem(const benchmark::State& state)
      : n(static_cast<size_t>(state.range(0))),
        k(static_cast<size_t>(state.range(1))),
        tokens(static_cast<size_t>(state.range(2))),
        logits(kRows * n),
        scores(kRows * n),
        bias(n) {
    std::mt19937 rng(1);
    std::normal_distribution<float> normal;
    for (float& v : logits) v = normal(rng);
    for (float& v : bias) v = 0.1f * normal(rng);
    kernels::GateScores(logits.data(), logits.size(), scores.data());
  }

  size_t n;
  size_t k;
  size_t tokens;
  std::vector<float> logits;
  std::vector<float> scores;
  std::vector<float> bias;
};

// select(scores of a token, ids out) for all tokens of a step.
template <typename Select>
void Run(benchmark::State& state, const Select& select) {
  const Problem p(state);
  std::vector<int32_t> ids(p.tokens * p.k);
  std::vector<float> weights(p.tokens * p.k);
  size_t first = 0;
  for (auto _ : state) {
    for (size_t t = 0; t < p.tokens; ++t) {
      const float* scores = p.scores.data() + (first + t) % kRows * p.n;
      int32_t* chosen = ids.data() + t * p.k;
      select(p, scores, chosen);
      for (size_t i = 0; i < p.k; ++i) {
        weights[t * p.k + i] = scores[chosen[i]];
      }
    }
    first += p.tokens;
    benchmark::DoNotOptimize(weights.data());
    benchmark::ClobberMemory();
  }
  state.counters["us"] = benchmark::Counter(
      static_cast<double>(state.iterations()) / 1e6,
      benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void Select(benchmark::State& state) {
  std::vector<float> biased(
      kernels::TopKRoom(static_cast<size_t>(state.range(0))));
  Run(state, [&](const Problem& p, const float* scores, int32_t* chosen) {
    std::copy_n(scores, p.n, biased.data());
    kernels::AddRow(p.bias.data(), p.n, biased.data());
    kernels::TopK(biased.data(), p.n, p.k, chosen);
  });
}

void Sort(benchmark::State& state) {
  std::vector<float> biased(static_cast<size_t>(state.range(0)));
  std::vector<int32_t> order(biased.size());
  Run(state, [&](const Problem& p, const float* scores, int32_t* chosen) {
    std::copy_n(scores, p.n, biased.data());
    kernels::AddRow(p.bias.data(), p.n, biased.data());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return biased[static_cast<size_t>(a)] > biased[static_cast<size_t>(b)];
    });
    std::copy_n(order.begin(), p.k, chosen);
  });
}

// The scores themselves, from logits.
void Scores(benchmark::State& state) {
  const Problem p(state);
  std::vector<float> out(p.n);
  size_t row = 0;
  for (auto _ : state) {
    for (size_t t = 0; t < p.tokens; ++t, ++row) {
      kernels::GateScores(p.logits.data() + row % kRows * p.n, p.n, out.data());
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
}

void Arguments(benchmark::internal::Benchmark* b) {
  for (const int64_t tokens : {1, 512}) {
    b->Args({384, 6, tokens});
    b->Args({16, 2, tokens});
  }
}
BENCHMARK(Select)->Apply(Arguments);
BENCHMARK(Sort)->Apply(Arguments);
BENCHMARK(Scores)->Apply(Arguments);

}  // namespace
}  // namespace belay

BENCHMARK_MAIN();
