// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/say.h"

#include <fmt/format.h>

namespace cannsim::hccl {
namespace {

// Module 5 is HCCL.
std::string LineOf(HcclResult result, const char* ei, const char* stage,
                   const std::string& text) {
  return fmt::format("[{}]errNo[{:#018x}] {}: {}", stage,
                     0x5000000U + static_cast<unsigned>(result), ei, text);
}

}  // namespace

HcclResult Refuse(HcclResult result, const char* ei, const char* where,
                  const std::string& text) {
  cannsim_say(ei, result, text.c_str());
  cannsim_log("HCCL", where, LineOf(result, ei, "Call", text).c_str());
  return result;
}

int FailTask(int code, HcclResult result, const char* ei, const char* where,
             const std::string& text) {
  cannsim_say(ei, code, text.c_str());
  cannsim_log("HCCL", where, LineOf(result, ei, "Exec", text).c_str());
  return code;
}

}  // namespace cannsim::hccl
