// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/log/codes.h"

#include "acl/acl_base.h"

namespace cannsim {
namespace {

struct Row {
  int code;
  const char* text;
  const char* inner = "";
  const char* task = "";
};

constexpr Row kRows[] = {
    {ACL_ERROR_RT_PARAM_INVALID, "invalid parameter"},
    {ACL_ERROR_RT_INVALID_DEVICEID, "device id error", "0x7010003"},
    {ACL_ERROR_RT_CONTEXT_NULL, "no context"},
    {ACL_ERROR_RT_TASK_TIMEOUT, "task timeout"},
    {ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "feature not supported"},
    {ACL_ERROR_RT_MEMORY_ALLOCATION, "out of device memory"},
    {ACL_ERROR_RT_TS_ERROR, "task scheduler error"},
    {ACL_ERROR_RT_LOST_HEARTBEAT, "heartbeat of the device lost"},
    {ACL_ERROR_RT_SYS_DMA, "sdma error"},
    {ACL_ERROR_RT_AICORE_TIMEOUT, "aicore timeout"},
    {ACL_ERROR_RT_AICORE_EXCEPTION, "aicore exception"},
    {ACL_ERROR_RT_AICORE_TRAP_EXCEPTION, "aicore trap exception"},
    {ACL_ERROR_RT_AICPU_TIMEOUT, "aicpu timeout"},
    {ACL_ERROR_RT_AICPU_EXCEPTION, "aicpu exception"},
    {ACL_ERROR_RT_DEV_SETUP_ERROR, "device setup error", "0x7020014"},
    {ACL_ERROR_RT_VECTOR_CORE_TIMEOUT, "vector core timeout", "", "0x30"},
    {ACL_ERROR_RT_VECTOR_CORE_EXCEPTION, "vector core exception", "0x715005e",
     "0x31"},
    {ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, "stream sync timeout"},
    {ACL_ERROR_RT_EVENT_SYNC_TIMEOUT, "event sync timeout"},
    {ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, "fftsplus timeout"},
    {ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, "fftsplus exception"},
    {ACL_ERROR_RT_DEVICE_MEM_ERROR, "device memory error"},
    {ACL_ERROR_RT_HBM_MULTI_BIT_ECC_ERROR, "multi-bit ECC error of the HBM"},
    {ACL_ERROR_RT_SUSPECT_DEVICE_MEM_ERROR, "suspected device memory error"},
    {ACL_ERROR_RT_LINK_ERROR, "link error"},
    {ACL_ERROR_RT_SUSPECT_REMOTE_ERROR, "suspect remote error"},
};

const Row* Find(int code) {
  for (const Row& row : kRows) {
    if (row.code == code) return &row;
  }
  return nullptr;
}

}  // namespace

const char* CodeText(int code) {
  const Row* row = Find(code);
  return row == nullptr ? "failed" : row->text;
}

const char* InnerCode(int code) {
  const Row* row = Find(code);
  return row == nullptr ? "" : row->inner;
}

const char* TaskCode(int code) {
  const Row* row = Find(code);
  return row == nullptr ? "" : row->task;
}

}  // namespace cannsim
