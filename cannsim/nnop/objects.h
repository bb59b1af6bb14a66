// SPDX-License-Identifier: Apache-2.0
// What aclTensor, aclScalar and the lists are inside. Everything is a copy of
// what the program passed.
#ifndef BELAY_CANNSIM_NNOP_OBJECTS_H_
#define BELAY_CANNSIM_NNOP_OBJECTS_H_

#include <array>
#include <cstdint>
#include <vector>

#include "aclnn/acl_meta.h"

struct aclTensor {
  std::vector<int64_t> dims;     // of the view, outermost first
  std::vector<int64_t> strides;  // in elements; 0 broadcasts
  int64_t offset = 0;            // in elements
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_ND;
  std::vector<int64_t> storage;
  void* data = nullptr;

  int64_t n_elements() const {
    int64_t n = 1;
    for (const int64_t dim : dims) n *= dim;
    return n;
  }
  int rank() const { return static_cast<int>(dims.size()); }
};

struct aclScalar {
  aclDataType dtype = ACL_DT_UNDEFINED;
  std::array<unsigned char, 16> bytes{};
};

struct aclIntArray {
  std::vector<int64_t> values;
};

struct aclFloatArray {
  std::vector<float> values;
};

struct aclBoolArray {
  std::vector<bool> values;
};

// The lists own their members.
struct aclTensorList {
  std::vector<const aclTensor*> members;
};

struct aclScalarList {
  std::vector<const aclScalar*> members;
};

#endif  // BELAY_CANNSIM_NNOP_OBJECTS_H_
