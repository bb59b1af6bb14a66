// SPDX-License-Identifier: Apache-2.0
#include "cannsim/ops/walk.h"

#include <algorithm>

namespace cannsim {

bool Broadcast(const Dims& a, const Dims& b, Dims* out) {
  const size_t rank = std::max(a.size(), b.size());
  out->assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    (*out)[rank - 1 - i] = x == 1 ? y : x;
  }
  return true;
}

Dims StepsFor(const Array& array, const Dims& shape) {
  Dims steps(shape.size(), 0);
  const size_t skipped = shape.size() - array.dims.size();
  for (size_t i = 0; i < array.dims.size(); ++i) {
    if (array.dims[i] != 1) steps[skipped + i] = array.strides[i];
  }
  return steps;
}

int FrontAxis(int64_t axis, int rank) {
  const int n = std::max(rank, 1);
  const int64_t front = axis < 0 ? axis + n : axis;
  return front >= 0 && front < n ? static_cast<int>(front) : -1;
}

Array Without(const Array& array, const std::vector<int>& axes) {
  Array rest = array;
  for (size_t i = axes.size(); i-- > 0;) {
    rest.dims.erase(rest.dims.begin() + axes[i]);
    rest.strides.erase(rest.strides.begin() + axes[i]);
  }
  return rest;
}

Array Only(const Array& array, const std::vector<int>& axes) {
  Array part = array;
  part.dims.clear();
  part.strides.clear();
  for (const int axis : axes) {
    part.dims.push_back(array.dims[static_cast<size_t>(axis)]);
    part.strides.push_back(array.strides[static_cast<size_t>(axis)]);
  }
  return part;
}

}  // namespace cannsim
