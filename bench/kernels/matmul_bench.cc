// SPDX-License-Identifier: Apache-2.0
// Matrix products against the machine's limits: bytes of weights a second for
// one token, beside a plain read of as many bytes; operations a second for
// many. Widths are those of the `mid` preset (hidden 2048).
//
//   matmul_bench --benchmark_filter=...   arguments: threads
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/blocks/matmul_int8.h"
#include "kernels/blocks/pack_int8.h"
#include "kernels/matmul.h"
#include "kernels/matmul_bf16.h"
#include "kernels/pack.h"
#include "tensor/buffer.h"

namespace belay {
namespace {

using kernels::MatMulArgs;
using kernels::MatMulKernel;
using kernels::WeightKind;
using kernels::WeightView;

constexpr int64_t kCols = 2048;
constexpr int64_t kRowsPerTask = 64;
// Far beyond the last-level cache.
constexpr size_t kStreamBytes = size_t{192} << 20;

ThreadPool& Pool(int n_threads) {
  static std::map<int, std::unique_ptr<ThreadPool>> pools;
  std::unique_ptr<ThreadPool>& pool = pools[n_threads];
  if (pool == nullptr) pool = *ThreadPool::Create(n_threads);
  return *pool;
}

// Random codes without the NaNs of e4m3 and without float32's extremes;
// kStreamBytes, aligned as kernels want packed weights and panels.
std::byte* Codes() {
  static const Buffer codes = [] {
    Buffer bytes = *Buffer::Create(kStreamBytes);
    std::mt19937_64 rng(1);
    for (size_t i = 0; i < bytes.bytes(); i += 8) {
      const uint64_t word = rng() & 0xbfbfbfbfbfbfbfbfu;
      std::memcpy(static_cast<std::byte*>(bytes.data()) + i, &word, 8);
    }
    return bytes;
  }();
  return static_cast<std::byte*>(codes.data());
}

// Scales for the largest number of blocks that any weight here has.
const std::vector<float>& Scales() {
  static const std::vector<float> scales(size_t{1} << 20, 0.5f);
  return scales;
}

const std::vector<uint8_t>& ScaleCodes() {
  static const std::vector<uint8_t> codes(kStreamBytes / 16, 126);
  return codes;
}

// Random codes, row-major.
WeightView Weight(WeightKind kind, int64_t n_rows) {
  WeightView view;
  view.kind = kind;
  view.codes = Codes();
  view.row_bytes_stride = kernels::WeightRowBytes(kind, kCols);
  view.n_rows = n_rows;
  view.n_cols = kCols;
  view.scale = Scales().data();
  view.scale_code = ScaleCodes().data();
  view.block_rows = kind == WeightKind::kFp8 ? 128 : 1;
  view.block_cols = kind == WeightKind::kFp4 ? 32 : 128;
  view.scale_stride = kCols / view.block_cols;
  return view;
}

// As random codes would be scales too, some of them infinite: 2^-1 (e8m0) or
// about 0.1 (f16) in their place behind the codes of every block of a tile.
std::byte* PackedCodes(WeightKind kind) {
  static std::map<WeightKind, Buffer> made;
  const auto found = made.find(kind);
  if (found != made.end()) return static_cast<std::byte*>(found->second.data());
  Buffer& bytes = made[kind] = *Buffer::Create(kStreamBytes);
  auto* const to = static_cast<std::byte*>(bytes.data());
  std::memcpy(to, Codes(), kStreamBytes);
  const bool fp4 = kind == WeightKind::kFp4;
  constexpr size_t kValues = kernels::kPackRows * kernels::kPackCols;
  const size_t codes = fp4 ? kValues / 2 : kValues;
  const size_t scales = fp4 ? kValues / 32 : kValues / 128 * 2;
  if (!fp4 && kind != WeightKind::kInt8Wide) return to;
  for (size_t at = 0; at + codes + scales <= kStreamBytes;
       at += codes + scales) {
    std::memset(to + at + codes, fp4 ? 126 : 0x2e, scales);
  }
  return to;
}

WeightView WeightFor(const MatMulKernel& kernel, WeightKind kind,
                     int64_t n_rows) {
  WeightView plain = Weight(kind, n_rows);
  if (&kernel == &kernels::F32MatMul()) return plain;
  if (&kernel == kernels::Int8DotMatMul(plain)) {
    plain = kernels::Int8Target(plain);
  }
  return kernels::PackedView(plain, PackedCodes(plain.kind));
}

// One product over all rows, split as the back end splits it.
struct Product {
  Product(const MatMulKernel& k, const WeightView& w, int64_t n, int n_threads)
      : kernel(k),
        weight(w),
        n_tokens(n),
        pool(Pool(n_threads)),
        row_bytes(k.packed_bytes(kCols)),
        packed(static_cast<size_t>(n) * row_bytes + 64),
        y(static_cast<size_t>(n * w.n_rows)),
        panel_bytes(AlignUp(kernels::PanelBytes(kCols), kBufferAlignment)),
        panels(*Buffer::Create(static_cast<size_t>(n_threads) * panel_bytes)) {
    std::vector<float> row(kCols);
    std::mt19937 rng(2);
    for (int64_t t = 0; t < n; ++t) {
      // On the grid of quantised activations: small multiples of 2^-3.
      for (float& v : row) v = static_cast<float>(rng() % 15) * 0.125f - 0.875f;
      k.pack(row.data(), 0, kCols, kCols,
             packed.data() + static_cast<size_t>(t) * row_bytes);
    }
  }

  void Run() {
    const size_t n_tasks =
        static_cast<size_t>((weight.n_rows + kRowsPerTask - 1) / kRowsPerTask);
    pool.ParallelFor(n_tasks, [&](size_t task, int thread) {
      MatMulArgs args;
      args.weight = &weight;
      args.row_begin = static_cast<int64_t>(task) * kRowsPerTask;
      args.row_end = std::min(args.row_begin + kRowsPerTask, weight.n_rows);
      args.x = packed.data();
      args.x_row_bytes = row_bytes;
      args.n_tokens = n_tokens;
      args.y = y.data() + args.row_begin;
      args.y_stride = weight.n_rows;
      args.panel = static_cast<std::byte*>(panels.data()) +
                   static_cast<size_t>(thread) * panel_bytes;
      kernel.run(args);
    });
  }

  const MatMulKernel& kernel;
  WeightView weight;
  int64_t n_tokens;
  ThreadPool& pool;
  size_t row_bytes;
  std::vector<std::byte> packed;
  std::vector<float> y;
  size_t panel_bytes;
  Buffer panels;
};

// Both for every benchmark: a CSV file has one set of columns.
void SetRates(benchmark::State& state, double bytes, double operations) {
  const auto rate = [&](double per_run) {
    return benchmark::Counter(
        per_run * static_cast<double>(state.iterations()) / 1e9,
        benchmark::Counter::kIsRate);
  };
  state.counters["GB/s"] = rate(bytes);
  state.counters["GFLOP/s"] = rate(operations);
}

// Bytes of codes and scales of n_rows rows.
double WeightBytes(WeightKind kind, int64_t n_rows) {
  const double bytes =
      static_cast<double>(n_rows) *
      static_cast<double>(kernels::WeightRowBytes(kind, kCols));
  return kind == WeightKind::kFp4 ? bytes * 17.0 / 16.0 : bytes;
}

// The yardstick: the sum of as many bytes, four sums in flight.
void BM_Read(benchmark::State& state) {
  ThreadPool& pool = Pool(static_cast<int>(state.range(0)));
  constexpr size_t kChunk = size_t{1} << 17;
  for (auto _ : state) {
    pool.ParallelFor(kStreamBytes / kChunk, [&](size_t task, int) {
      const auto* p =
          reinterpret_cast<const uint64_t*>(Codes() + task * kChunk);
      uint64_t sum[8] = {};
      for (size_t i = 0; i < kChunk / 8; i += 8) {
        for (size_t j = 0; j < 8; ++j) sum[j] += p[i + j];
      }
      benchmark::DoNotOptimize(sum);
    });
  }
  SetRates(state, static_cast<double>(kStreamBytes), 0.0);
}
BENCHMARK(BM_Read)->Arg(1)->Arg(2)->UseRealTime();

// One token: bytes of codes and scales a second.
void Gemv(benchmark::State& state, const MatMulKernel* kernel,
          WeightKind kind) {
  if (kernel == nullptr) {
    state.SkipWithError("not on this CPU");
    return;
  }
  const size_t row = kernels::WeightRowBytes(kind, kCols);
  // Less a sixteenth: packed FP4 holds its scales.
  const auto n_rows = static_cast<int64_t>(kStreamBytes / row) / 16 * 15;
  Product product(*kernel, WeightFor(*kernel, kind, n_rows), 1,
                  static_cast<int>(state.range(0)));
  for (auto _ : state) product.Run();
  SetRates(state, WeightBytes(kind, n_rows),
           2.0 * static_cast<double>(n_rows) * kCols);
}

// Many tokens: operations a second.
template <int64_t kTokens>
void Gemm(benchmark::State& state, const MatMulKernel* kernel,
          WeightKind kind) {
  if (kernel == nullptr) {
    state.SkipWithError("not on this CPU");
    return;
  }
  constexpr int64_t kRows = 1024;
  Product product(*kernel, WeightFor(*kernel, kind, kRows), kTokens,
                  static_cast<int>(state.range(0)));
  for (auto _ : state) product.Run();
  SetRates(state, WeightBytes(kind, kRows), 2.0 * kRows * kCols * kTokens);
}

// One token, weights in the second-level cache: what the loops cost.
void Cached(benchmark::State& state, const MatMulKernel* kernel,
            WeightKind kind) {
  if (kernel == nullptr) {
    state.SkipWithError("not on this CPU");
    return;
  }
  constexpr int64_t kRows = 256;
  Product product(*kernel, WeightFor(*kernel, kind, kRows), 1,
                  static_cast<int>(state.range(0)));
  for (auto _ : state) product.Run();
  SetRates(state, WeightBytes(kind, kRows), 2.0 * kRows * kCols);
}

void Register(const char* kernel_name, const char* kind_name,
              const MatMulKernel* kernel, WeightKind kind) {
  const std::string suffix = std::string("/") + kernel_name + "/" + kind_name;
  using Run = void (*)(benchmark::State&, const MatMulKernel*, WeightKind);
  const std::pair<const char*, Run> runs[] = {{"Gemv", Gemv},
                                              {"Cached", Cached},
                                              {"Gemm64", Gemm<64>},
                                              {"Gemm512", Gemm<512>}};
  for (const auto& [name, run] : runs) {
    benchmark::RegisterBenchmark((name + suffix).c_str(), run, kernel, kind)
        ->Arg(1)
        ->Arg(2)
        ->UseRealTime();
  }
}

void RegisterAll() {
  const std::pair<const char*, WeightKind> kinds[] = {
      {"fp8", WeightKind::kFp8},
      {"fp4", WeightKind::kFp4},
      {"bf16", WeightKind::kBf16},
      {"f32", WeightKind::kF32}};
  for (const auto& [name, kind] : kinds) {
    Register("f32", name, &kernels::F32MatMul(), kind);
    if (kind == WeightKind::kF32) continue;
    Register("bf16-dot", name, kernels::Bf16MatMul(Weight(kind, 1)), kind);
    if (kind == WeightKind::kBf16) continue;
    Register("int8-dot", name, kernels::Int8DotMatMul(Weight(kind, 128)), kind);
  }
}

}  // namespace
}  // namespace belay

int main(int argc, char** argv) {
  belay::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
