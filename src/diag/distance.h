// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_DIAG_DISTANCE_H_
#define BELAY_DIAG_DISTANCE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace belay::diag {

// Edits between two words: a letter changed, added or left out, or two
// neighbours swapped (the commonest slip: CPKT for CKPT).
size_t EditDistance(std::string_view a, std::string_view b);

// `text` with ASCII letters in capitals, as ids and symbols are compared.
std::string Upper(std::string_view text);

}  // namespace belay::diag

#endif  // BELAY_DIAG_DISTANCE_H_
