// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_DOCTOR_MACHINE_BUNDLE_H_
#define BELAY_TOOLKIT_DOCTOR_MACHINE_BUNDLE_H_

#include <string>

#include "base/error.h"

namespace belay::doctor {

// The text of machine.json in a tar archive, compressed or not; at most 64 MiB
// of it. DOCT-001.
StatusOr<std::string> UnpackBundle(const std::string& bytes,
                                   const std::string& where);

// A tar archive with `text` as machine.json, compressed as the end of `name`
// says (.zst, .gz; else not). SYS-003 when there is no memory for it.
StatusOr<std::string> PackBundle(const std::string& text,
                                 const std::string& name);

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_MACHINE_BUNDLE_H_
