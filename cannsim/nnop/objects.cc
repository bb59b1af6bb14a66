// SPDX-License-Identifier: Apache-2.0
// Making, asking and destroying descriptors.
#include "cannsim/nnop/objects.h"

#include <algorithm>
#include <cstring>

#include "aclnn/aclnn_base.h"
#include "cannsim/nnop/live.h"
#include "cannsim/private/runtime_link.h"

// The place of the program that calls.
#define CALLER __builtin_return_address(0)

namespace {

constexpr uint64_t kMaxDims = 64;

int Null(const char* what) {
  return cannsim_fail(ACLNN_ERR_PARAM_NULLPTR, what);
}

// Whether a tensor can be described so: sizes that do not overflow.
bool AreSane(const int64_t* dims, uint64_t n, const int64_t* strides) {
  if (n > kMaxDims || (n > 0 && dims == nullptr)) return false;
  int64_t extent = 1;
  for (uint64_t i = 0; i < n; ++i) {
    int64_t step = 0;
    const int64_t stride = strides == nullptr ? 1 : strides[i];
    if (dims[i] < 0 || stride < 0 ||
        __builtin_mul_overflow(dims[i], stride, &step) ||
        __builtin_add_overflow(extent, step, &extent)) {
      return false;
    }
  }
  int64_t n_elements = 1;
  for (uint64_t i = 0; i < n; ++i) {
    if (__builtin_mul_overflow(n_elements, dims[i], &n_elements)) return false;
  }
  // 2^56 elements of 16 bytes still have a size.
  return extent <= (int64_t{1} << 56) && n_elements <= (int64_t{1} << 56);
}

template <typename T>
aclnnStatus Destroy(const T* object, const char* kind, const void* caller) {
  if (!cannsim::NoteGone(object, kind, caller)) return ACLNN_ERR_PARAM_INVALID;
  delete object;  // null is tolerated, as clients expect
  return ACLNN_SUCCESS;
}

template <typename Array, typename Value>
Array* MakeArray(const Value* values, uint64_t n) {
  if (values == nullptr && n > 0) {
    Null("the values are null");
    return nullptr;
  }
  auto* array = new Array;
  array->values.assign(values, values + n);
  return array;
}

template <typename T>
aclnnStatus SizeOf(const T* array, uint64_t* size) {
  if (array == nullptr || size == nullptr) return Null("null argument");
  *size = array->values.size();
  return ACLNN_SUCCESS;
}

template <typename List>
aclnnStatus MembersOf(const List* list, uint64_t* size) {
  if (list == nullptr || size == nullptr) return Null("null argument");
  *size = list->members.size();
  return ACLNN_SUCCESS;
}

aclnnStatus GiveArray(const std::vector<int64_t>& values, int64_t** out,
                      uint64_t* n) {
  if (out == nullptr || n == nullptr) return Null("null argument");
  *out = new int64_t[std::max<size_t>(values.size(), 1)];
  std::copy(values.begin(), values.end(), *out);
  *n = values.size();
  return ACLNN_SUCCESS;
}

}  // namespace

extern "C" {

aclnnStatus aclInitTensor(aclTensor* tensor, const int64_t* viewDims,
                          uint64_t viewDimsNum, aclDataType dataType,
                          const int64_t* stride, int64_t offset,
                          aclFormat format, const int64_t* storageDims,
                          uint64_t storageDimsNum, void* tensorData) {
  if (tensor == nullptr) return Null("the tensor is null");
  if (!AreSane(viewDims, viewDimsNum, stride) ||
      !AreSane(storageDims, storageDimsNum, nullptr) || offset < 0 ||
      offset > (int64_t{1} << 56)) {
    return cannsim_fail(ACLNN_ERR_PARAM_INVALID,
                        "aclCreateTensor: dims, strides or offset are null, "
                        "negative or too large");
  }
  tensor->dims.assign(viewDims, viewDims + viewDimsNum);
  tensor->storage.assign(storageDims, storageDims + storageDimsNum);
  if (stride != nullptr) {
    tensor->strides.assign(stride, stride + viewDimsNum);
  } else {
    tensor->strides.assign(viewDimsNum, 1);
    for (size_t i = viewDimsNum; i-- > 1;) {
      tensor->strides[i - 1] = tensor->strides[i] * tensor->dims[i];
    }
  }
  tensor->offset = offset;
  tensor->dtype = dataType;
  tensor->format = format;
  tensor->data = tensorData;
  return ACLNN_SUCCESS;
}

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum,
                           aclDataType dataType, const int64_t* stride,
                           int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum,
                           void* tensorData) {
  auto* tensor = new aclTensor;
  if (aclInitTensor(tensor, viewDims, viewDimsNum, dataType, stride, offset,
                    format, storageDims, storageDimsNum,
                    tensorData) == ACLNN_SUCCESS) {
    cannsim::NoteMade(tensor, "aclTensor", CALLER);
    return tensor;
  }
  delete tensor;
  return nullptr;
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  const size_t bytes = aclDataTypeSize(dataType);
  if (value == nullptr || bytes == 0) {
    cannsim_fail(ACLNN_ERR_PARAM_INVALID,
                 "aclCreateScalar: null value, or a dtype without a size");
    return nullptr;
  }
  auto* scalar = new aclScalar;
  scalar->dtype = dataType;
  std::memcpy(scalar->bytes.data(), value, bytes);
  cannsim::NoteMade(scalar, "aclScalar", CALLER);
  return scalar;
}

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  aclIntArray* array = MakeArray<aclIntArray>(value, size);
  cannsim::NoteMade(array, "aclIntArray", CALLER);
  return array;
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  aclFloatArray* array = MakeArray<aclFloatArray>(value, size);
  cannsim::NoteMade(array, "aclFloatArray", CALLER);
  return array;
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  aclBoolArray* array = MakeArray<aclBoolArray>(value, size);
  cannsim::NoteMade(array, "aclBoolArray", CALLER);
  return array;
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value,
                                   uint64_t size) {
  if (value == nullptr && size > 0) {
    Null("the tensors are null");
    return nullptr;
  }
  auto* list = new aclTensorList;
  list->members.assign(value, value + size);
  cannsim::NoteMade(list, "aclTensorList", CALLER);
  return list;
}

aclScalarList* aclCreateScalarList(const aclScalar* const* value,
                                   uint64_t size) {
  if (value == nullptr && size > 0) {
    Null("the scalars are null");
    return nullptr;
  }
  auto* list = new aclScalarList;
  list->members.assign(value, value + size);
  cannsim::NoteMade(list, "aclScalarList", CALLER);
  return list;
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return Destroy(tensor, "aclTensor", CALLER);
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return Destroy(scalar, "aclScalar", CALLER);
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return Destroy(array, "aclIntArray", CALLER);
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return Destroy(array, "aclFloatArray", CALLER);
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return Destroy(array, "aclBoolArray", CALLER);
}

aclnnStatus aclDestroyTensorList(const aclTensorList* list) {
  if (list == nullptr) return ACLNN_SUCCESS;
  if (!cannsim::NoteGone(list, "aclTensorList", CALLER)) {
    return ACLNN_ERR_PARAM_INVALID;
  }
  for (const aclTensor* member : list->members) {
    Destroy(member, "aclTensor", CALLER);
  }
  delete list;
  return ACLNN_SUCCESS;
}

aclnnStatus aclDestroyScalarList(const aclScalarList* list) {
  if (list == nullptr) return ACLNN_SUCCESS;
  if (!cannsim::NoteGone(list, "aclScalarList", CALLER)) {
    return ACLNN_ERR_PARAM_INVALID;
  }
  for (const aclScalar* member : list->members) {
    Destroy(member, "aclScalar", CALLER);
  }
  delete list;
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims,
                            uint64_t* viewDimsNum) {
  if (tensor == nullptr) return Null("the tensor is null");
  return GiveArray(tensor->dims, viewDims, viewDimsNum);
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                               uint64_t* storageDimsNum) {
  if (tensor == nullptr) return Null("the tensor is null");
  return GiveArray(tensor->storage, storageDims, storageDimsNum);
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                              uint64_t* stridesNum) {
  if (tensor == nullptr) return Null("the tensor is null");
  return GiveArray(tensor->strides, stridesValue, stridesNum);
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  if (tensor == nullptr || offset == nullptr) return Null("null argument");
  *offset = tensor->offset;
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  if (tensor == nullptr || format == nullptr) return Null("null argument");
  *format = tensor->format;
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  if (tensor == nullptr || dataType == nullptr) return Null("null argument");
  *dataType = tensor->dtype;
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return SizeOf(array, size);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return SizeOf(array, size);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return SizeOf(array, size);
}

aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList,
                                 uint64_t* size) {
  return MembersOf(tensorList, size);
}

aclnnStatus aclGetScalarListSize(const aclScalarList* scalarList,
                                 uint64_t* size) {
  return MembersOf(scalarList, size);
}

aclnnStatus aclSetRawTensorAddr(aclTensor* tensor, void* addr) {
  if (tensor == nullptr) return Null("the tensor is null");
  tensor->data = addr;
  return ACLNN_SUCCESS;
}

aclnnStatus aclGetRawTensorAddr(const aclTensor* tensor, void** addr) {
  if (tensor == nullptr || addr == nullptr) return Null("null argument");
  *addr = tensor->data;
  return ACLNN_SUCCESS;
}

aclnnStatus aclnnInit(const char*) { return ACLNN_SUCCESS; }

aclnnStatus aclnnFinalize() { return ACLNN_SUCCESS; }

}  // extern "C"
