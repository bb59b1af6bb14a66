// SPDX-License-Identifier: Apache-2.0
// Calls that exist so that clients link, and that say no. Each is a gap of the
// simulator, listed in docs/cannsim.md; none pretends to have done something.
#include "acl/acl.h"
#include "acl/acl_op.h"
#include "cannsim/runtime/error.h"

namespace {

int No(const char* what) {
  return cannsim::Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                       "cannsim does not simulate {}", what);
}

constexpr char kProcesses[] = "memory that processes share";
constexpr char kErrors[] = "memory errors";

}  // namespace

extern "C" {

aclError aclrtDeviceGetUuid(int32_t, aclrtUuid*) {
  CANNSIM_CALL(aclrtDeviceGetUuid);
  return No("device ids");
}

aclError aclrtDeviceTaskAbort(int32_t, uint32_t) {
  CANNSIM_CALL(aclrtDeviceTaskAbort);
  return No("aborting tasks");
}

aclError aclrtGetErrorVerbose(int32_t, aclrtErrorInfo*) {
  CANNSIM_CALL(aclrtGetErrorVerbose);
  return No(kErrors);
}

aclError aclrtRepairError(int32_t, const aclrtErrorInfo*) {
  CANNSIM_CALL(aclrtRepairError);
  return No(kErrors);
}

aclError aclrtGetMemUceInfo(int32_t, aclrtMemUceInfo*, size_t, size_t*) {
  CANNSIM_CALL(aclrtGetMemUceInfo);
  return No(kErrors);
}

aclError aclrtMemUceRepair(int32_t, aclrtMemUceInfo*, size_t) {
  CANNSIM_CALL(aclrtMemUceRepair);
  return No(kErrors);
}

aclError aclrtMemExportToShareableHandle(aclrtDrvMemHandle, aclrtMemHandleType,
                                         uint64_t, uint64_t*) {
  CANNSIM_CALL(aclrtMemExportToShareableHandle);
  return No(kProcesses);
}

aclError aclrtMemImportFromShareableHandle(uint64_t, int32_t,
                                           aclrtDrvMemHandle*) {
  CANNSIM_CALL(aclrtMemImportFromShareableHandle);
  return No(kProcesses);
}

aclError aclrtMemSetPidToShareableHandle(uint64_t, int32_t*, size_t) {
  CANNSIM_CALL(aclrtMemSetPidToShareableHandle);
  return No(kProcesses);
}

aclError aclrtIpcMemGetExportKey(void*, size_t, char*, size_t, uint64_t) {
  CANNSIM_CALL(aclrtIpcMemGetExportKey);
  return No(kProcesses);
}

aclError aclrtIpcMemClose(const char*) {
  CANNSIM_CALL(aclrtIpcMemClose);
  return No(kProcesses);
}

aclError aclrtIpcMemImportByKey(void**, const char*, uint64_t) {
  CANNSIM_CALL(aclrtIpcMemImportByKey);
  return No(kProcesses);
}

aclError aclrtIpcMemSetImportPid(const char*, int32_t*, size_t) {
  CANNSIM_CALL(aclrtIpcMemSetImportPid);
  return No(kProcesses);
}

aclError aclmdlRICaptureToModelRIBegin(aclrtStream, aclmdlRI,
                                       aclmdlRICaptureMode) {
  CANNSIM_CALL(aclmdlRICaptureToModelRIBegin);
  return No("capturing into another capture's model");
}

// The graph engine's single operators.

aclopAttr* aclopCreateAttr() {
  CANNSIM_CALL(aclopCreateAttr);
  No("the graph engine");
  return nullptr;
}

void aclopDestroyAttr(const aclopAttr*) {}

#define CANNSIM_NO_ATTR(name, ...)                      \
  aclError name(aclopAttr*, const char*, __VA_ARGS__) { \
    CANNSIM_CALL(name);                                 \
    return No("the graph engine");                      \
  }

CANNSIM_NO_ATTR(aclopSetAttrBool, uint8_t)
CANNSIM_NO_ATTR(aclopSetAttrInt, int64_t)
CANNSIM_NO_ATTR(aclopSetAttrFloat, float)
CANNSIM_NO_ATTR(aclopSetAttrString, const char*)
CANNSIM_NO_ATTR(aclopSetAttrDataType, aclDataType)
CANNSIM_NO_ATTR(aclopSetAttrListBool, int, const uint8_t*)
CANNSIM_NO_ATTR(aclopSetAttrListInt, int, const int64_t*)
CANNSIM_NO_ATTR(aclopSetAttrListFloat, int, const float*)
CANNSIM_NO_ATTR(aclopSetAttrListListInt, int, const int*,
                const int64_t* const[])

aclError aclopExecuteV2(const char*, int, aclTensorDesc*[], aclDataBuffer*[],
                        int, aclTensorDesc*[], aclDataBuffer*[], aclopAttr*,
                        aclrtStream) {
  CANNSIM_CALL(aclopExecuteV2);
  return No("the graph engine");
}

}  // extern "C"
