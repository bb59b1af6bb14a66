// SPDX-License-Identifier: Apache-2.0
// Descriptors of operator arguments and executors (libnnopbase.so). Dims,
// strides and offsets count elements, outermost first. Everything that is
// passed in is copied; only lists own their members.
#ifndef BELAY_CANNSIM_INCLUDE_ACLNN_ACL_META_H_
#define BELAY_CANNSIM_INCLUDE_ACLNN_ACL_META_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t aclnnStatus;

typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclScalarList aclScalarList;
typedef struct aclOpExecutor aclOpExecutor;

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum,
                           aclDataType dataType, const int64_t* stride,
                           int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum,
                           void* tensorData);
aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims,
                          uint64_t viewDimsNum, aclDataType dataType,
                          const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims,
                          uint64_t storageDimsNum, void* tensorData);
aclScalar* aclCreateScalar(void* value, aclDataType dataType);
aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size);
aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size);
aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size);
aclTensorList* aclCreateTensorList(const aclTensor* const* value,
                                   uint64_t size);
aclScalarList* aclCreateScalarList(const aclScalar* const* value,
                                   uint64_t size);

aclnnStatus aclDestroyTensor(const aclTensor* tensor);
aclnnStatus aclDestroyScalar(const aclScalar* scalar);
aclnnStatus aclDestroyIntArray(const aclIntArray* array);
aclnnStatus aclDestroyFloatArray(const aclFloatArray* array);
aclnnStatus aclDestroyBoolArray(const aclBoolArray* array);
aclnnStatus aclDestroyTensorList(const aclTensorList* list);
aclnnStatus aclDestroyScalarList(const aclScalarList* list);

// The callee allocates the array with new[], the caller frees it.
aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims,
                            uint64_t* viewDimsNum);
aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum);
aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum);
aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset);
aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format);
aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType);
aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size);
aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size);
aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size);
aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList,
                                 uint64_t* size);
aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList,
                                 uint64_t* size);

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr);
aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr);

// Executors that run more than once, with other addresses each time.
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor);
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor);
aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index,
                             aclTensor* tensor, void* addr);
aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index,
                                  aclTensor* tensor, void* addr);
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index,
                                   aclTensor* tensor, void* addr);
aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor* executor, size_t irIndex,
                                    const size_t relativeIndex,
                                    aclTensorList* tensors, void* addr);
aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor* executor,
                                         size_t irIndex,
                                         const size_t relativeIndex,
                                         aclTensorList* tensors, void* addr);
aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor* executor,
                                          size_t irIndex,
                                          const size_t relativeIndex,
                                          aclTensorList* tensors, void* addr);

#ifdef __cplusplus
}
#endif

#endif  // BELAY_CANNSIM_INCLUDE_ACLNN_ACL_META_H_
