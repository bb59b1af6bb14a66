// SPDX-License-Identifier: Apache-2.0
// Start and end: counts, errors, messages, what can be asked early.
#include <stdlib.h>

#include "cannsim/tests/check.h"

static void TestCounts(void) {
  uint64_t left = 99;
  CHECK_IS(aclFinalize(), ACL_ERROR_REPEAT_FINALIZE);
  OK(aclInit(NULL));
  CHECK_IS(aclInit(NULL), ACL_ERROR_REPEAT_INITIALIZE);
  OK(aclFinalizeReference(&left));
  CHECK_IS(left, 1);
  OK(aclFinalize());
  CHECK_IS(aclFinalizeReference(&left), ACL_ERROR_REPEAT_FINALIZE);
  OK(aclInit(NULL));  // again is legal
}

static void TestConfig(void) {
  CHECK_IS(aclInit("no such file"), ACL_ERROR_INVALID_FILE);
  const char* path = getenv("CANNSIM_TEST_FILE");
  CHECK(path != NULL);
  if (path == NULL) return;
  FILE* file = fopen(path, "w");
  fputs("{}", file);
  fclose(file);
  CHECK_IS(aclInit(path), ACL_ERROR_REPEAT_INITIALIZE);
  file = fopen(path, "w");
  fputs("{\"a\":[[[[[[[[[[[[1]]]]]]]]]]]]}", file);  // 13 levels
  fclose(file);
  CHECK_IS(aclInit(path), ACL_ERROR_PARSE_FILE);
  remove(path);
}

static void TestMessages(void) {
  aclGetRecentErrMsg();
  CHECK(aclGetRecentErrMsg() != NULL);  // never null, even with nothing to say
  CHECK_IS(strlen(aclGetRecentErrMsg()), 0);
  CHECK_IS(aclrtFree(NULL), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtPeekAtLastError(ACL_RT_THREAD_LEVEL),
           ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtGetLastError(ACL_RT_THREAD_LEVEL), ACL_SUCCESS);
  const char* text = aclGetRecentErrMsg();
  CHECK(strstr(text, "EE1001: [PID: ") == text);
  CHECK(strstr(text, "aclrtFree (error 107000)") != NULL);
  CHECK_IS(strlen(aclGetRecentErrMsg()), 0);  // reading clears
}

static void* ReadMessage(void* arg) {
  *(size_t*)arg = strlen(aclGetRecentErrMsg());
  return NULL;
}

static void TestMessageIsOfTheThread(void) {
  CHECK_IS(aclrtFree(NULL), ACL_ERROR_RT_PARAM_INVALID);
  pthread_t thread;
  size_t length = 99;
  pthread_create(&thread, NULL, ReadMessage, &length);
  pthread_join(thread, NULL);
  CHECK_IS(length, 0);
  CHECK(strlen(aclGetRecentErrMsg()) > 0);
}

static void TestEarlyQuestions(void) {
  uint32_t n = 0;
  int64_t value = 0;
  aclrtRunMode mode = ACL_DEVICE;
  CHECK(strcmp(aclrtGetSocName(), "Ascend910B3") == 0);
  OK(aclrtGetDeviceCount(&n));
  CHECK_IS(n, 2);  // CANNSIM_DEVICES
  OK(aclrtGetRunMode(&mode));
  CHECK_IS(mode, ACL_HOST);
  OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &value));
  CHECK_IS(value, 20);
  OK(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_NPU_ARCH, &value));
  CHECK_IS(value, 2201);
  CHECK_IS(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_SMP_ID, &value),
           ACL_ERROR_RT_PARAM_INVALID);
  OK(aclGetDeviceCapability(1, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &value));
  CHECK_IS(value, 40);
  CHECK_IS(aclGetDeviceCapability(2, ACL_DEVICE_INFO_L2_SIZE, &value),
           ACL_ERROR_RT_INVALID_DEVICEID);
}

static void TestSmallThings(void) {
  CHECK(aclFloat16ToFloat(0x3C00) == 1.0F);
  CHECK_IS(aclFloatToFloat16(-2.0F), 0xC000);
  CHECK_IS(aclDataTypeSize(ACL_BF16), 2);
  CHECK_IS(aclDataTypeSize(ACL_INT4), 0);
  const int64_t dims[3] = {2, 3, 4};
  aclTensorDesc* desc = aclCreateTensorDesc(ACL_FLOAT, 3, dims, ACL_FORMAT_ND);
  CHECK_IS(aclGetTensorDescElementCount(desc), 24);
  CHECK_IS(aclGetTensorDescSize(desc), 96);
  CHECK_IS(aclGetTensorDescDim(desc, 3), -1);
  aclDestroyTensorDesc(desc);
  int x = 0;
  aclDataBuffer* buffer = aclCreateDataBuffer(&x, 4);
  CHECK(aclGetDataBufferAddr(buffer) == &x);
  CHECK_IS(aclGetDataBufferSizeV2(buffer), 4);
  OK(aclDestroyDataBuffer(buffer));
}

int main(void) {
  TestCounts();
  TestConfig();
  TestMessages();
  TestMessageIsOfTheThread();
  TestEarlyQuestions();
  TestSmallThings();
  return FAILURES();
}
