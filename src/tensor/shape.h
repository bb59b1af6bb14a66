// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TENSOR_SHAPE_H_
#define BELAY_TENSOR_SHAPE_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/error.h"

namespace belay {

// Up to five extents, outermost first. Rank 0 is a scalar (one element).
class Shape {
 public:
  static constexpr int kMaxRank = 5;

  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<int64_t> dims) {
    BELAY_CHECK(dims.size() <= kMaxRank);
    for (const int64_t d : dims) dims_[rank_++] = d;
  }

  constexpr int rank() const { return rank_; }
  constexpr int64_t dim(int i) const { return dims_[i]; }
  constexpr int64_t operator[](int i) const { return dims_[i]; }
  constexpr void set_dim(int i, int64_t d) { dims_[i] = d; }
  constexpr void push_back(int64_t d) {
    BELAY_CHECK(rank_ < kMaxRank);
    dims_[rank_++] = d;
  }

  // Product of the extents.
  constexpr int64_t n_elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }

  friend constexpr bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i) {
      if (a.dims_[i] != b.dims_[i]) return false;
    }
    return true;
  }

  // "[24, 1024]".
  std::string ToString() const {
    std::string text = "[";
    for (int i = 0; i < rank_; ++i) {
      if (i > 0) text += ", ";
      text += std::to_string(dims_[i]);
    }
    return text + "]";
  }

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace belay

#endif  // BELAY_TENSOR_SHAPE_H_
