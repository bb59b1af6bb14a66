// SPDX-License-Identifier: Apache-2.0
// A code of CANN as a status: its name, the runtime's own words, and where.
#ifndef BELAY_CANN_API_ACL_ERROR_H_
#define BELAY_CANN_API_ACL_ERROR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cann_api/api.h"

namespace belay::cann_api {

// "ACL_ERROR_RT_STREAM_SYNC_TIMEOUT"; "" for a code that is not known.
std::string_view NameOfCode(int code);

// What was being done. -1 = not of interest.
struct Place {
  std::string_view call;  // "aclrtMalloc", "aclnnMatmul"
  int32_t device = -1;
  int32_t stream = -1;           // its id in the runtime
  std::string_view detail = "";  // operator of ours, bytes, ...
};

// The status of a call: OK for 0; else CANN-003 to CANN-008 by code. Takes the
// thread's recent error message, which reading clears.
Status StatusOf(const Api& api, int code, const Place& place);

// Whether the device or stream cannot be used after this status.
bool IsFatal(const Status& status);

}  // namespace belay::cann_api

#endif  // BELAY_CANN_API_ACL_ERROR_H_
