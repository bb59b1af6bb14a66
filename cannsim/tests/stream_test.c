// SPDX-License-Identifier: Apache-2.0
// Streams: order within one, concurrency of two, waiting, ending, failures.
#include "cannsim/tests/check.h"

enum { kTasks = 500 };

typedef struct {
  int seen[kTasks];
  int n;
} Log;

typedef struct {
  Log* log;
  int number;
} Entry;

// Only one stream writes a log, so it needs no lock.
static void Append(void* arg) {
  const Entry* entry = (const Entry*)arg;
  entry->log->seen[entry->log->n++] = entry->number;
}

static void TestOrder(void) {
  static Log log;
  static Entry entries[kTasks];
  aclrtStream stream = NULL;
  OK(aclrtCreateStream(&stream));
  for (int i = 0; i < kTasks; ++i) {
    entries[i] = (Entry){&log, i};
    OK(aclrtLaunchHostFunc(stream, Append, &entries[i]));
  }
  OK(aclrtSynchronizeStream(stream));
  CHECK_IS(log.n, kTasks);
  for (int i = 0; i < kTasks; ++i) CHECK_IS(log.seen[i], i);
  OK(aclrtDestroyStream(stream));
}

// Each of two streams waits inside a callback for the other: only streams that
// run at the same time get past both doors.
typedef struct {
  Door* mine;
  Door* theirs;
} Meeting;

static void Meet(void* arg) {
  const Meeting* meeting = (const Meeting*)arg;
  DoorOpen(meeting->mine);
  DoorWait(meeting->theirs);
}

static void TestTwoStreamsOverlap(void) {
  aclrtStream a = NULL;
  aclrtStream b = NULL;
  Door door_a;
  Door door_b;
  DoorInit(&door_a);
  DoorInit(&door_b);
  Meeting of_a = {&door_a, &door_b};
  Meeting of_b = {&door_b, &door_a};
  OK(aclrtCreateStream(&a));
  OK(aclrtCreateStreamWithConfig(
      &b, 0, ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  OK(aclrtLaunchHostFunc(a, Meet, &of_a));
  OK(aclrtLaunchHostFunc(b, Meet, &of_b));
  OK(aclrtSynchronizeDevice());
  OK(aclrtDestroyStream(a));
  OK(aclrtDestroyStream(b));
}

static void TestAsynchronous(void) {
  aclrtStream stream = NULL;
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  Door door;
  DoorInit(&door);
  OK(aclrtCreateStream(&stream));
  OK(aclrtStreamQuery(stream, &status));
  CHECK_IS(status, ACL_STREAM_STATUS_COMPLETE);
  OK(aclrtLaunchHostFunc(stream, DoorWait, &door));
  DoorAwait(&door);  // the launch has returned while its work is not done
  OK(aclrtStreamQuery(stream, &status));
  CHECK_IS(status, ACL_STREAM_STATUS_NOT_READY);
  CHECK_IS(aclrtSynchronizeStreamWithTimeout(stream, 10),
           ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  CHECK(strstr(aclGetRecentErrMsg(), "EE1002") != NULL);
  CHECK_IS(aclrtSynchronizeDeviceWithTimeout(10),
           ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  CHECK_IS(aclrtSynchronizeStreamWithTimeout(stream, -2),
           ACL_ERROR_RT_PARAM_INVALID);
  DoorOpen(&door);
  OK(aclrtSynchronizeStreamWithTimeout(stream, -1));
  OK(aclrtStreamQuery(stream, &status));
  CHECK_IS(status, ACL_STREAM_STATUS_COMPLETE);
  OK(aclrtDestroyStream(stream));
}

static void TestDestroyWaits(void) {
  aclrtStream stream = NULL;
  atomic_int n = 0;
  OK(aclrtCreateStream(&stream));
  for (int i = 0; i < kTasks; ++i) OK(aclrtLaunchHostFunc(stream, AddOne, &n));
  OK(aclrtDestroyStream(stream));
  CHECK_IS(atomic_load(&n), kTasks);
  CHECK_IS(aclrtLaunchHostFunc(stream, AddOne, &n), ACL_ERROR_RT_PARAM_INVALID);
}

static void* OpenLater(void* arg) {
  const struct timespec a_moment = {0, 20000000};
  nanosleep(&a_moment, NULL);
  DoorOpen((Door*)arg);
  return NULL;
}

static void TestForceDropsWhatWaits(void) {
  aclrtStream stream = NULL;
  atomic_int n = 0;
  Door door;
  pthread_t opener;
  DoorInit(&door);
  OK(aclrtCreateStream(&stream));
  OK(aclrtLaunchHostFunc(stream, DoorWait, &door));
  OK(aclrtLaunchHostFunc(stream, AddOne, &n));
  DoorAwait(&door);
  pthread_create(&opener, NULL, OpenLater, &door);
  OK(aclrtDestroyStreamForce(stream));
  pthread_join(opener, NULL);
  CHECK_IS(atomic_load(&n), 0);
}

static void TestStreamsThatAreNotWaitedFor(void) {
  aclrtStream persistent = NULL;
  aclrtStream device = NULL;
  atomic_int n = 0;
  Door door;
  DoorInit(&door);
  OK(aclrtCreateStreamWithConfig(&persistent, 0, ACL_STREAM_PERSISTENT));
  OK(aclrtLaunchHostFunc(persistent, AddOne, &n));
  OK(aclrtSynchronizeStream(persistent));
  CHECK_IS(atomic_load(&n), 0);  // queued until a model is bound
  OK(aclrtCreateStreamWithConfig(&device, 0, ACL_STREAM_DEVICE_USE_ONLY));
  OK(aclrtLaunchHostFunc(device, DoorWait, &door));
  OK(aclrtSynchronizeStream(device));
  DoorOpen(&door);
  OK(aclrtDestroyStream(device));
  OK(aclrtDestroyStream(persistent));
  CHECK_IS(aclrtCreateStreamWithConfig(&device, 0, 0x4000),
           ACL_ERROR_RT_PARAM_INVALID);
}

// A wait that runs out of time is the task that fails here.
static void FailLater(aclrtStream stream, Door* door, aclrtStream helper) {
  aclrtEvent event = NULL;
  OK(aclrtCreateEvent(&event));
  OK(aclrtLaunchHostFunc(helper, DoorWait, door));
  OK(aclrtRecordEvent(event, helper));
  OK(aclrtSetOpWaitTimeout(1));
  OK(aclrtStreamWaitEvent(stream, event));
  OK(aclrtDestroyEvent(event));  // legal while it is waited for
}

static uint32_t g_failed_code;
static uint32_t g_failed_stream;

static void OnException(aclrtExceptionInfo* info) {
  g_failed_code = aclrtGetErrorCodeFromExceptionInfo(info);
  g_failed_stream = aclrtGetStreamIdFromExceptionInfo(info);
}

static void TestFailures(void) {
  aclrtContext context = NULL;
  aclrtStream stream = NULL;
  aclrtStream helper = NULL;
  int32_t id = -1;
  atomic_int n = 0;
  Door door;
  DoorInit(&door);
  OK(aclrtCreateContext(&context, 0));
  OK(aclrtCreateStream(&stream));
  OK(aclrtCreateStream(&helper));
  OK(aclrtStreamGetId(stream, &id));
  OK(aclrtSetExceptionInfoCallback(OnException));
  FailLater(stream, &door, helper);
  OK(aclrtLaunchHostFunc(stream, AddOne, &n));
  // The error comes out at the next wait, once; later tasks have run.
  CHECK_IS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_TASK_TIMEOUT);
  CHECK(strstr(aclGetRecentErrMsg(), "aclrtStreamWaitEvent") != NULL);
  CHECK_IS(g_failed_code, ACL_ERROR_RT_TASK_TIMEOUT);
  CHECK_IS(g_failed_stream, id);
  OK(aclrtSynchronizeStream(stream));
  CHECK_IS(atomic_load(&n), 1);
  DoorOpen(&door);
  OK(aclrtSynchronizeStream(helper));

  // Now the first failure stops the whole context.
  DoorInit(&door);
  OK(aclrtSetStreamFailureMode(stream, ACL_STOP_ON_FAILURE));
  CHECK_IS(aclrtSetStreamFailureMode(stream, ACL_CONTINUE_ON_FAILURE),
           ACL_ERROR_RT_PARAM_INVALID);  // once only
  FailLater(stream, &door, helper);
  CHECK_IS(aclrtSynchronizeStream(stream), ACL_ERROR_RT_TASK_TIMEOUT);
  DoorOpen(&door);
  OK(aclrtLaunchHostFunc(helper, AddOne, &n));
  CHECK_IS(aclrtSynchronizeStream(helper), ACL_ERROR_RT_TASK_TIMEOUT);
  CHECK_IS(atomic_load(&n), 1);
  OK(aclrtSetOpWaitTimeout(0));
  OK(aclrtSetExceptionInfoCallback(NULL));
  OK(aclrtDestroyContext(context));
  OK(aclrtSetDevice(0));
  OK(aclrtResetDevice(0));
}

int main(void) {
  OK(aclInit(NULL));
  OK(aclrtSetDevice(0));
  TestOrder();
  TestTwoStreamsOverlap();
  TestAsynchronous();
  TestDestroyWaits();
  TestForceDropsWhatWaits();
  TestStreamsThatAreNotWaitedFor();
  TestFailures();
  OK(aclrtResetDevice(0));
  OK(aclFinalize());
  return FAILURES();
}
