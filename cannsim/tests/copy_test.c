// SPDX-License-Identifier: Apache-2.0
// Copies and fills: who waits, what is refused.
#include <stdlib.h>

#include "cannsim/tests/check.h"

enum { kBytes = 1 << 16 };

static aclrtStream g_stream;
static char* g_device;
static char* g_pinned;
static char* g_pageable;

static void TestRefusals(void) {
  char small[8];
  CHECK_IS(aclrtMemcpy(small, 4, g_device, 8, ACL_MEMCPY_DEVICE_TO_HOST),
           ACL_ERROR_RT_PARAM_INVALID);  // more than fits
  CHECK_IS(aclrtMemcpy(NULL, 8, g_device, 8, ACL_MEMCPY_DEVICE_TO_HOST),
           ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtMemcpy(g_device + kBytes - 4, 1 << 20, g_pageable, 4096,
                       ACL_MEMCPY_HOST_TO_DEVICE),
           ACL_ERROR_RT_PARAM_INVALID);  // beyond the buffer
  CHECK(strstr(aclGetRecentErrMsg(), "allocated by aclrtMalloc") != NULL);
  // The synchronous copy looks at addresses only.
  OK(aclrtMemcpy(small, 8, g_device, 8, ACL_MEMCPY_HOST_TO_DEVICE));
  OK(aclrtMemcpy(small, 8, g_pageable, 8, ACL_MEMCPY_DEVICE_TO_DEVICE));
  CHECK_IS(aclrtMemcpyAsync(small, 8, g_device, 8, ACL_MEMCPY_HOST_TO_DEVICE,
                            g_stream),
           ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtMemcpyAsync(small, 8, g_pageable, 8, ACL_MEMCPY_HOST_TO_HOST,
                            g_stream),
           ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK_IS(aclrtMemset(small, 8, 0, 8), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtMemset(g_device, 8, 0, 9), ACL_ERROR_RT_PARAM_INVALID);
}

// With pinned memory the call returns before the copy: a door holds it up.
static void TestPinnedIsAsynchronous(void) {
  Door door;
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  DoorInit(&door);
  memset(g_pinned, 5, kBytes);
  OK(aclrtMemset(g_device, kBytes, 0, kBytes));
  OK(aclrtLaunchHostFunc(g_stream, DoorWait, &door));
  OK(aclrtMemcpyAsync(g_device, kBytes, g_pinned, kBytes,
                      ACL_MEMCPY_HOST_TO_DEVICE, g_stream));
  OK(aclrtMemsetAsync(g_device, kBytes, 6, 16, g_stream));
  OK(aclrtStreamQuery(g_stream, &status));
  CHECK_IS(status, ACL_STREAM_STATUS_NOT_READY);
  char before = 9;  // a synchronous copy does not wait for the stream
  OK(aclrtMemcpy(&before, 1, g_device + 100, 1, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_IS(before, 0);
  DoorOpen(&door);
  OK(aclrtSynchronizeStream(g_stream));
  memset(g_pinned, 0, kBytes);
  OK(aclrtMemcpyAsync(g_pinned, kBytes, g_device, kBytes,
                      ACL_MEMCPY_DEVICE_TO_HOST, g_stream));
  OK(aclrtSynchronizeStream(g_stream));
  CHECK_IS(g_pinned[0], 6);
  CHECK_IS(g_pinned[15], 6);
  CHECK_IS(g_pinned[16], 5);
  CHECK_IS(g_pinned[kBytes - 1], 5);
}

static void* OpenLater(void* arg) {
  const struct timespec a_moment = {0, 20000000};
  nanosleep(&a_moment, NULL);
  DoorOpen((Door*)arg);
  return NULL;
}

// With pageable memory everything before it is done when the call returns.
static void TestPageableWaits(void) {
  Door door;
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  pthread_t opener;
  DoorInit(&door);
  memset(g_pageable, 7, kBytes);
  OK(aclrtLaunchHostFunc(g_stream, DoorWait, &door));
  pthread_create(&opener, NULL, OpenLater, &door);
  OK(aclrtMemcpyAsync(g_device, kBytes, g_pageable, kBytes,
                      ACL_MEMCPY_HOST_TO_DEVICE, g_stream));
  memset(g_pageable, 0, kBytes);  // may be used again at once
  pthread_join(opener, NULL);
  OK(aclrtStreamQuery(g_stream, &status));
  CHECK_IS(status, ACL_STREAM_STATUS_COMPLETE);
  OK(aclrtMemcpyAsync(g_pageable, kBytes, g_device, kBytes,
                      ACL_MEMCPY_DEVICE_TO_HOST, NULL));
  CHECK_IS(g_pageable[kBytes - 1], 7);
}

static void TestPeers(void) {
  void* other = NULL;
  int32_t can = 0;
  OK(aclrtDeviceCanAccessPeer(&can, 0, 1));
  CHECK_IS(can, 1);
  CHECK_IS(aclrtDeviceCanAccessPeer(&can, 1, 1), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtSetDevice(1));
  OK(aclrtMalloc(&other, kBytes, ACL_MEM_MALLOC_HUGE_FIRST_P2P));
  OK(aclrtSetDevice(0));
  CHECK_IS(
      aclrtMemcpy(other, kBytes, g_device, kBytes, ACL_MEMCPY_DEVICE_TO_DEVICE),
      ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtDeviceEnablePeerAccess(1, 1), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtDeviceEnablePeerAccess(1, 0));
  OK(aclrtMemset(g_device, kBytes, 3, kBytes));
  OK(aclrtMemcpyAsync(other, kBytes, g_device, kBytes,
                      ACL_MEMCPY_DEVICE_TO_DEVICE, g_stream));
  OK(aclrtSynchronizeStream(g_stream));
  char got = 0;
  OK(aclrtMemcpy(&got, 1, (char*)other + kBytes - 1, 1,
                 ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_IS(got, 3);
  OK(aclrtDeviceDisablePeerAccess(1));
  CHECK_IS(aclrtMemcpy(other, 1, g_device, 1, ACL_MEMCPY_DEVICE_TO_DEVICE),
           ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtFree(other));
  OK(aclrtResetDevice(1));
}

static void TestRowsAndBatches(void) {
  for (int i = 0; i < kBytes; ++i) g_pageable[i] = (char)(i / 64);
  OK(aclrtMemcpy2d(g_device, 128, g_pageable, 64, 48, 100,
                   ACL_MEMCPY_HOST_TO_DEVICE));
  char row[48];
  OK(aclrtMemcpy(row, 48, g_device + 99 * 128, 48, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_IS(row[0], 99);
  CHECK_IS(row[47], 99);
  CHECK_IS(aclrtMemcpy2d(g_device, 32, g_pageable, 64, 48, 1,
                         ACL_MEMCPY_HOST_TO_DEVICE),
           ACL_ERROR_RT_PARAM_INVALID);
  void* dsts[2] = {g_device, g_device + 512};
  void* srcs[2] = {g_pageable + 64, g_pageable + 128};
  size_t sizes[2] = {64, 64};
  size_t fail = 9;
  OK(aclrtMemcpyBatch(dsts, sizes, srcs, sizes, 2, NULL, NULL, 0, &fail));
  OK(aclrtMemcpy(row, 48, g_device + 512, 48, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_IS(row[0], 2);
}

static void TestValues(void) {
  uint64_t value = 0;
  atomic_int n = 0;
  aclrtStream other = NULL;
  OK(aclrtCreateStream(&other));
  OK(aclrtMemset(g_device, 8, 0, 8));
  OK(aclrtValueWait(g_device, 41, 0, other));  // until at least 41
  OK(aclrtLaunchHostFunc(other, AddOne, &n));
  OK(aclrtSynchronizeStream(g_stream));
  CHECK_IS(atomic_load(&n), 0);
  OK(aclrtValueWrite(g_device, 42, 0, g_stream));
  OK(aclrtSynchronizeStream(other));
  CHECK_IS(atomic_load(&n), 1);
  OK(aclrtMemcpy(&value, 8, g_device, 8, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_IS(value, 42);
  CHECK_IS(aclrtValueWrite(g_device + 4, 1, 0, g_stream),
           ACL_ERROR_RT_ADDR_UNALIGNED);
  OK(aclrtCmoAsync(g_device, kBytes, ACL_RT_CMO_TYPE_PREFETCH, g_stream));
  OK(aclrtDestroyStream(other));
}

int main(void) {
  OK(aclInit(NULL));
  OK(aclrtSetDevice(0));
  OK(aclrtCreateStream(&g_stream));
  OK(aclrtMalloc((void**)&g_device, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtMallocHost((void**)&g_pinned, kBytes));
  g_pageable = (char*)calloc(1, kBytes);
  TestRefusals();
  TestPinnedIsAsynchronous();
  TestPageableWaits();
  TestPeers();
  TestRowsAndBatches();
  TestValues();
  free(g_pageable);
  OK(aclrtFreeHost(g_pinned));
  OK(aclrtFree(g_device));
  OK(aclrtDestroyStream(g_stream));
  OK(aclrtResetDevice(0));
  OK(aclFinalize());
  return FAILURES();
}
