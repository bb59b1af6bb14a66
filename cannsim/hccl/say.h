// SPDX-License-Identifier: Apache-2.0
// How a call of HCCL fails: a result for the caller, a message with an EI code
// (aclGetRecentErrMsg), and a line in the plog.
#ifndef BELAY_CANNSIM_HCCL_SAY_H_
#define BELAY_CANNSIM_HCCL_SAY_H_

#include <string>

#include "cannsim/private/runtime_link.h"
#include "hccl/hccl_types.h"

namespace cannsim::hccl {

inline constexpr char kBadVariable[] = "EI0001";
inline constexpr char kTimeout[] = "EI0002";
inline constexpr char kBadArgument[] = "EI0003";
inline constexpr char kBadRankTable[] = "EI0004";
inline constexpr char kMismatch[] = "EI0005";
inline constexpr char kNoConnection[] = "EI0006";
inline constexpr char kNoMemory[] = "EI0007";
inline constexpr char kInner[] = "EI9999";

// Returns `result`; `where` is the call.
HcclResult Refuse(HcclResult result, const char* ei, const char* where,
                  const std::string& text);

// For a task of a stream: returns `code`, an error number of acl.
int FailTask(int code, HcclResult result, const char* ei, const char* where,
             const std::string& text);

// Names the call that the thread is in while it lives.
class Scope {
 public:
  Scope(const char* api, const void* caller)
      : scope_(cannsim_enter(api, caller)) {}
  ~Scope() { cannsim_leave(scope_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  void* scope_;
};

#define CANNSIM_HCCL_CALL(api)                      \
  const void* caller = __builtin_return_address(0); \
  const ::cannsim::hccl::Scope call_scope(#api, caller)

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_SAY_H_
