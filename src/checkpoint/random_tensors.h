// SPDX-License-Identifier: Apache-2.0
// Random weights that behave: activations neither vanish nor explode. Private
// to this room.
#ifndef BELAY_CHECKPOINT_RANDOM_TENSORS_H_
#define BELAY_CHECKPOINT_RANDOM_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "spec/config.h"
#include "spec/tensors.h"

namespace belay::checkpoint {

// Writes the elements from `first_element` on, as many as `out` holds, in the
// tensor's dtype. The same (seed, tensor name, element) gives the same value,
// whatever the pieces. `first_element` must be a multiple of 8 and, for tid2eid
// tables, of a row.
void FillRandom(const spec::ModelConfig& config,
                const spec::ExpectedTensor& tensor, uint64_t seed,
                int64_t first_element, std::span<std::byte> out);

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_RANDOM_TENSORS_H_
