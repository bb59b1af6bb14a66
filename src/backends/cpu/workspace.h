// SPDX-License-Identifier: Apache-2.0
// The planned scratch memory. Nothing else is used on the step path.
#ifndef BELAY_BACKENDS_CPU_WORKSPACE_H_
#define BELAY_BACKENDS_CPU_WORKSPACE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/numerics.h"
#include "tensor/buffer.h"

namespace belay::cpu {

// Tokens whose packed inputs are in memory at a time if they are float32 and of
// the widest kind; of others, as many as fit in the same bytes.
inline constexpr int64_t kTokenChunk = 64;
// Pairs of an expert whose hidden values a task computes at a time.
inline constexpr int64_t kExpertChunk = 256;
// Tokens of one pass over the experts, which is sorted by expert.
inline constexpr int64_t kExpertTokens = 512;
// Tokens that the indexer scores before it selects, at ratio 4.
inline constexpr int64_t kIndexTokens = 16;
// Rows of an expert's first product in one task; they are quantised there, so
// it is a multiple of every act_quant block.
inline constexpr int64_t kExpertRows = 128;
// Heads of one attention task at most.
inline constexpr int64_t kMaxHeadGroup = 32;

// Hands out aligned pieces of a planned region, from its start. Running past
// the end is a bug of the plan.
class Scratch {
 public:
  Scratch(std::byte* data, size_t bytes) : data_(data), bytes_(bytes) {}

  template <typename T>
  T* Take(int64_t n) {
    const size_t bytes =
        AlignUp(static_cast<size_t>(n) * sizeof(T), kBufferAlignment);
    BELAY_CHECK(used_ + bytes <= bytes_);
    T* piece = reinterpret_cast<T*>(data_ + used_);
    used_ += bytes;
    return piece;
  }

 private:
  std::byte* data_;
  size_t bytes_;
  size_t used_ = 0;
};

// Bytes of the regions.
struct WorkspaceSizes {
  size_t packed = 0;               // packed inputs of one matrix product
  size_t shared = 0;               // of the running operator, all threads
  size_t panel = 0;                // of one thread: decoded weights
  size_t thread = 0;               // of one thread, of the running operator
  int64_t index_score_floats = 0;  // a part of `shared`

  // With room to align memory from anywhere.
  size_t total(int n_threads) const {
    return packed + shared + static_cast<size_t>(n_threads) * (panel + thread) +
           kBufferAlignment;
  }
};
WorkspaceSizes SizesFor(const ops::Numerics& numerics,
                        const ops::OpLimits& limits);

class Workspace {
 public:
  Workspace() = default;
  Workspace(const WorkspaceSizes& sizes, std::span<std::byte> memory)
      : sizes_(sizes), data_(Aligned(memory.data())) {}

  Scratch packed() const { return {data_, sizes_.packed}; }
  // How many packed inputs of so many bytes it holds, at most n_tokens.
  int64_t packed_tokens(size_t row_bytes, int64_t n_tokens) const {
    return std::min(n_tokens, static_cast<int64_t>(sizes_.packed / row_bytes));
  }
  Scratch shared() const { return {data_ + sizes_.packed, sizes_.shared}; }
  // How many index scores fit beside the other scratch of IndexerSelect.
  int64_t index_score_floats() const { return sizes_.index_score_floats; }
  std::byte* panel(int thread) const { return of_thread(thread); }
  Scratch thread(int thread) const {
    return {of_thread(thread) + sizes_.panel, sizes_.thread};
  }

 private:
  static std::byte* Aligned(std::byte* p) {
    const auto address = reinterpret_cast<uintptr_t>(p);
    return p + (AlignUp(address, kBufferAlignment) - address);
  }
  std::byte* of_thread(int thread) const {
    return data_ + sizes_.packed + sizes_.shared +
           static_cast<size_t>(thread) * (sizes_.panel + sizes_.thread);
  }

  WorkspaceSizes sizes_;
  std::byte* data_ = nullptr;
};

}  // namespace belay::cpu

#endif  // BELAY_BACKENDS_CPU_WORKSPACE_H_
