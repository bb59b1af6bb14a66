// SPDX-License-Identifier: Apache-2.0
// Types and numbers of CANN's C interface, as far as we use them, in our own
// namespace: nothing of CANN is included or linked. Facts with their sources in
// data/abi; scripts/abi/make_api_check.py holds these to them at build time.
#ifndef BELAY_CANN_API_ABI_TYPES_H_
#define BELAY_CANN_API_ABI_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace belay::cann_api {

using aclError = int;
using aclnnStatus = int32_t;
using aclrtStream = void*;
using aclrtEvent = void*;
using aclrtContext = void*;

struct aclTensor;
struct aclScalar;
struct aclIntArray;
struct aclTensorList;
struct aclOpExecutor;

enum aclDataType : int {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_INT64 = 9,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_BF16 = 27,
};

enum aclFormat : int {
  ACL_FORMAT_ND = 2,
};

enum aclrtMemcpyKind : int {
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
};

enum aclrtMemMallocPolicy : int {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
};

enum aclrtMemAttr : int {
  ACL_HBM_MEM = 1,
};

}  // namespace belay::cann_api

#endif  // BELAY_CANN_API_ABI_TYPES_H_
