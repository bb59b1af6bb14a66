// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_MODEL_MEMORY_H_
#define BELAY_APPS_BELAY_MODEL_MEMORY_H_

#include <cstddef>

#include "ops/backend.h"

namespace belay::apps {

// What the system says is free for new memory (MemAvailable); 0 when it does
// not say.
size_t AvailableBytes();
// What a back end can still allocate: of its device, or of the system.
size_t AvailableBytes(const ops::Backend& backend);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_MODEL_MEMORY_H_
