// SPDX-License-Identifier: Apache-2.0
// Types that every part of acl shares: dtypes, formats, handles, data buffers
// and tensor descriptors. Our own declarations of a public interface; each name
// and number is in data/abi/acl.json with its source, and held to it when
// cannsim is built. Usable from C and C++.
#ifndef BELAY_CANNSIM_INCLUDE_ACL_ACL_BASE_H_
#define BELAY_CANNSIM_INCLUDE_ACL_ACL_BASE_H_

#include <stddef.h>
#include <stdint.h>

#include "acl/error_codes.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_TENSOR_SHAPE_RANGE_NUM 2
#define ACL_UNKNOWN_RANK 0xFFFFFFFFFFFFFFFE

typedef int aclError;
typedef uint16_t aclFloat16;  // the bits of an IEEE binary16

typedef void* aclrtStream;
typedef void* aclrtEvent;
typedef void* aclrtContext;

typedef struct aclDataBuffer aclDataBuffer;
typedef struct aclTensorDesc aclTensorDesc;

typedef enum {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_UINT64 = 10,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_STRING = 13,
  ACL_COMPLEX64 = 16,
  ACL_COMPLEX128 = 17,
  ACL_BF16 = 27,
  ACL_INT4 = 29,
  ACL_UINT1 = 30,
  ACL_COMPLEX32 = 33,
  ACL_HIFLOAT8 = 34,
  ACL_FLOAT8_E5M2 = 35,
  ACL_FLOAT8_E4M3FN = 36,
  ACL_FLOAT8_E8M0 = 37,
  ACL_FLOAT6_E3M2 = 38,
  ACL_FLOAT6_E2M3 = 39,
  ACL_FLOAT4_E2M1 = 40,
  ACL_FLOAT4_E1M2 = 41
} aclDataType;

typedef enum {
  ACL_FORMAT_UNDEFINED = -1,
  ACL_FORMAT_NCHW = 0,
  ACL_FORMAT_NHWC = 1,
  ACL_FORMAT_ND = 2,
  ACL_FORMAT_NC1HWC0 = 3,
  ACL_FORMAT_FRACTAL_Z = 4,
  ACL_FORMAT_NC1HWC0_C04 = 12,
  ACL_FORMAT_HWCN = 16,
  ACL_FORMAT_NDHWC = 27,
  ACL_FORMAT_FRACTAL_NZ = 29,
  ACL_FORMAT_NCDHW = 30,
  ACL_FORMAT_NDC1HWC0 = 32,
  ACL_FRACTAL_Z_3D = 33,  // really without FORMAT
  ACL_FORMAT_NC = 35,
  ACL_FORMAT_NCL = 47,
  ACL_FORMAT_FRACTAL_NZ_C0_16 = 50,
  ACL_FORMAT_FRACTAL_NZ_C0_32 = 51,
  ACL_FORMAT_FRACTAL_NZ_C0_2 = 52,
  ACL_FORMAT_FRACTAL_NZ_C0_4 = 53,
  ACL_FORMAT_FRACTAL_NZ_C0_8 = 54
} aclFormat;

typedef enum {
  ACL_MEMTYPE_DEVICE = 0,
  ACL_MEMTYPE_HOST = 1,
  ACL_MEMTYPE_HOST_COMPILE_INDEPENDENT = 2
} aclMemType;

typedef enum {
  ACL_DEBUG = 0,
  ACL_INFO = 1,
  ACL_WARNING = 2,
  ACL_ERROR = 3
} aclLogLevel;

typedef enum {
  ACL_CANN_ATTR_UNDEFINED = -1,
  ACL_CANN_ATTR_INF_NAN = 0,
  ACL_CANN_ATTR_BF16 = 1,
  ACL_CANN_ATTR_JIT_COMPILE = 2
} aclCannAttr;

typedef enum {
  ACL_DEVICE_INFO_UNDEFINED = -1,
  ACL_DEVICE_INFO_AI_CORE_NUM = 0,
  ACL_DEVICE_INFO_VECTOR_CORE_NUM = 1,
  ACL_DEVICE_INFO_L2_SIZE = 2
} aclDeviceInfo;

// Half floats as bits; the second rounds to nearest even.
float aclFloat16ToFloat(aclFloat16 value);
aclFloat16 aclFloatToFloat16(float value);

// Bytes of one element; 0 where an element is no whole number of bytes.
size_t aclDataTypeSize(aclDataType dataType);

// A pointer with a size. It owns nothing.
aclDataBuffer* aclCreateDataBuffer(void* data, size_t size);
aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer);
aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data,
                             size_t size);
void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer);
size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer);

// Descriptors of the older single-operator and model interfaces.
aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims,
                                   const int64_t* dims, aclFormat format);
void aclDestroyTensorDesc(const aclTensorDesc* desc);
aclError aclSetTensorShapeRange(
    aclTensorDesc* desc, size_t dimsCount,
    int64_t dimsRange[][ACL_TENSOR_SHAPE_RANGE_NUM]);
aclDataType aclGetTensorDescType(const aclTensorDesc* desc);
aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc);
size_t aclGetTensorDescSize(const aclTensorDesc* desc);
size_t aclGetTensorDescElementCount(const aclTensorDesc* desc);
size_t aclGetTensorDescNumDims(const aclTensorDesc* desc);
int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index);
aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index,
                               int64_t* dimSize);
void aclSetTensorDescName(aclTensorDesc* desc, const char* name);
const char* aclGetTensorDescName(aclTensorDesc* desc);
aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format);
aclError aclSetTensorShape(aclTensorDesc* desc, int numDims,
                           const int64_t* dims);
aclError aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer,
                           size_t length);
aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType);

// A line of the client's own in the log.
void aclAppLog(aclLogLevel logLevel, const char* func, const char* file,
               uint32_t line, const char* fmt, ...);

// What went wrong last in this thread; reading clears it. Never null here,
// empty when there is nothing.
const char* aclGetRecentErrMsg(void);

aclError aclGetCannAttributeList(const aclCannAttr** cannAttrList, size_t* num);
aclError aclGetCannAttribute(aclCannAttr cannAttr, int32_t* value);
aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo,
                                int64_t* value);

#ifdef __cplusplus
}
#endif

#endif  // BELAY_CANNSIM_INCLUDE_ACL_ACL_BASE_H_
