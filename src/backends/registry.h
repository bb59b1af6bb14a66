// SPDX-License-Identifier: Apache-2.0
// Names -> back ends.
#ifndef BELAY_BACKENDS_REGISTRY_H_
#define BELAY_BACKENDS_REGISTRY_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/topology.h"
#include "ops/backend.h"
#include "ops/numerics.h"

namespace belay::backends {

// "ref" and "cpu", the default first.
std::vector<std::string_view> Names();

struct Options {
  // Of cpu, see backends/cpu/cpu.h.
  std::string simd_target;
  const Topology* topology = nullptr;
};

// The back end called `name`, running on `pool` (borrowed; ref is single
// threaded and ignores it). Errors: ARG-006 (no such name), ARG-009
// (no such target), BACK-001 or BACK-002 with the reason of the refusal.
StatusOr<std::unique_ptr<ops::Backend>> Create(std::string_view name,
                                               const ops::Numerics& numerics,
                                               ThreadPool* pool,
                                               const Options& options = {});

}  // namespace belay::backends

#endif  // BELAY_BACKENDS_REGISTRY_H_
