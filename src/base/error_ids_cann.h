// SPDX-License-Identifier: Apache-2.0
// The ids of the Ascend road (cann_api, backends/cann, doctor --hello): like
// base/error_ids.h, but apart from it, since everything would be built anew for
// each of them.
#ifndef BELAY_BASE_ERROR_IDS_CANN_H_
#define BELAY_BASE_ERROR_IDS_CANN_H_

#include "base/error_ids.h"

namespace belay {

// X(constant, id, code), as BELAY_ERROR_IDS.
// clang-format off
#define BELAY_CANN_ERROR_IDS(X)                                                   \
  X(kCannNotFound,         "CANN-001", kUnavailable)        /* no libascendcl */  \
  X(kCannMissingSymbol,    "CANN-002", kUnimplemented)      /* a library is older than we need */ \
  X(kCannCallFailed,       "CANN-003", kInternal)           /* any code without an id of its own */ \
  X(kCannOutOfMemory,      "CANN-004", kResourceExhausted)                        \
  X(kCannHung,             "CANN-005", kDeadlineExceeded)   /* a bounded wait ended */ \
  X(kCannDeviceFault,      "CANN-006", kInternal)           /* 507xxx of a task */ \
  X(kCannRefused,          "CANN-007", kUnimplemented)      /* phase 1 says no */ \
  X(kCannNoDevice,         "CANN-008", kNotFound)           /* no such device */  \
  X(kCannNotReady,         "CANN-009", kUnavailable)        /* not ready in time after SetDevice */ \
  X(kCannWrongResult,      "CANN-010", kDataLoss)           /* an operator computes wrong numbers */ \
  X(kCannWorkspace,        "CANN-011", kResourceExhausted)  /* an operator wants more than planned */ \
  X(kCannNotStarted,       "CANN-012", kFailedPrecondition) /* the runtime could not be initialised */
// clang-format on

#define BELAY_DECLARE_ERROR_ID(name, text, status_code) \
  inline constexpr ErrorId name{text, absl::StatusCode::status_code};
BELAY_CANN_ERROR_IDS(BELAY_DECLARE_ERROR_ID)
#undef BELAY_DECLARE_ERROR_ID

}  // namespace belay

#endif  // BELAY_BASE_ERROR_IDS_CANN_H_
