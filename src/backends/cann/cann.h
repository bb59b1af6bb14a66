// SPDX-License-Identifier: Apache-2.0
// The operators on an Ascend NPU, through CANN's libraries found at run time.
// Operators are compositions of stock aclnn operators; the lists of
// implementations name the fused ones, and whether they are used.
#ifndef BELAY_BACKENDS_CANN_CANN_H_
#define BELAY_BACKENDS_CANN_CANN_H_

#include <functional>
#include <memory>
#include <string>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/numerics.h"

namespace belay::cann {

struct Options {
  // The environment's variables, for where CANN is; read in apps.
  std::function<std::string(const char*)> variable = {};
  int32_t device = 0;
  int32_t ready_timeout_ms = 30000;  // of the device after the start
  // Of a step; a stream that is not done by then is taken for hung.
  int32_t step_timeout_ms = 600000;
};

// Starts the device: libraries, init, device, ready, context, stream, pinned
// memory. Errors: CANN-001, -002, -008, -009, -012 and what a call says;
// BACK-002 for numerics or chips that it cannot take.
StatusOr<std::unique_ptr<ops::Backend>> Create(const ops::Numerics& numerics,
                                               const Options& options);

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_CANN_H_
