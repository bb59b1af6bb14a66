// SPDX-License-Identifier: Apache-2.0
// Devices, contexts and the binding of threads.
#include "cannsim/tests/check.h"

static void* WithoutDevice(void* arg) {
  (void)arg;
  int32_t id = 0;
  void* memory = NULL;
  aclrtStream stream = NULL;
  aclrtContext context = NULL;
  CHECK_IS(aclrtGetDevice(&id), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_IS(aclrtMalloc(&memory, 16, ACL_MEM_MALLOC_HUGE_FIRST),
           ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_IS(aclrtCreateStream(&stream), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_IS(aclrtSynchronizeStream(NULL), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_IS(aclrtGetCurrentContext(&context), ACL_ERROR_RT_CONTEXT_NULL);
  return NULL;
}

static void OnOtherThread(void* (*function)(void*), void* arg) {
  pthread_t thread;
  pthread_create(&thread, NULL, function, arg);
  pthread_join(thread, NULL);
}

static void* DefaultContext(void* arg) {
  OK(aclrtSetDevice(0));
  OK(aclrtGetCurrentContext((aclrtContext*)arg));
  OK(aclrtResetDevice(0));
  return NULL;
}

static void TestBinding(void) {
  int32_t id = 99;
  CHECK_IS(aclrtGetDevice(&id), ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_IS(aclrtSetDevice(-1), ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK_IS(aclrtSetDevice(2), ACL_ERROR_RT_INVALID_DEVICEID);
  OK(aclrtSetDevice(1));
  OK(aclrtGetDevice(&id));
  CHECK_IS(id, 1);
  OnOtherThread(WithoutDevice, NULL);  // the binding is the thread's
  OK(aclrtResetDevice(1));
}

static void TestDefaultContextIsShared(void) {
  aclrtContext mine = NULL;
  aclrtContext theirs = NULL;
  OK(aclrtSetDevice(0));
  OK(aclrtGetCurrentContext(&mine));
  OnOtherThread(DefaultContext, &theirs);
  CHECK(mine == theirs);
  CHECK_IS(aclrtDestroyContext(mine), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtResetDevice(0));
}

static void TestCounts(void) {
  int32_t active = 0;
  aclrtContext context = NULL;
  CHECK_IS(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL);
  OK(aclrtSetDevice(0));
  OK(aclrtSetDevice(0));
  OK(aclrtGetCurrentContext(&context));
  OK(aclrtResetDevice(0));
  OK(aclrtGetPrimaryCtxState(0, NULL, &active));
  CHECK_IS(active, 1);
  OK(aclrtResetDevice(0));
  OK(aclrtGetPrimaryCtxState(0, NULL, &active));
  CHECK_IS(active, 0);
  CHECK_IS(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL);
  // The context went with the device.
  CHECK_IS(aclrtSetCurrentContext(context), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtSynchronizeDevice(), ACL_ERROR_RT_CONTEXT_NULL);
  OK(aclrtSetDevice(0));
  OK(aclrtSetDevice(0));
  OK(aclrtResetDeviceForce(0));
  CHECK_IS(aclrtResetDevice(0), ACL_ERROR_RT_CONTEXT_NULL);
}

static void TestResetWaitsForWork(void) {
  atomic_int n = 0;
  OK(aclrtSetDevice(0));
  for (int i = 0; i < 1000; ++i) OK(aclrtLaunchHostFunc(NULL, AddOne, &n));
  OK(aclrtResetDevice(0));
  CHECK_IS(atomic_load(&n), 1000);
}

static void TestContexts(void) {
  aclrtContext first = NULL;
  aclrtContext second = NULL;
  aclrtContext current = NULL;
  aclrtStream stream = NULL;
  int32_t id = 99;
  OK(aclrtCreateContext(&first, 0));
  OK(aclrtCreateStream(&stream));
  OK(aclrtCreateContext(&second, 1));  // becomes the current one
  OK(aclrtGetCurrentContext(&current));
  CHECK(current == second);
  OK(aclrtGetDevice(&id));
  CHECK_IS(id, 1);
  // A stream belongs to the context in which it was made.
  CHECK_IS(aclrtDestroyStream(stream), ACL_ERROR_RT_STREAM_CONTEXT);
  CHECK_IS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_STREAM_CONTEXT);
  OK(aclrtSetCurrentContext(first));  // switches the device, too
  OK(aclrtGetDevice(&id));
  CHECK_IS(id, 0);
  OK(aclrtDestroyStream(stream));
  CHECK_IS(aclrtDestroyStream(stream), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtDestroyContext(second));
  CHECK_IS(aclrtDestroyContext(second), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtDestroyContext(first));
  CHECK_IS(aclrtGetCurrentContext(&current), ACL_ERROR_RT_CONTEXT_NULL);
}

static void TestOptions(void) {
  int64_t value = 0;
  uint32_t cores = 0;
  OK(aclrtSetDevice(0));
  CHECK_IS(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value),
           ACL_ERROR_RT_SYSPARAMOPT_NOT_SET);
  OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  CHECK_IS(value, 1);
  OK(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &cores));
  CHECK_IS(cores, 40);
  OK(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, 8));
  OK(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_VECTOR_CORE, &cores));
  CHECK_IS(cores, 8);
  CHECK_IS(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_CUBE_CORE, 21),
           ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtResetDeviceResLimit(0));
  OK(aclrtResetDevice(0));
}

int main(void) {
  OK(aclInit(NULL));
  TestBinding();
  TestDefaultContextIsShared();
  TestCounts();
  TestResetWaitsForWork();
  TestContexts();
  TestOptions();
  OK(aclFinalize());
  return FAILURES();
}
