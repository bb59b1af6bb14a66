// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TESTS_SUPPORT_VALUE_H_
#define BELAY_TESTS_SUPPORT_VALUE_H_

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/error.h"

namespace belay::test {

// A test cannot go on without this value: the program ends with the reason.
template <typename T>
T Value(StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", value.status().ToString().c_str());
    std::abort();
  }
  return std::move(value).value();
}

inline void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

}  // namespace belay::test

#endif  // BELAY_TESTS_SUPPORT_VALUE_H_
