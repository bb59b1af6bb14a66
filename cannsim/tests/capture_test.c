// SPDX-License-Identifier: Apache-2.0
// Capture and replay: what is recorded, what is refused meanwhile, updates.
#include <stdlib.h>

#include "cannsim/tests/check.h"

enum { kBytes = 4096 };

static aclrtStream g_a;
static aclrtStream g_b;
static char* g_device;

static void Begin(aclmdlRICaptureMode mode) {
  OK(aclmdlRICaptureBegin(g_a, mode));
}

static void TestReplay(void) {
  aclmdlRI graph = NULL;
  aclmdlRICaptureStatus status = ACL_MODEL_RI_CAPTURE_STATUS_NONE;
  atomic_int n = 0;
  uint32_t id = 0;
  Begin(ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
  OK(aclmdlRICaptureGetInfo(g_a, &status, &graph));
  CHECK_IS(status, ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE);
  CHECK(graph != NULL);
  CHECK_IS(aclmdlRIExecuteAsync(graph, g_b), ACL_ERROR_RT_MODEL_CAPTURED);
  OK(aclrtLaunchHostFunc(g_a, AddOne, &n));
  OK(aclrtMemsetAsync(g_device, kBytes, 9, kBytes, g_a));
  OK(aclmdlRICaptureEnd(g_a, &graph));
  CHECK_IS(atomic_load(&n), 0);  // recorded, not run
  OK(aclmdlRICaptureGetInfo(g_a, &status, NULL));
  CHECK_IS(status, ACL_MODEL_RI_CAPTURE_STATUS_NONE);
  for (int i = 0; i < 3; ++i) OK(aclmdlRIExecuteAsync(graph, g_a));
  OK(aclmdlRIExecute(graph, -1));
  OK(aclrtSynchronizeStream(g_a));
  CHECK_IS(atomic_load(&n), 4);
  char byte = 0;
  OK(aclrtMemcpy(&byte, 1, g_device + 77, 1, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_IS(byte, 9);
  OK(aclmdlRIGetId(graph, &id));
  CHECK(id > 0);
  OK(aclmdlRIDestroy(graph));
  CHECK_IS(aclmdlRIDestroy(graph), ACL_ERROR_RT_PARAM_INVALID);
}

static void TestRunningIsNotDestroyed(void) {
  aclmdlRI graph = NULL;
  Door door;
  DoorInit(&door);
  Begin(ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  OK(aclrtLaunchHostFunc(g_a, DoorWait, &door));
  OK(aclmdlRICaptureEnd(g_a, &graph));
  OK(aclmdlRIExecuteAsync(graph, g_b));
  CHECK_IS(aclmdlRIDestroy(graph), ACL_ERROR_RT_MODEL_RUNNING);
  DoorOpen(&door);
  OK(aclrtSynchronizeStream(g_b));
  OK(aclmdlRIDestroy(graph));
}

// A second stream joins by an event and must come back.
static void TestJoin(void) {
  aclrtEvent fork = NULL;
  aclrtEvent join = NULL;
  aclmdlRI graph = NULL;
  atomic_int n = 0;
  OK(aclrtCreateEventWithFlag(&fork, ACL_EVENT_SYNC));
  OK(aclrtCreateEventWithFlag(&join, ACL_EVENT_SYNC));
  Begin(ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL);
  OK(aclrtRecordEvent(fork, g_a));
  OK(aclrtStreamWaitEvent(g_b, fork));
  OK(aclrtLaunchHostFunc(g_b, AddOne, &n));
  CHECK_IS(aclmdlRICaptureEnd(g_b, &graph),
           ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED);
  CHECK_IS(aclmdlRICaptureEnd(g_a, &graph), ACL_ERROR_RT_STREAM_UNJOINED);
  CHECK(graph == NULL);

  Begin(ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL);
  OK(aclrtRecordEvent(fork, g_a));
  OK(aclrtStreamWaitEvent(g_b, fork));
  OK(aclrtLaunchHostFunc(g_b, AddOne, &n));
  OK(aclrtRecordEvent(join, g_b));
  OK(aclrtStreamWaitEvent(g_a, join));
  OK(aclmdlRICaptureEnd(g_a, &graph));
  CHECK_IS(atomic_load(&n), 0);
  OK(aclmdlRIExecuteAsync(graph, g_a));
  OK(aclrtSynchronizeStream(g_a));
  CHECK_IS(atomic_load(&n), 1);
  // Recorded in a capture, an event has no state of its own.
  CHECK_IS(aclrtSynchronizeEvent(fork), ACL_ERROR_RT_EVENT_CAPTURED);
  OK(aclmdlRIDestroy(graph));
  OK(aclrtDestroyEvent(fork));
  OK(aclrtDestroyEvent(join));
}

typedef struct {
  aclrtStream stream;
  aclError copy;
  aclError end;
} OtherThread;

static void* FromOtherThread(void* arg) {
  OtherThread* other = (OtherThread*)arg;
  char byte = 0;
  aclmdlRI graph = NULL;
  OK(aclrtSetDevice(0));
  other->copy = aclrtMemcpy(&byte, 1, g_device, 1, ACL_MEMCPY_DEVICE_TO_HOST);
  other->end = aclmdlRICaptureEnd(other->stream, &graph);
  OK(aclrtResetDevice(0));
  return NULL;
}

static void AskOtherThread(aclError copy, aclError end) {
  pthread_t thread;
  OtherThread other = {g_a, 0, 0};
  pthread_create(&thread, NULL, FromOtherThread, &other);
  pthread_join(thread, NULL);
  CHECK_IS(other.copy, copy);
  CHECK_IS(other.end, end);
}

static void ExpectUnsafe(aclError expected) {
  char byte = 0;
  CHECK_IS(aclrtMemcpy(&byte, 1, g_device, 1, ACL_MEMCPY_DEVICE_TO_HOST),
           expected);
  CHECK_IS(aclrtMemset(g_device, 1, 0, 1), expected);
}

// What is not allowed while a stream is being captured, by mode.
static void TestForbidden(void) {
  aclmdlRI graph = NULL;
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  char byte = 0;
  CHECK_IS(aclmdlRICaptureBegin(NULL, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL),
           ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
  CHECK_IS(aclmdlRICaptureEnd(g_a, &graph), ACL_ERROR_RT_STREAM_NOT_CAPTURED);

  // Waiting is forbidden in every mode.
  Begin(ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  CHECK_IS(aclmdlRICaptureBegin(g_a, ACL_MODEL_RI_CAPTURE_MODE_RELAXED),
           ACL_ERROR_RT_STREAM_CAPTURED);
  CHECK_IS(aclrtSynchronizeStream(g_a), ACL_ERROR_RT_STREAM_CAPTURED);
  CHECK_IS(aclrtStreamQuery(g_a, &status), ACL_ERROR_RT_STREAM_CAPTURED);
  CHECK_IS(aclrtSynchronizeDevice(), ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);
  CHECK_IS(
      aclrtMemcpyAsync(&byte, 1, g_device, 1, ACL_MEMCPY_DEVICE_TO_HOST, g_a),
      ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);  // not pinned
  ExpectUnsafe(ACL_SUCCESS);
  CHECK_IS(aclmdlRICaptureEnd(g_a, &graph),
           ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);

  // Global: nobody may copy, and only this thread may end it.
  Begin(ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
  ExpectUnsafe(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT);
  AskOtherThread(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
                 ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD);
  CHECK_IS(aclmdlRICaptureEnd(g_a, &graph),
           ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);

  // Thread local: other threads may copy.
  Begin(ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL);
  AskOtherThread(ACL_SUCCESS, ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD);
  // And this one, once it says that it knows what it does.
  OK(aclmdlRICaptureThreadExchangeMode(&mode));
  CHECK_IS(mode, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL);
  ExpectUnsafe(ACL_SUCCESS);
  OK(aclmdlRICaptureThreadExchangeMode(&mode));
  CHECK_IS(mode, ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  OK(aclmdlRICaptureEnd(g_a, &graph));
  OK(aclmdlRIDestroy(graph));
}

static void TestOutsideWork(void) {
  aclrtEvent outside = NULL;
  aclrtEvent inside = NULL;
  aclmdlRI graph = NULL;
  OK(aclrtCreateEventWithFlag(&outside, ACL_EVENT_SYNC));
  OK(aclrtCreateEventWithFlag(&inside, ACL_EVENT_SYNC));
  OK(aclrtRecordEvent(outside, g_b));
  Begin(ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  CHECK_IS(aclrtStreamWaitEvent(g_a, outside), ACL_ERROR_RT_CAPTURE_DEPENDENCY);
  OK(aclrtRecordEvent(inside, g_a));
  CHECK_IS(aclrtStreamWaitEvent(NULL, inside),
           ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT);
  OK(aclmdlRICaptureBegin(g_b, ACL_MODEL_RI_CAPTURE_MODE_RELAXED));
  CHECK_IS(aclrtStreamWaitEvent(g_b, inside),
           ACL_ERROR_RT_STREAM_CAPTURE_CONFLICT);
  CHECK_IS(aclmdlRICaptureEnd(g_b, &graph),
           ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
  CHECK_IS(aclmdlRICaptureEnd(g_a, &graph),
           ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED);
  OK(aclrtDestroyEvent(outside));
  OK(aclrtDestroyEvent(inside));
}

// A marked task gets other arguments between two replays.
static void TestUpdate(void) {
  aclrtTaskGrp group = NULL;
  aclmdlRI graph = NULL;
  char byte = 0;
  atomic_int n = 0;
  Begin(ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  OK(aclmdlRICaptureTaskGrpBegin(g_a));
  OK(aclrtMemsetAsync(g_device, kBytes, 1, kBytes, g_a));
  OK(aclmdlRICaptureTaskGrpEnd(g_a, &group));
  CHECK_IS(aclmdlRICaptureTaskGrpEnd(g_a, &group),
           ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS);
  OK(aclmdlRICaptureEnd(g_a, &graph));
  OK(aclmdlRICaptureTaskUpdateBegin(g_b, group));
  OK(aclrtMemsetAsync(g_device, kBytes, 2, kBytes, g_b));
  OK(aclmdlRICaptureTaskUpdateEnd(g_b));
  OK(aclrtSynchronizeStream(g_b));
  OK(aclmdlRIExecuteAsync(graph, g_a));
  OK(aclrtSynchronizeStream(g_a));
  OK(aclrtMemcpy(&byte, 1, g_device, 1, ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK_IS(byte, 2);
  // As many tasks, of the same kind.
  OK(aclmdlRICaptureTaskUpdateBegin(g_b, group));
  CHECK_IS(aclmdlRICaptureTaskUpdateEnd(g_b), ACL_ERROR_RT_MODEL_UPDATE_FAILED);
  OK(aclmdlRICaptureTaskUpdateBegin(g_b, group));
  OK(aclrtLaunchHostFunc(g_b, AddOne, &n));
  CHECK_IS(aclmdlRICaptureTaskUpdateEnd(g_b),
           ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP);
  OK(aclmdlRIDestroy(graph));
}

// An external event orders an update before the replay that needs it.
static void TestExternalEvents(void) {
  aclrtEvent event = NULL;
  aclmdlRI graph = NULL;
  atomic_int n = 0;
  Door door;
  DoorInit(&door);
  OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC | ACL_EVENT_EXTERNAL));
  Begin(ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  OK(aclrtStreamWaitEvent(g_a, event));
  OK(aclrtLaunchHostFunc(g_a, AddOne, &n));
  OK(aclmdlRICaptureEnd(g_a, &graph));
  OK(aclrtLaunchHostFunc(g_b, DoorWait, &door));
  OK(aclrtRecordEvent(event, g_b));
  OK(aclmdlRIExecuteAsync(graph, g_a));
  CHECK_IS(aclrtSynchronizeStreamWithTimeout(g_a, 10),
           ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  CHECK_IS(atomic_load(&n), 0);
  DoorOpen(&door);
  OK(aclrtSynchronizeStream(g_a));
  CHECK_IS(atomic_load(&n), 1);
  OK(aclmdlRIDestroy(graph));
  OK(aclrtDestroyEvent(event));
}

int main(void) {
  OK(aclInit(NULL));
  OK(aclrtSetDevice(0));
  OK(aclrtCreateStream(&g_a));
  OK(aclrtCreateStream(&g_b));
  OK(aclrtMalloc((void**)&g_device, kBytes, ACL_MEM_MALLOC_HUGE_FIRST));
  TestReplay();
  TestRunningIsNotDestroyed();
  TestJoin();
  TestForbidden();
  TestOutsideWork();
  TestUpdate();
  TestExternalEvents();
  OK(aclrtFree(g_device));
  OK(aclrtDestroyStream(g_a));
  OK(aclrtDestroyStream(g_b));
  OK(aclrtResetDevice(0));
  OK(aclFinalize());
  return FAILURES();
}
