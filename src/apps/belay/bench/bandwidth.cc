// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/bench/bandwidth.h"

#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/error_ids.h"

namespace belay::apps {
namespace {

constexpr size_t kBytes = size_t{512} << 20;
constexpr size_t kTaskBytes = size_t{1} << 20;
constexpr size_t kLine = 64;
// Far enough ahead to hide the latency of memory, as the kernels do it.
constexpr size_t kAhead = 4096;

uint64_t ReadAll(const std::byte* data, size_t n_bytes) {
  uint64_t sums[8] = {};
  for (size_t at = 0; at < n_bytes; at += kLine) {
    __builtin_prefetch(data + at + kAhead);
    uint64_t line[8];
    std::memcpy(line, data + at, kLine);
    for (int i = 0; i < 8; ++i) sums[i] ^= line[i];
  }
  uint64_t sum = 0;
  for (const uint64_t s : sums) sum ^= s;
  return sum;
}

}  // namespace

StatusOr<std::unique_ptr<Bandwidth>> Bandwidth::Create(ThreadPool* pool) {
  void* data = mmap(nullptr, kBytes + kAhead, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    return MakeError(kSysOutOfMemory, {.where = "bench",
                                       .what = "",
                                       .expected = std::to_string(kBytes),
                                       .got = ""});
  }
  (void)madvise(data, kBytes, MADV_HUGEPAGE);
  std::memset(data, 1, kBytes);  // pages that are not written are not there
  return std::unique_ptr<Bandwidth>(
      new Bandwidth(pool, static_cast<std::byte*>(data)));
}

Bandwidth::~Bandwidth() { munmap(data_, kBytes + kAhead); }

double Bandwidth::Measure() const {
  std::atomic<uint64_t> sink{0};  // what is read must be used
  const auto start = std::chrono::steady_clock::now();
  pool_->ParallelFor(kBytes / kTaskBytes, [&](size_t task, int) {
    sink.fetch_xor(ReadAll(data_ + task * kTaskBytes, kTaskBytes),
                   std::memory_order_relaxed);
  });
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  return static_cast<double>(kBytes) / elapsed.count() / 1e9;
}

}  // namespace belay::apps
