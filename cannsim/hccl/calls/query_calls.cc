// SPDX-License-Identifier: Apache-2.0
// The C interface: questions about communicators, settings, and what is not
// simulated.
#include <fmt/format.h>

#include <atomic>
#include <cstring>

#include "cannsim/hccl/calls/check.h"
#include "cannsim/hccl/say.h"
#include "hccl/hccl.h"

namespace cannsim::hccl {
namespace {

constexpr const char* kResults[] = {
    "success",
    "an argument is wrong",
    "a pointer is null",
    "out of memory",
    "an error inside HCCL",
    "not supported",
    "not found",
    "not available",
    "a call of the system failed",
    "waited too long",
    "a file cannot be opened",
    "no connection (TCP)",
    "no connection (RoCE)",
    "a transfer failed (TCP)",
    "a transfer failed (RoCE)",
    "the runtime failed",
    "the driver failed",
    "profiling failed",
    "CCE failed",
    "the network failed",
    "try again",
    "the other side failed",
    "the communicator is suspended",
    "a retry failed",
    "out of device memory",
};

// Reductions have one order here, so that it changes nothing.
std::atomic<int32_t> g_deterministic{0};

HcclResult NotSimulated(const char* api) {
  return Refuse(HCCL_E_NOT_SUPPORT, kBadArgument, api,
                "cannsim does not simulate this");
}

}  // namespace
}  // namespace cannsim::hccl

using cannsim::hccl::Check;
using cannsim::hccl::kBadArgument;
using cannsim::hccl::NotSimulated;
using cannsim::hccl::Refuse;

extern "C" {

HcclResult HcclGetRankSize(HcclComm comm, uint32_t* rankSize) {
  CANNSIM_HCCL_CALL(HcclGetRankSize);
  Check check("HcclGetRankSize", comm);
  check.NotNull(rankSize, "rankSize");
  if (check.ok()) *rankSize = check.n_ranks();
  return check.result();
}

HcclResult HcclGetRankId(HcclComm comm, uint32_t* rank) {
  CANNSIM_HCCL_CALL(HcclGetRankId);
  Check check("HcclGetRankId", comm);
  check.NotNull(rank, "rank");
  if (check.ok()) *rank = check.rank();
  return check.result();
}

HcclResult HcclGetCommName(HcclComm comm, char* commName) {
  CANNSIM_HCCL_CALL(HcclGetCommName);
  Check check("HcclGetCommName", comm);
  check.NotNull(commName, "commName");
  if (check.ok()) {
    const std::string& name = check.communicator()->name();
    std::memcpy(commName, name.c_str(), name.size() + 1);  // at most 128
  }
  return check.result();
}

HcclResult HcclGetCommAsyncError(HcclComm comm, HcclResult* asyncError) {
  CANNSIM_HCCL_CALL(HcclGetCommAsyncError);
  Check check("HcclGetCommAsyncError", comm);
  check.NotNull(asyncError, "asyncError");
  if (check.ok()) *asyncError = check.communicator()->async_error();
  return check.result();
}

const char* HcclGetErrorString(HcclResult code) {
  const auto index = static_cast<size_t>(code);
  return index < std::size(cannsim::hccl::kResults)
             ? cannsim::hccl::kResults[index]
             : "no result of HCCL";
}

// The fields that are read here: buffer size, determinism, name.
uint32_t HcclGetCommConfigCapability() { return 3; }

HcclResult HcclSetConfig(HcclConfig config, HcclConfigValue configValue) {
  CANNSIM_HCCL_CALL(HcclSetConfig);
  if (config != HCCL_DETERMINISTIC || configValue.value < 0 ||
      configValue.value > 1) {
    return Refuse(HCCL_E_PARA, kBadArgument, "HcclSetConfig",
                  fmt::format("setting {} to {}", static_cast<int>(config),
                              configValue.value));
  }
  cannsim::hccl::g_deterministic = configValue.value;
  return HCCL_SUCCESS;
}

HcclResult HcclGetConfig(HcclConfig config, HcclConfigValue* configValue) {
  CANNSIM_HCCL_CALL(HcclGetConfig);
  if (configValue == nullptr) {
    return Refuse(HCCL_E_PTR, kBadArgument, "HcclGetConfig",
                  "configValue is null");
  }
  if (config != HCCL_DETERMINISTIC) {
    return Refuse(HCCL_E_PARA, kBadArgument, "HcclGetConfig",
                  fmt::format("setting {}", static_cast<int>(config)));
  }
  configValue->value = cannsim::hccl::g_deterministic;
  return HCCL_SUCCESS;
}

HcclResult HcclCommSuspend(HcclComm) { return NotSimulated("HcclCommSuspend"); }

HcclResult HcclCommResume(HcclComm) { return NotSimulated("HcclCommResume"); }

// Their arguments are in no header of ours (data/abi: declared false), and are
// not looked at.
HcclResult HcclCommSetMemoryRange() {
  return NotSimulated("HcclCommSetMemoryRange");
}

HcclResult HcclCommUnsetMemoryRange() {
  return NotSimulated("HcclCommUnsetMemoryRange");
}

HcclResult HcclCommActivateCommMemory() {
  return NotSimulated("HcclCommActivateCommMemory");
}

HcclResult HcclCommDeactivateCommMemory() {
  return NotSimulated("HcclCommDeactivateCommMemory");
}

}  // extern "C"
