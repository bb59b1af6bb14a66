// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_ENGINE_PAGE_POOL_H_
#define BELAY_ENGINE_PAGE_POOL_H_

#include <cstdint>
#include <vector>

#include "base/error.h"

namespace belay::engine {

// The free cache pages. A fixed number, decided at start.
class PagePool {
 public:
  explicit PagePool(int64_t n_pages) {
    free_.reserve(static_cast<size_t>(n_pages));
    for (int64_t page = n_pages - 1; page >= 0; --page) {
      free_.push_back(static_cast<int32_t>(page));
    }
  }

  int64_t n_free() const { return static_cast<int64_t>(free_.size()); }

  // n_free() > 0.
  int32_t Take() {
    BELAY_CHECK(!free_.empty());
    const int32_t page = free_.back();
    free_.pop_back();
    return page;
  }
  void Return(int32_t page) { free_.push_back(page); }

 private:
  std::vector<int32_t> free_;  // a stack: the page freed last is warm
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_PAGE_POOL_H_
