// SPDX-License-Identifier: Apache-2.0
// Data buffers and tensor descriptors: plain records.
#include <string>
#include <vector>

#include "acl/acl_base.h"
#include "cannsim/runtime/error.h"

struct aclDataBuffer {
  void* data = nullptr;
  size_t size = 0;
};

struct aclTensorDesc {
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  std::vector<int64_t> dims;
  std::vector<std::pair<int64_t, int64_t>> ranges;
  std::string name;
  const void* constant = nullptr;
  size_t constant_bytes = 0;
  aclMemType placement = ACL_MEMTYPE_DEVICE;
};

namespace {

constexpr int kMaxDims = 128;

int Invalid(const char* what) {
  return cannsim::Fail(ACL_ERROR_INVALID_PARAM, what);
}

bool AreDims(int n, const int64_t* dims) {
  return n >= 0 && n <= kMaxDims && (n == 0 || dims != nullptr);
}

}  // namespace

extern "C" {

size_t aclDataTypeSize(aclDataType dataType) {
  switch (dataType) {
    case ACL_INT8:
    case ACL_UINT8:
    case ACL_BOOL:
    case ACL_HIFLOAT8:
    case ACL_FLOAT8_E5M2:
    case ACL_FLOAT8_E4M3FN:
    case ACL_FLOAT8_E8M0:
      return 1;
    case ACL_FLOAT16:
    case ACL_BF16:
    case ACL_INT16:
    case ACL_UINT16:
      return 2;
    case ACL_FLOAT:
    case ACL_INT32:
    case ACL_UINT32:
    case ACL_COMPLEX32:
      return 4;
    case ACL_INT64:
    case ACL_UINT64:
    case ACL_DOUBLE:
    case ACL_COMPLEX64:
      return 8;
    case ACL_COMPLEX128:
      return 16;
    default:
      return 0;
  }
}

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  return new aclDataBuffer{data, size};
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  CANNSIM_CALL(aclDestroyDataBuffer);
  if (dataBuffer == nullptr) return Invalid("null argument");
  delete dataBuffer;
  return ACL_SUCCESS;
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data,
                             size_t size) {
  CANNSIM_CALL(aclUpdateDataBuffer);
  if (dataBuffer == nullptr) return Invalid("null argument");
  *dataBuffer = {data, size};
  return ACL_SUCCESS;
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  return dataBuffer == nullptr ? nullptr : dataBuffer->data;
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  return dataBuffer == nullptr ? 0 : dataBuffer->size;
}

aclTensorDesc* aclCreateTensorDesc(aclDataType dataType, int numDims,
                                   const int64_t* dims, aclFormat format) {
  CANNSIM_CALL(aclCreateTensorDesc);
  if (!AreDims(numDims, dims)) {
    Invalid("dims are null or too many");
    return nullptr;
  }
  auto* desc = new aclTensorDesc;
  desc->dtype = dataType;
  desc->format = format;
  desc->dims.assign(dims, dims + numDims);
  return desc;
}

void aclDestroyTensorDesc(const aclTensorDesc* desc) { delete desc; }

aclError aclSetTensorShapeRange(
    aclTensorDesc* desc, size_t dimsCount,
    int64_t dimsRange[][ACL_TENSOR_SHAPE_RANGE_NUM]) {
  CANNSIM_CALL(aclSetTensorShapeRange);
  if (desc == nullptr || dimsRange == nullptr || dimsCount > kMaxDims) {
    return Invalid("null argument or too many dims");
  }
  desc->ranges.clear();
  for (size_t i = 0; i < dimsCount; ++i) {
    desc->ranges.emplace_back(dimsRange[i][0], dimsRange[i][1]);
  }
  return ACL_SUCCESS;
}

aclDataType aclGetTensorDescType(const aclTensorDesc* desc) {
  return desc == nullptr ? ACL_DT_UNDEFINED : desc->dtype;
}

aclFormat aclGetTensorDescFormat(const aclTensorDesc* desc) {
  return desc == nullptr ? ACL_FORMAT_UNDEFINED : desc->format;
}

size_t aclGetTensorDescElementCount(const aclTensorDesc* desc) {
  if (desc == nullptr) return 0;
  size_t n = 1;
  for (const int64_t dim : desc->dims) {
    if (dim < 0 || __builtin_mul_overflow(n, static_cast<size_t>(dim), &n)) {
      return 0;  // not known, or more than there can be
    }
  }
  return n;
}

size_t aclGetTensorDescSize(const aclTensorDesc* desc) {
  size_t bytes = 0;
  if (desc == nullptr ||
      __builtin_mul_overflow(aclGetTensorDescElementCount(desc),
                             aclDataTypeSize(desc->dtype), &bytes)) {
    return 0;
  }
  return bytes;
}

size_t aclGetTensorDescNumDims(const aclTensorDesc* desc) {
  return desc == nullptr ? 0 : desc->dims.size();
}

int64_t aclGetTensorDescDim(const aclTensorDesc* desc, size_t index) {
  return desc == nullptr || index >= desc->dims.size() ? -1 : desc->dims[index];
}

aclError aclGetTensorDescDimV2(const aclTensorDesc* desc, size_t index,
                               int64_t* dimSize) {
  CANNSIM_CALL(aclGetTensorDescDimV2);
  if (desc == nullptr || dimSize == nullptr || index >= desc->dims.size()) {
    return Invalid("null argument, or no such dim");
  }
  *dimSize = desc->dims[index];
  return ACL_SUCCESS;
}

void aclSetTensorDescName(aclTensorDesc* desc, const char* name) {
  if (desc != nullptr) desc->name = name == nullptr ? "" : name;
}

const char* aclGetTensorDescName(aclTensorDesc* desc) {
  return desc == nullptr ? "" : desc->name.c_str();
}

aclError aclSetTensorFormat(aclTensorDesc* desc, aclFormat format) {
  CANNSIM_CALL(aclSetTensorFormat);
  if (desc == nullptr) return Invalid("null argument");
  desc->format = format;
  return ACL_SUCCESS;
}

aclError aclSetTensorShape(aclTensorDesc* desc, int numDims,
                           const int64_t* dims) {
  CANNSIM_CALL(aclSetTensorShape);
  if (desc == nullptr || !AreDims(numDims, dims)) {
    return Invalid("null argument or too many dims");
  }
  desc->dims.assign(dims, dims + numDims);
  return ACL_SUCCESS;
}

aclError aclSetTensorConst(aclTensorDesc* desc, void* dataBuffer,
                           size_t length) {
  CANNSIM_CALL(aclSetTensorConst);
  if (desc == nullptr) return Invalid("null argument");
  desc->constant = dataBuffer;
  desc->constant_bytes = length;
  return ACL_SUCCESS;
}

aclError aclSetTensorPlaceMent(aclTensorDesc* desc, aclMemType memType) {
  CANNSIM_CALL(aclSetTensorPlaceMent);
  if (desc == nullptr) return Invalid("null argument");
  desc->placement = memType;
  return ACL_SUCCESS;
}

}  // extern "C"
