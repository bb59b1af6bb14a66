// SPDX-License-Identifier: Apache-2.0
// Callbacks in a thread that the program gives.
#include "cannsim/tests/check.h"

static atomic_int g_stop;
static atomic_int g_ready;

typedef struct {
  pthread_t ran_in;
  atomic_int n;
} Seen;

static void Note(void* arg) {
  Seen* seen = (Seen*)arg;
  seen->ran_in = pthread_self();
  atomic_fetch_add(&seen->n, 1);
}

static void* Serve(void* arg) {
  (void)arg;
  while (!atomic_load(&g_stop)) {
    const aclError code = aclrtProcessReport(10);
    if (code == ACL_ERROR_RT_THREAD_SUBSCRIBE) {
      const struct timespec a_moment = {0, 1000000};
      nanosleep(&a_moment, NULL);
    } else {
      atomic_store(&g_ready, 1);
    }
  }
  return NULL;
}

static void TestSubscribed(void) {
  aclrtStream stream = NULL;
  pthread_t server;
  Seen seen;
  memset(&seen, 0, sizeof(seen));
  OK(aclrtCreateStream(&stream));
  CHECK_IS(aclrtLaunchCallback(Note, &seen, ACL_CALLBACK_BLOCK, stream),
           ACL_ERROR_RT_STREAM_NO_CB_REG);
  CHECK_IS(aclrtProcessReport(10), ACL_ERROR_RT_THREAD_SUBSCRIBE);
  CHECK_IS(aclrtProcessReport(0), ACL_ERROR_RT_PARAM_INVALID);
  pthread_create(&server, NULL, Serve, NULL);
  OK(aclrtSubscribeReport((uint64_t)server, stream));
  CHECK_IS(aclrtSubscribeReport((uint64_t)server, stream),
           ACL_ERROR_RT_STREAM_SUBSCRIBE);
  OK(aclrtLaunchCallback(Note, &seen, ACL_CALLBACK_BLOCK, stream));
  OK(aclrtSynchronizeStream(stream));  // a blocking one has run by now
  CHECK_IS(atomic_load(&seen.n), 1);
  CHECK(pthread_equal(seen.ran_in, server));
  OK(aclrtLaunchCallback(Note, &seen, ACL_CALLBACK_NO_BLOCK, stream));
  OK(aclrtSynchronizeStream(stream));
  while (atomic_load(&seen.n) < 2) sched_yield();
  // The two ways do not mix on one stream.
  CHECK_IS(aclrtLaunchHostFunc(stream, Note, &seen),
           ACL_ERROR_RT_STREAM_SUBSCRIBE);
  OK(aclrtUnSubscribeReport((uint64_t)server, stream));
  CHECK_IS(aclrtUnSubscribeReport((uint64_t)server, stream),
           ACL_ERROR_RT_STREAM_SUBSCRIBE);
  atomic_store(&g_stop, 1);
  pthread_join(server, NULL);
  OK(aclrtDestroyStream(stream));
}

static aclrtStream g_stream;
static aclError g_inner;
static aclError g_inner_device;

static void WaitForOwnStream(void* arg) {
  (void)arg;
  if (aclrtSetDevice(0) != ACL_SUCCESS) return;
  g_inner = aclrtSynchronizeStream(g_stream);
  g_inner_device = aclrtSynchronizeDevice();
}

// Waiting for the stream of the callback would never end: it is refused.
static void TestCallbackMayNotWaitForItself(void) {
  OK(aclrtCreateStream(&g_stream));
  OK(aclrtLaunchHostFunc(g_stream, WaitForOwnStream, NULL));
  OK(aclrtSynchronizeStream(g_stream));
  CHECK_IS(g_inner, ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(g_inner_device, ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtDestroyStream(g_stream));
  OK(aclrtResetDevice(0));
}

int main(void) {
  OK(aclInit(NULL));
  OK(aclrtSetDevice(0));
  TestSubscribed();
  TestCallbackMayNotWaitForItself();
  OK(aclrtResetDevice(0));
  OK(aclFinalize());
  return FAILURES();
}
