// SPDX-License-Identifier: Apache-2.0
// Names -> back ends.
#ifndef BELAY_BACKENDS_REGISTRY_H_
#define BELAY_BACKENDS_REGISTRY_H_

#include <functional>
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

// "cpu", "ref" and "cann", the default first.
std::vector<std::string_view> Names();

struct Options {
  // Of cpu, see backends/cpu/cpu.h.
  std::string simd_target;
  const Topology* topology = nullptr;
  // Of cann, see backends/cann/cann.h: the value of a variable or "".
  std::function<std::string(const char*)> variable = {};
  int32_t device = 0;
  int32_t device_timeout_ms = 600000;
};

// The back end called `name`, running on `pool` (borrowed; ref is single
// threaded and ignores it, as cann does). Errors: ARG-006 (no such name),
// ARG-009 (no such target), BACK-001 or BACK-002 with the reason of the
// refusal; of cann also CANN-001 and what else can fail at the start of a
// device.
StatusOr<std::unique_ptr<ops::Backend>> Create(std::string_view name,
                                               const ops::Numerics& numerics,
                                               ThreadPool* pool,
                                               const Options& options = {});

}  // namespace belay::backends

#endif  // BELAY_BACKENDS_REGISTRY_H_
