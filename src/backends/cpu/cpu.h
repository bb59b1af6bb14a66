// SPDX-License-Identifier: Apache-2.0
// The operators on SIMD kernels and threads.
//
// A token's result never depends on the other tokens of the batch, on how a
// prompt is cut into steps, or on the number of threads, bit for bit: work is
// split by output row, token and head, never inside a sum.
#ifndef BELAY_BACKENDS_CPU_CPU_H_
#define BELAY_BACKENDS_CPU_CPU_H_

#include <memory>
#include <string>

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/topology.h"
#include "ops/backend.h"

namespace belay::cpu {

struct Options {
  // The instruction set to hold every kernel of the process to; "" is the best
  // one (kernels/simd_target.h).
  std::string simd_target;
  // Where packed weights go, on machines with several NUMA nodes; null: where
  // the system puts them. Borrowed, outlives the back end.
  const Topology* topology = nullptr;
};

// `pool` is borrowed and must outlive the back end. Weights stay where they are
// (a mapped checkpoint); bound weights borrow them. BACK-002 when `numerics`
// asks for a block size that the kernels do not have; ARG-009 and BACK-001 of
// the target.
StatusOr<std::unique_ptr<ops::Backend>> Create(const ops::Numerics& numerics,
                                               ThreadPool* pool,
                                               const Options& options = {});

}  // namespace belay::cpu

#endif  // BELAY_BACKENDS_CPU_CPU_H_
