// SPDX-License-Identifier: Apache-2.0
// Attributes of the older single-operator interface. cannsim has no graph
// engine: the calls exist so that clients link, and refuse with 200001.
#ifndef BELAY_CANNSIM_INCLUDE_ACL_ACL_OP_H_
#define BELAY_CANNSIM_INCLUDE_ACL_ACL_OP_H_

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclopAttr aclopAttr;
typedef struct aclopHandle aclopHandle;
typedef struct aclopKernelDesc aclopKernelDesc;

typedef enum {
  ACL_ENGINE_SYS = 0,
  ACL_ENGINE_AICORE = 1,
  ACL_ENGINE_VECTOR = 2
} aclopEngineType;

aclopAttr* aclopCreateAttr(void);
void aclopDestroyAttr(const aclopAttr* attr);
aclError aclopSetAttrBool(aclopAttr* attr, const char* attrName,
                          uint8_t attrValue);
aclError aclopSetAttrInt(aclopAttr* attr, const char* attrName,
                         int64_t attrValue);
aclError aclopSetAttrFloat(aclopAttr* attr, const char* attrName,
                           float attrValue);
aclError aclopSetAttrString(aclopAttr* attr, const char* attrName,
                            const char* attrValue);
aclError aclopSetAttrDataType(aclopAttr* attr, const char* attrName,
                              aclDataType attrValue);
aclError aclopSetAttrListBool(aclopAttr* attr, const char* attrName,
                              int numValues, const uint8_t* values);
aclError aclopSetAttrListInt(aclopAttr* attr, const char* attrName,
                             int numValues, const int64_t* values);
aclError aclopSetAttrListFloat(aclopAttr* attr, const char* attrName,
                               int numValues, const float* values);
aclError aclopSetAttrListListInt(aclopAttr* attr, const char* attrName,
                                 int numLists, const int* numValues,
                                 const int64_t* const values[]);
aclError aclopExecuteV2(const char* opType, int numInputs,
                        aclTensorDesc* inputDesc[], aclDataBuffer* inputs[],
                        int numOutputs, aclTensorDesc* outputDesc[],
                        aclDataBuffer* outputs[], aclopAttr* attr,
                        aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif  // BELAY_CANNSIM_INCLUDE_ACL_ACL_OP_H_
