// SPDX-License-Identifier: Apache-2.0
// Going through the elements of several arrays of one shape at once, and
// NumPy's broadcasting.
#ifndef BELAY_CANNSIM_OPS_WALK_H_
#define BELAY_CANNSIM_OPS_WALK_H_

#include <array>
#include <cstdint>
#include <vector>

#include "cannsim/nnop/executor.h"

namespace cannsim {

using Dims = std::vector<int64_t>;

// The shape of two together; false when they do not go together.
bool Broadcast(const Dims& a, const Dims& b, Dims* out);

// Steps of `array` through a shape that it broadcasts to.
Dims StepsFor(const Array& array, const Dims& shape);

// Calls f(offsets) for each index of `shape` in row-major order; offsets[i]
// counts elements in the array whose steps are steps[i].
template <size_t N, typename F>
void Walk(const Dims& shape, const std::array<Dims, N>& steps, const F& f) {
  for (const int64_t dim : shape) {
    if (dim == 0) return;
  }
  std::array<int64_t, N> offsets{};
  Dims index(shape.size(), 0);
  while (true) {
    f(offsets);
    size_t axis = shape.size();
    while (axis > 0) {
      --axis;
      for (size_t i = 0; i < N; ++i) offsets[i] += steps[i][axis];
      if (++index[axis] < shape[axis]) break;
      for (size_t i = 0; i < N; ++i) {
        offsets[i] -= steps[i][axis] * shape[axis];
      }
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (shape.empty()) return;
  }
}

// f(offset in a) over all elements.
template <typename F>
void Walk1(const Array& a, const F& f) {
  Walk<1>(a.dims, {a.strides},
          [&](const std::array<int64_t, 1>& at) { f(at[0]); });
}

// f(offset in out, offset in a): a broadcasts to out.
template <typename F>
void Walk2(const Array& out, const Array& a, const F& f) {
  Walk<2>(out.dims, {out.strides, StepsFor(a, out.dims)},
          [&](const std::array<int64_t, 2>& at) { f(at[0], at[1]); });
}

// f(offset in out, offset in a, offset in b).
template <typename F>
void Walk3(const Array& out, const Array& a, const Array& b, const F& f) {
  Walk<3>(out.dims, {out.strides, StepsFor(a, out.dims), StepsFor(b, out.dims)},
          [&](const std::array<int64_t, 3>& at) { f(at[0], at[1], at[2]); });
}

// `axis` counted from the front; -1 when there is no such axis. A scalar has
// one axis, as in PyTorch.
int FrontAxis(int64_t axis, int rank);

// The array without its axes (ascending), and the axes alone.
Array Without(const Array& array, const std::vector<int>& axes);
Array Only(const Array& array, const std::vector<int>& axes);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_OPS_WALK_H_
