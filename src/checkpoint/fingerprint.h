// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_CHECKPOINT_FINGERPRINT_H_
#define BELAY_CHECKPOINT_FINGERPRINT_H_

#include <cstdint>
#include <string>

#include "base/error.h"

namespace belay::checkpoint {

// Tells checkpoints apart that are the same in all sizes: of each file of the
// folder (or of the one file) its name, size, time of last change, and the
// first and last 4 KiB. A copy counts as another checkpoint, and a change in
// the middle of a file that keeps its time is not seen: reading everything
// would take minutes. Never 0. Errors: SYS-001.
StatusOr<uint64_t> Fingerprint(const std::string& path);

}  // namespace belay::checkpoint

#endif  // BELAY_CHECKPOINT_FINGERPRINT_H_
