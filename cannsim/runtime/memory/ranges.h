// SPDX-License-Identifier: Apache-2.0
// Free ranges of an address space, first fit.
#ifndef BELAY_CANNSIM_RUNTIME_MEMORY_RANGES_H_
#define BELAY_CANNSIM_RUNTIME_MEMORY_RANGES_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>

namespace cannsim {

class Ranges {
 public:
  // All of [begin, begin + bytes) is free.
  Ranges(uintptr_t begin, size_t bytes) {
    if (bytes > 0) free_[begin] = bytes;
  }

  // Takes `bytes` at a multiple of `alignment` (a power of two); nothing when
  // no free range holds them.
  std::optional<uintptr_t> Take(size_t bytes, size_t alignment) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const uintptr_t begin = (it->first + alignment - 1) & ~(alignment - 1);
      const size_t skipped = begin - it->first;
      if (it->second < skipped || it->second - skipped < bytes) continue;
      const size_t rest = it->second - skipped - bytes;
      if (skipped == 0) {
        free_.erase(it);
      } else {
        it->second = skipped;
      }
      if (rest > 0) free_[begin + bytes] = rest;
      return begin;
    }
    return std::nullopt;
  }

  // Gives back what Take gave, and joins it with its neighbours.
  void Give(uintptr_t begin, size_t bytes) {
    auto it = free_.emplace(begin, bytes).first;
    const auto next = std::next(it);
    if (next != free_.end() && begin + it->second == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it == free_.begin()) return;
    const auto before = std::prev(it);
    if (before->first + before->second == begin) {
      before->second += it->second;
      free_.erase(it);
    }
  }

 private:
  std::map<uintptr_t, size_t> free_;
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_MEMORY_RANGES_H_
