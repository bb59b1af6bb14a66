// SPDX-License-Identifier: Apache-2.0
// What the strict mode says: on stderr, once for each place in the program.
#ifndef BELAY_CANNSIM_RUNTIME_STRICT_FINDINGS_H_
#define BELAY_CANNSIM_RUNTIME_STRICT_FINDINGS_H_

#include <cstdint>
#include <string>

#include "cannsim/runtime/error.h"

namespace cannsim {

// A finding of catalogue entry `id` ("SIM-015") about `text` (one line or
// more). The same id from the same `place` of the program is said once.
void Finding(const char* id, const void* place, const std::string& text);

// Findings so far, repeated ones too.
uint64_t CountFindings();

// "aclrtMemcpy (call 12 of the process, from prog+0x1f)"
std::string Describe(const Call& call);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_STRICT_FINDINGS_H_
