// SPDX-License-Identifier: Apache-2.0
// The functions of the runtime and of the two-phase protocol that we call.
// Facts of the interface, with their sources in data/abi;
// scripts/abi/make_api_check.py holds them to it.
#ifndef BELAY_CANN_API_ABI_FUNCTIONS_H_
#define BELAY_CANN_API_ABI_FUNCTIONS_H_

#include "cann_api/abi/types.h"

// X(name, type, cost): `cost` is what is lost where the library does not have
// it; "" = nothing runs.
// clang-format off
#define BELAY_ACL_FUNCTIONS(X) \
  X(aclInit, aclError(const char*), "") \
  X(aclFinalize, aclError(), "the runtime is not shut down in order") \
  X(aclGetRecentErrMsg, const char*(), "errors come without the runtime's own words") \
  X(aclrtGetSocName, const char*(), "the chip is not known, so that no operator made for it is chosen") \
  X(aclrtGetDeviceCount, aclError(uint32_t*), "a wrong device number is found later") \
  X(aclrtSetDevice, aclError(int32_t), "") \
  X(aclrtResetDevice, aclError(int32_t), "the device is given back only when the process ends") \
  X(aclrtSynchronizeDeviceWithTimeout, aclError(int32_t), "a device that is not ready is waited for without a limit") \
  X(aclrtSynchronizeDevice, aclError(), "") \
  X(aclrtGetMemInfo, aclError(aclrtMemAttr, size_t*, size_t*), "memory is not checked against what the device has") \
  X(aclrtCreateContext, aclError(aclrtContext*, int32_t), "") \
  X(aclrtDestroyContext, aclError(aclrtContext), "the context is given back only when the process ends") \
  X(aclrtSetCurrentContext, aclError(aclrtContext), "") \
  X(aclrtCreateStream, aclError(aclrtStream*), "") \
  X(aclrtDestroyStream, aclError(aclrtStream), "the stream is given back only when the process ends") \
  X(aclrtDestroyStreamForce, aclError(aclrtStream), "a hung stream keeps the process from ending its device in order") \
  X(aclrtStreamGetId, aclError(aclrtStream, int32_t*), "errors do not say which stream") \
  X(aclrtSynchronizeStream, aclError(aclrtStream), "") \
  X(aclrtSynchronizeStreamWithTimeout, aclError(aclrtStream, int32_t), "a hung stream is waited for without a limit") \
  X(aclrtCreateEvent, aclError(aclrtEvent*), "several streams cannot wait for one another") \
  X(aclrtDestroyEvent, aclError(aclrtEvent), "events are given back only when the process ends") \
  X(aclrtRecordEvent, aclError(aclrtEvent, aclrtStream), "several streams cannot wait for one another") \
  X(aclrtStreamWaitEvent, aclError(aclrtStream, aclrtEvent), "several streams cannot wait for one another") \
  X(aclrtMalloc, aclError(void**, size_t, aclrtMemMallocPolicy), "") \
  X(aclrtFree, aclError(void*), "device memory is given back only when the process ends") \
  X(aclrtMallocHost, aclError(void**, size_t), "") \
  X(aclrtFreeHost, aclError(void*), "pinned memory is given back only when the process ends") \
  X(aclrtMemcpy, aclError(void*, size_t, const void*, size_t, aclrtMemcpyKind), "") \
  X(aclrtMemcpyAsync, aclError(void*, size_t, const void*, size_t, aclrtMemcpyKind, aclrtStream), "") \
  X(aclCreateTensor, aclTensor*(const int64_t*, uint64_t, aclDataType, const int64_t*, int64_t, aclFormat, const int64_t*, uint64_t, void*), "") \
  X(aclDestroyTensor, aclnnStatus(const aclTensor*), "descriptors leak") \
  X(aclCreateScalar, aclScalar*(void*, aclDataType), "") \
  X(aclDestroyScalar, aclnnStatus(const aclScalar*), "descriptors leak") \
  X(aclCreateIntArray, aclIntArray*(const int64_t*, uint64_t), "") \
  X(aclDestroyIntArray, aclnnStatus(const aclIntArray*), "descriptors leak") \
  X(aclCreateTensorList, aclTensorList*(const aclTensor* const*, uint64_t), "no grouped products: routed experts do not run") \
  X(aclDestroyTensorList, aclnnStatus(const aclTensorList*), "descriptors leak") \
  X(aclSetAclOpExecutorRepeatable, aclnnStatus(aclOpExecutor*), "executors are made anew for each launch") \
  X(aclDestroyAclOpExecutor, aclnnStatus(aclOpExecutor*), "executors are made anew for each launch")
// clang-format on

#endif  // BELAY_CANN_API_ABI_FUNCTIONS_H_
