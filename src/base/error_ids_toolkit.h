// SPDX-License-Identifier: Apache-2.0
// The ids of tools that nothing else emits: like base/error_ids.h, but apart
// from it, since everything would be built anew for each id of a tool.
#ifndef BELAY_BASE_ERROR_IDS_TOOLKIT_H_
#define BELAY_BASE_ERROR_IDS_TOOLKIT_H_

#include "base/error_ids.h"

namespace belay {

// X(constant, id, code), as BELAY_ERROR_IDS.
// clang-format off
#define BELAY_TOOLKIT_ERROR_IDS(X)                                                \
  /* LOGS: diagnosis of logs; 020 on: what it finds (data/catalogue/pitfalls) */  \
  X(kLogsBadArchive,       "LOGS-001", kDataLoss)          /* damaged, or no archive */ \
  X(kLogsArchiveLimit,     "LOGS-002", kResourceExhausted) /* warning: unpacks to too much */ \
  /* DOCT: the environment check; 010 on: what it finds, likewise */              \
  X(kDoctBadBundle,        "DOCT-001", kDataLoss)          /* not a recorded machine */ \
  /* TUNE: settings of the host; 010 on: what only a person can mend */           \
  X(kTuneAlready,          "TUNE-001", kFailedPrecondition) /* an earlier --apply is in effect */ \
  X(kTuneBadRecord,        "TUNE-002", kDataLoss)          /* not a record of old values */ \
  X(kTuneNotRestored,      "TUNE-003", kUnavailable)       /* an old value cannot be written */ \
  X(kTuneMeasure,          "TUNE-004", kFailedPrecondition) /* the measured command fails */ \
  /* TOP: the live view */                                                        \
  X(kTopNoMetrics,         "TOP-001", kUnavailable)        /* no /metrics of an engine */
// clang-format on

#define BELAY_DECLARE_ERROR_ID(name, text, status_code) \
  inline constexpr ErrorId name{text, absl::StatusCode::status_code};
BELAY_TOOLKIT_ERROR_IDS(BELAY_DECLARE_ERROR_ID)
#undef BELAY_DECLARE_ERROR_ID

}  // namespace belay

#endif  // BELAY_BASE_ERROR_IDS_TOOLKIT_H_
