// SPDX-License-Identifier: Apache-2.0
// Offline models. Declared for clients that include acl.h; the room that runs
// them (cannsim/mdl) is not there yet, so linking against a call fails.
#ifndef BELAY_CANNSIM_INCLUDE_ACL_ACL_MDL_H_
#define BELAY_CANNSIM_INCLUDE_ACL_ACL_MDL_H_

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ACL_MAX_DIM_CNT 128
#define ACL_MAX_TENSOR_NAME_LEN 128
#define ACL_MAX_BATCH_NUM 128
#define ACL_MAX_HW_NUM 128
#define ACL_MAX_SHAPE_COUNT 128
#define ACL_DYNAMIC_TENSOR_NAME "ascend_mbatch_shape_data"
#define ACL_DYNAMIC_AIPP_NAME "ascend_dynamic_aipp_data"

typedef struct aclmdlDesc aclmdlDesc;
typedef struct aclmdlDataset aclmdlDataset;
typedef struct aclmdlAIPP aclmdlAIPP;
typedef struct aclmdlConfigHandle aclmdlConfigHandle;
typedef struct aclmdlExecConfigHandle aclmdlExecConfigHandle;
typedef struct aclmdlExeOMDesc aclmdlExeOMDesc;

typedef struct {
  char name[ACL_MAX_TENSOR_NAME_LEN];
  size_t dimCount;
  int64_t dims[ACL_MAX_DIM_CNT];
} aclmdlIODims;

typedef struct {
  size_t rangeCount;
  int64_t range[ACL_MAX_DIM_CNT][ACL_TENSOR_SHAPE_RANGE_NUM];
} aclmdlIODimsRange;

typedef struct {
  size_t batchCount;
  uint64_t batch[ACL_MAX_BATCH_NUM];
} aclmdlBatch;

typedef struct {
  size_t hwCount;
  uint64_t hw[ACL_MAX_HW_NUM][2];
} aclmdlHW;

typedef enum {
  ACL_MDL_PRIORITY_INT32 = 0,
  ACL_MDL_LOAD_TYPE_SIZET,
  ACL_MDL_PATH_PTR,
  ACL_MDL_MEM_ADDR_PTR,
  ACL_MDL_MEM_SIZET,
  ACL_MDL_WEIGHT_ADDR_PTR,
  ACL_MDL_WEIGHT_SIZET,
  ACL_MDL_WORKSPACE_ADDR_PTR,
  ACL_MDL_WORKSPACE_SIZET,
  ACL_MDL_INPUTQ_NUM_SIZET,
  ACL_MDL_INPUTQ_ADDR_PTR,
  ACL_MDL_OUTPUTQ_NUM_SIZET,
  ACL_MDL_OUTPUTQ_ADDR_PTR,
  ACL_MDL_WORKSPACE_MEM_OPTIMIZE,
  ACL_MDL_WEIGHT_PATH_PTR,
  ACL_MDL_MODEL_DESC_PTR,
  ACL_MDL_MODEL_DESC_SIZET,
  ACL_MDL_KERNEL_PTR,
  ACL_MDL_KERNEL_SIZET,
  ACL_MDL_KERNEL_ARGS_PTR,
  ACL_MDL_KERNEL_ARGS_SIZET,
  ACL_MDL_STATIC_TASK_PTR,
  ACL_MDL_STATIC_TASK_SIZET,
  ACL_MDL_DYNAMIC_TASK_PTR,
  ACL_MDL_DYNAMIC_TASK_SIZET,
  ACL_MDL_MEM_MALLOC_POLICY_SIZET,
  ACL_MDL_FIFO_PTR,
  ACL_MDL_FIFO_SIZET,
  ACL_MDL_WITHOUT_GRAPH_INT32
} aclmdlConfigAttr;

typedef enum {
  ACL_MDL_STREAM_SYNC_TIMEOUT = 0,
  ACL_MDL_EVENT_SYNC_TIMEOUT = 1,
  ACL_MDL_WORK_ADDR_PTR = 2,
  ACL_MDL_WORK_SIZET = 3,
  ACL_MDL_EXEC_PRIORITY_INT32 = 8
} aclmdlExecConfigAttr;

aclError aclmdlLoadFromFile(const char* modelPath, uint32_t* modelId);
aclError aclmdlLoadFromMem(const void* model, size_t modelSize,
                           uint32_t* modelId);
aclError aclmdlLoadFromFileWithMem(const char* modelPath, uint32_t* modelId,
                                   void* workPtr, size_t workSize,
                                   void* weightPtr, size_t weightSize);
aclError aclmdlLoadFromMemWithMem(const void* model, size_t modelSize,
                                  uint32_t* modelId, void* workPtr,
                                  size_t workSize, void* weightPtr,
                                  size_t weightSize);
aclError aclmdlLoadFromFileWithQ(const char* modelPath, uint32_t* modelId,
                                 const uint32_t* inputQ, size_t inputQNum,
                                 const uint32_t* outputQ, size_t outputQNum);
aclError aclmdlLoadWithConfig(const aclmdlConfigHandle* handle,
                              uint32_t* modelId);
aclmdlConfigHandle* aclmdlCreateConfigHandle(void);
aclError aclmdlDestroyConfigHandle(aclmdlConfigHandle* handle);
aclError aclmdlSetConfigOpt(aclmdlConfigHandle* handle, aclmdlConfigAttr attr,
                            const void* attrValue, size_t valueSize);
aclError aclmdlSetExternalWeightAddress(aclmdlConfigHandle* handle,
                                        const char* weightFileName,
                                        void* devPtr, size_t size);
aclError aclmdlUnload(uint32_t modelId);
aclError aclmdlQuerySize(const char* fileName, size_t* workSize,
                         size_t* weightSize);
aclError aclmdlQuerySizeFromMem(const void* model, size_t modelSize,
                                size_t* workSize, size_t* weightSize);
aclError aclmdlQueryExeOMDesc(const char* fileName,
                              aclmdlExeOMDesc* mdlPartitionSize);
aclmdlDesc* aclmdlCreateDesc(void);
aclError aclmdlDestroyDesc(aclmdlDesc* modelDesc);
aclError aclmdlGetDesc(aclmdlDesc* modelDesc, uint32_t modelId);
aclError aclmdlGetDescFromFile(aclmdlDesc* modelDesc, const char* modelPath);
aclError aclmdlGetDescFromMem(aclmdlDesc* modelDesc, const void* model,
                              size_t modelSize);
size_t aclmdlGetNumInputs(aclmdlDesc* modelDesc);
size_t aclmdlGetNumOutputs(aclmdlDesc* modelDesc);
size_t aclmdlGetInputSizeByIndex(aclmdlDesc* modelDesc, size_t index);
size_t aclmdlGetOutputSizeByIndex(aclmdlDesc* modelDesc, size_t index);
aclError aclmdlGetInputDims(const aclmdlDesc* modelDesc, size_t index,
                            aclmdlIODims* dims);
aclError aclmdlGetInputDimsV2(const aclmdlDesc* modelDesc, size_t index,
                              aclmdlIODims* dims);
aclError aclmdlGetInputDimsRange(const aclmdlDesc* modelDesc, size_t index,
                                 aclmdlIODimsRange* dimsRange);
aclError aclmdlGetOutputDims(const aclmdlDesc* modelDesc, size_t index,
                             aclmdlIODims* dims);
aclError aclmdlGetCurOutputDims(const aclmdlDesc* modelDesc, size_t index,
                                aclmdlIODims* dims);
const char* aclmdlGetInputNameByIndex(const aclmdlDesc* modelDesc,
                                      size_t index);
const char* aclmdlGetOutputNameByIndex(const aclmdlDesc* modelDesc,
                                       size_t index);
aclFormat aclmdlGetInputFormat(const aclmdlDesc* modelDesc, size_t index);
aclFormat aclmdlGetOutputFormat(const aclmdlDesc* modelDesc, size_t index);
aclDataType aclmdlGetInputDataType(const aclmdlDesc* modelDesc, size_t index);
aclDataType aclmdlGetOutputDataType(const aclmdlDesc* modelDesc, size_t index);
aclError aclmdlGetInputIndexByName(const aclmdlDesc* modelDesc,
                                   const char* name, size_t* index);
aclError aclmdlGetOutputIndexByName(const aclmdlDesc* modelDesc,
                                    const char* name, size_t* index);
aclError aclmdlGetDynamicBatch(const aclmdlDesc* modelDesc, aclmdlBatch* batch);
aclError aclmdlGetDynamicHW(const aclmdlDesc* modelDesc, size_t index,
                            aclmdlHW* hw);
aclError aclmdlGetInputDynamicGearCount(const aclmdlDesc* modelDesc,
                                        size_t index, size_t* gearCount);
aclError aclmdlGetInputDynamicDims(const aclmdlDesc* modelDesc, size_t index,
                                   aclmdlIODims* dims, size_t gearCount);
const char* aclmdlGetOpAttr(aclmdlDesc* modelDesc, const char* opName,
                            const char* attr);
const char* aclmdlGetTensorRealName(const aclmdlDesc* modelDesc,
                                    const char* name);
aclmdlDataset* aclmdlCreateDataset(void);
aclError aclmdlDestroyDataset(const aclmdlDataset* dataset);
aclError aclmdlAddDatasetBuffer(aclmdlDataset* dataset,
                                aclDataBuffer* dataBuffer);
size_t aclmdlGetDatasetNumBuffers(const aclmdlDataset* dataset);
aclDataBuffer* aclmdlGetDatasetBuffer(const aclmdlDataset* dataset,
                                      size_t index);
aclError aclmdlSetDatasetTensorDesc(aclmdlDataset* dataset,
                                    aclTensorDesc* tensorDesc, size_t index);
aclTensorDesc* aclmdlGetDatasetTensorDesc(const aclmdlDataset* dataset,
                                          size_t index);
aclError aclmdlExecute(uint32_t modelId, const aclmdlDataset* input,
                       aclmdlDataset* output);
aclError aclmdlExecuteAsync(uint32_t modelId, const aclmdlDataset* input,
                            aclmdlDataset* output, aclrtStream stream);
aclError aclmdlExecuteV2(uint32_t modelId, const aclmdlDataset* input,
                         aclmdlDataset* output, aclrtStream stream,
                         const aclmdlExecConfigHandle* handle);
aclError aclmdlExecuteAsyncV2(uint32_t modelId, const aclmdlDataset* input,
                              aclmdlDataset* output, aclrtStream stream,
                              const aclmdlExecConfigHandle* handle);
aclmdlExecConfigHandle* aclmdlCreateExecConfigHandle(void);
aclError aclmdlDestroyExecConfigHandle(const aclmdlExecConfigHandle* handle);
aclError aclmdlSetExecConfigOpt(aclmdlExecConfigHandle* handle,
                                aclmdlExecConfigAttr attr,
                                const void* attrValue, size_t valueSize);
aclError aclmdlSetDynamicBatchSize(uint32_t modelId, aclmdlDataset* dataset,
                                   size_t index, uint64_t batchSize);
aclError aclmdlSetDynamicHWSize(uint32_t modelId, aclmdlDataset* dataset,
                                size_t index, uint64_t height, uint64_t width);
aclError aclmdlSetInputDynamicDims(uint32_t modelId, aclmdlDataset* dataset,
                                   size_t index, const aclmdlIODims* dims);
aclError aclmdlSetInputAIPP(uint32_t modelId, aclmdlDataset* dataset,
                            size_t index, const aclmdlAIPP* aippParmsSet);
aclError aclmdlBundleLoadFromFile(const char* modelPath, uint32_t* bundleId);
aclError aclmdlBundleGetModelNum(uint32_t bundleId, size_t* modelNum);
aclError aclmdlBundleGetModelId(uint32_t bundleId, size_t index,
                                uint32_t* modelId);
aclError aclmdlBundleUnload(uint32_t bundleId);

#ifdef __cplusplus
}
#endif

#endif  // BELAY_CANNSIM_INCLUDE_ACL_ACL_MDL_H_
