// SPDX-License-Identifier: Apache-2.0
// A file of its own: where the compiler could inline these into their callers,
// it would warn of memory from `new` given to free().
#include "backends/cpu/alloc_count_test.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<int64_t> n_allocations{0};
}  // namespace

void* operator new(size_t bytes) {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* p = std::malloc(bytes)) return p;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, std::align_val_t align) {
  n_allocations.fetch_add(1, std::memory_order_relaxed);
  const auto a = static_cast<size_t>(align);
  if (void* p = std::aligned_alloc(a, (bytes + a - 1) / a * a)) return p;
  throw std::bad_alloc();
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}

namespace belay::cpu {

int64_t AllocationCount() { return n_allocations.load(); }

}  // namespace belay::cpu
