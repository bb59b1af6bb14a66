// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_MODEL_MEMORY_H_
#define BELAY_APPS_BELAY_MODEL_MEMORY_H_

#include <cstddef>

namespace belay::apps {

// What the system says is free for new memory (MemAvailable); 0 when it does
// not say.
size_t AvailableBytes();

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_MODEL_MEMORY_H_
