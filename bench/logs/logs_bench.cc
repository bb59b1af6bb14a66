// SPDX-License-Identifier: Apache-2.0
// How fast one core reads logs: plogs as a healthy run writes them, plogs full
// of warnings and errors, and the output of a server.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>

#include "diag/catalogue.h"
#include "toolkit/logs/judge/scanner.h"

namespace belay::logs {
namespace {

const Knowledge& Known() {
  static const diag::Catalogue catalogue =
      diag::Catalogue::LoadEmbedded().value();
  static const Knowledge knowledge(catalogue);
  return knowledge;
}

std::string Plog(int percent_info, int percent_error) {
  std::string text;
  for (int i = 0; text.size() < (size_t{32} << 20); ++i) {
    const int kind = i * 37 % 100;
    const char* level = kind < percent_info           ? "INFO"
                        : kind >= 100 - percent_error ? "ERROR"
                                                      : "WARNING";
    text += fmt::format(
        "[{}] RUNTIME(27232,python3):2026-06-02-04:{:02}:{:02}.{:03}.387 "
        "[stream.cc:{}]27232 SubmitTask: device_id=0, stream_id={}, "
        "task_id={}, {}\n",
        level, i / 60000 % 60, i / 1000 % 60, i % 1000, i % 4000, i % 32, i,
        kind >= 100 - percent_error
            ? "ErrCode=507035, desc=[vector core exception]"
            : "task type=KERNEL_AICORE, sq head=12, tail=14");
  }
  return text;
}

std::string Server() {
  std::string text;
  for (int i = 0; text.size() < (size_t{32} << 20); ++i) {
    text += fmt::format(
        "(EngineCore_DP0 pid=4412) INFO 08-12 10:{:02}:{:02} [metrics.py:417] "
        "Avg prompt throughput: {}.0 tokens/s, Running: {} reqs, KV cache "
        "usage: {}.1%\n",
        i / 60 % 60, i % 60, i % 5000, i % 64, i % 100);
  }
  return text;
}

void Read(benchmark::State& state, const std::string& text) {
  for (auto _ : state) {
    Scanner scanner(Known(), "plog-1_2.log");
    for (size_t at = 0; at < text.size(); at += 256 << 10) {
      scanner.Feed(std::string_view(text).substr(at, 256 << 10));
    }
    scanner.End();
    benchmark::DoNotOptimize(scanner.facts().n_lines);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations()) *
                          static_cast<int64_t>(text.size()));
}

void HealthyPlog(benchmark::State& state) { Read(state, Plog(95, 0)); }
void NoisyPlog(benchmark::State& state) { Read(state, Plog(50, 1)); }
void WarningsOnlyPlog(benchmark::State& state) { Read(state, Plog(0, 0)); }
void ErrorsOnlyPlog(benchmark::State& state) { Read(state, Plog(0, 100)); }
void ServerOutput(benchmark::State& state) { Read(state, Server()); }

BENCHMARK(HealthyPlog)->Unit(benchmark::kMillisecond);
BENCHMARK(NoisyPlog)->Unit(benchmark::kMillisecond);
BENCHMARK(WarningsOnlyPlog)->Unit(benchmark::kMillisecond);
BENCHMARK(ErrorsOnlyPlog)->Unit(benchmark::kMillisecond);
BENCHMARK(ServerOutput)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace belay::logs

BENCHMARK_MAIN();
