// SPDX-License-Identifier: Apache-2.0
// Start and end, messages, versions, what the chip can do.
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "acl/acl.h"
#include "base/float_formats.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/log/log.h"
#include "cannsim/runtime/process.h"

namespace {

using cannsim::Fail;
using cannsim::Process;

constexpr int kMaxNesting = 10;

// The file of aclInit: JSON of at most ten levels; what it says is not used.
int CheckConfig(const char* path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Fail(ACL_ERROR_INVALID_FILE, "{}: cannot be read", path);
  int depth = 0;
  const auto look = [&depth](int level, nlohmann::json::parse_event_t,
                             nlohmann::json&) {
    depth = std::max(depth, level + 1);
    return level <= kMaxNesting;
  };
  const auto root = nlohmann::json::parse(in, look, false);
  if (depth > kMaxNesting) {
    return Fail(ACL_ERROR_PARSE_FILE, "{}: nested deeper than {} levels", path,
                kMaxNesting);
  }
  if (!root.is_object()) {
    return Fail(ACL_ERROR_PARSE_FILE, "{}: not a JSON object", path);
  }
  return ACL_SUCCESS;
}

constexpr aclCannAttr kAttributes[] = {
    ACL_CANN_ATTR_INF_NAN, ACL_CANN_ATTR_BF16, ACL_CANN_ATTR_JIT_COMPILE};

bool HasAttribute(aclCannAttr attribute) {
  const bool old =
      Process::Get().profile().generation == cannsim::Generation::k310P;
  return attribute == ACL_CANN_ATTR_JIT_COMPILE || !old;
}

}  // namespace

extern "C" {

aclError aclInit(const char* configPath) {
  CANNSIM_CALL(aclInit);
  if (configPath != nullptr && configPath[0] != '\0') {
    if (const int code = CheckConfig(configPath); code != 0) return code;
  }
  return Process::Get().Init();
}

aclError aclFinalize() {
  CANNSIM_CALL(aclFinalize);
  return Process::Get().Finalize();
}

aclError aclFinalizeReference(uint64_t* refCount) {
  CANNSIM_CALL(aclFinalizeReference);
  return Process::Get().FinalizeReference(refCount);
}

const char* aclGetRecentErrMsg() { return cannsim::TakeMessage(); }

aclError aclrtPeekAtLastError(aclrtLastErrLevel) {
  return cannsim::PeekLastError();
}

aclError aclrtGetLastError(aclrtLastErrLevel) {
  return cannsim::TakeLastError();
}

aclError aclsysGetVersionStr(char* pkgName, char* versionStr) {
  CANNSIM_CALL(aclsysGetVersionStr);
  if (pkgName == nullptr || versionStr == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "null argument");
  }
  std::strcpy(versionStr, "8.5.0");
  return ACL_SUCCESS;
}

void aclAppLog(aclLogLevel logLevel, const char* func, const char* file,
               uint32_t line, const char* fmt, ...) {
  const auto level = static_cast<cannsim::LogLevel>(
      std::clamp<int>(logLevel, ACL_DEBUG, ACL_ERROR));
  if (fmt == nullptr || !cannsim::Logs(level, "APP")) return;
  char text[1024];
  va_list args;
  va_start(args, fmt);
  std::vsnprintf(text, sizeof(text), fmt, args);
  va_end(args);
  cannsim::Log(
      level, "APP", func == nullptr ? "" : func,
      fmt::format("{}:{}: {}", file == nullptr ? "" : file, line, text));
}

float aclFloat16ToFloat(aclFloat16 value) { return belay::F32FromF16(value); }

aclFloat16 aclFloatToFloat16(float value) { return belay::F16FromF32(value); }

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList,
                                 size_t* num) {
  CANNSIM_CALL(aclGetCannAttributeList);
  if (cannAttrList == nullptr || num == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "null argument");
  }
  // An old chip has only the last of them.
  const size_t n_missing = HasAttribute(ACL_CANN_ATTR_BF16) ? 0 : 2;
  *cannAttrList = kAttributes + n_missing;
  *num = std::size(kAttributes) - n_missing;
  return ACL_SUCCESS;
}

aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value) {
  CANNSIM_CALL(aclGetCannAttribute);
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, "null argument");
  if (cannAttr < ACL_CANN_ATTR_INF_NAN ||
      cannAttr > ACL_CANN_ATTR_JIT_COMPILE) {
    return Fail(ACL_ERROR_INVALID_PARAM, "attribute {} does not exist",
                static_cast<int>(cannAttr));
  }
  *value = HasAttribute(cannAttr) ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo,
                                int64_t* value) {
  CANNSIM_CALL(aclGetDeviceCapability);
  if (value == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, "null argument");
  Process& process = Process::Get();
  const int code = process.CheckDevice(static_cast<int>(deviceId));
  if (code != 0) return code;
  switch (deviceInfo) {
    case ACL_DEVICE_INFO_AI_CORE_NUM:
      *value = process.profile().n_cube_cores;
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_VECTOR_CORE_NUM:
      *value = process.profile().n_vector_cores;
      return ACL_SUCCESS;
    case ACL_DEVICE_INFO_L2_SIZE:
      *value = static_cast<int64_t>(process.profile().l2_bytes);
      return ACL_SUCCESS;
    default:
      return Fail(ACL_ERROR_INVALID_PARAM, "information {} does not exist",
                  static_cast<int>(deviceInfo));
  }
}

}  // extern "C"
