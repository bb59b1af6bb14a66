// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_BACKENDS_CPU_ALLOC_COUNT_TEST_H_
#define BELAY_BACKENDS_CPU_ALLOC_COUNT_TEST_H_

#include <cstdint>

namespace belay::cpu {

// Calls of operator new in the whole process so far, worker threads included.
int64_t AllocationCount();

}  // namespace belay::cpu

#endif  // BELAY_BACKENDS_CPU_ALLOC_COUNT_TEST_H_
