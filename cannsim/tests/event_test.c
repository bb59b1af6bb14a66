// SPDX-License-Identifier: Apache-2.0
// Events: what a record covers, what a wait waits for, which kind may what.
#include "cannsim/tests/check.h"

static aclrtStream g_a;
static aclrtStream g_b;

static void TestWaitAcrossStreams(void) {
  aclrtEvent event = NULL;
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  aclrtEventWaitStatus waited = ACL_EVENT_WAIT_STATUS_RESERVED;
  atomic_int n = 0;
  Door door;
  DoorInit(&door);
  OK(aclrtCreateEventWithFlag(&event, ACL_EVENT_SYNC));
  OK(aclrtQueryEventStatus(event, &recorded));
  CHECK_IS(recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  OK(aclrtLaunchHostFunc(g_a, DoorWait, &door));
  OK(aclrtRecordEvent(event, g_a));
  OK(aclrtStreamWaitEvent(g_b, event));
  OK(aclrtLaunchHostFunc(g_b, AddOne, &n));
  DoorAwait(&door);
  OK(aclrtQueryEventStatus(event, &recorded));
  CHECK_IS(recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  OK(aclrtQueryEventWaitStatus(event, &waited));
  CHECK_IS(waited, ACL_EVENT_WAIT_STATUS_NOT_READY);
  CHECK_IS(aclrtSynchronizeEventWithTimeout(event, 10),
           ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
  CHECK_IS(atomic_load(&n), 0);
  DoorOpen(&door);
  OK(aclrtSynchronizeStream(g_b));
  CHECK_IS(atomic_load(&n), 1);
  OK(aclrtSynchronizeEvent(event));
  OK(aclrtQueryEventStatus(event, &recorded));
  CHECK_IS(recorded, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  OK(aclrtQueryEventWaitStatus(event, &waited));
  CHECK_IS(waited, ACL_EVENT_WAIT_STATUS_COMPLETE);
  OK(aclrtResetEvent(event, g_a));
  OK(aclrtSynchronizeStream(g_a));
  OK(aclrtQueryEventStatus(event, &recorded));
  CHECK_IS(recorded, ACL_EVENT_RECORDED_STATUS_NOT_READY);
  OK(aclrtDestroyEvent(event));
}

// A wait holds the record that was the latest when it was asked for: recording
// again behind a closed door does not move it.
static void TestRecordAgainDoesNotMoveWaits(void) {
  aclrtEvent event = NULL;
  Door door;
  DoorInit(&door);
  OK(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  OK(aclrtRecordEvent(event, g_a));
  OK(aclrtStreamWaitEvent(g_b, event));
  OK(aclrtLaunchHostFunc(g_a, DoorWait, &door));
  OK(aclrtRecordEvent(event, g_a));
  OK(aclrtSynchronizeStream(g_b));  // not held up by the door
  CHECK_IS(aclrtSynchronizeEventWithTimeout(event, 10),
           ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);  // the latest record is
  DoorOpen(&door);
  OK(aclrtSynchronizeEvent(event));
  OK(aclrtDestroyEvent(event));
}

static void TestKinds(void) {
  aclrtEvent plain = NULL;
  aclrtEvent time_only = NULL;
  aclrtEvent ex = NULL;
  aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_NOT_READY;
  aclrtEventWaitStatus waited = ACL_EVENT_WAIT_STATUS_RESERVED;
  OK(aclrtCreateEvent(&plain));
  OK(aclrtCreateEventWithFlag(&time_only, ACL_EVENT_TIME_LINE));
  OK(aclrtCreateEventExWithFlag(&ex, ACL_EVENT_SYNC));
  CHECK_IS(aclrtResetEvent(plain, g_a), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtStreamWaitEvent(g_a, plain));  // allowed for plain events
  CHECK_IS(aclrtResetEvent(time_only, g_a), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtStreamWaitEvent(g_a, time_only), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtResetEvent(ex, g_a), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtQueryEvent(ex, &status), ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  CHECK_IS(aclrtQueryEventWaitStatus(ex, &waited),
           ACL_ERROR_RT_FEATURE_NOT_SUPPORT);
  OK(aclrtQueryEventStatus(ex, &recorded));  // before any record
  CHECK_IS(recorded, ACL_EVENT_RECORDED_STATUS_COMPLETE);
  OK(aclrtQueryEvent(plain, &status));
  CHECK_IS(status, ACL_EVENT_STATUS_NOT_READY);
  OK(aclrtRecordEvent(plain, g_a));
  OK(aclrtSynchronizeEvent(plain));
  OK(aclrtQueryEvent(plain, &status));
  CHECK_IS(status, ACL_EVENT_STATUS_COMPLETE);
  OK(aclrtDestroyEvent(plain));
  OK(aclrtDestroyEvent(time_only));
  OK(aclrtDestroyEvent(ex));
  CHECK_IS(aclrtDestroyEvent(ex), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtRecordEvent(ex, g_a), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtCreateEventWithFlag(&ex, 0x4), ACL_ERROR_RT_PARAM_INVALID);
}

static void Sleep10Ms(void* arg) {
  (void)arg;
  const struct timespec ten_ms = {0, 10000000};
  nanosleep(&ten_ms, NULL);
}

static void TestTime(void) {
  aclrtEvent begin = NULL;
  aclrtEvent end = NULL;
  aclrtEvent other = NULL;
  float ms = -1.0F;
  uint64_t stamp_begin = 0;
  uint64_t stamp_end = 0;
  OK(aclrtCreateEventWithFlag(&begin, ACL_EVENT_TIME_LINE));
  OK(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
  OK(aclrtCreateEventWithFlag(&other, ACL_EVENT_SYNC));
  CHECK_IS(aclrtEventElapsedTime(&ms, begin, end),
           ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  OK(aclrtRecordEvent(begin, g_a));
  OK(aclrtLaunchHostFunc(g_a, Sleep10Ms, NULL));
  OK(aclrtRecordEvent(end, g_a));
  OK(aclrtRecordEvent(other, g_a));
  OK(aclrtSynchronizeStream(g_a));
  OK(aclrtEventElapsedTime(&ms, begin, end));
  CHECK(ms >= 10.0F);  // no upper end: the machine may be busy
  CHECK_IS(aclrtEventElapsedTime(&ms, end, begin),
           ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL);
  CHECK_IS(aclrtEventElapsedTime(&ms, begin, other),
           ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID);
  OK(aclrtEventGetTimestamp(begin, &stamp_begin));
  OK(aclrtEventGetTimestamp(end, &stamp_end));
  CHECK(stamp_end >= stamp_begin + 10000);
  OK(aclrtDestroyEvent(begin));
  OK(aclrtDestroyEvent(end));
  OK(aclrtDestroyEvent(other));
}

int main(void) {
  OK(aclInit(NULL));
  OK(aclrtSetDevice(0));
  OK(aclrtCreateStream(&g_a));
  OK(aclrtCreateStream(&g_b));
  TestWaitAcrossStreams();
  TestRecordAgainDoesNotMoveWaits();
  TestKinds();
  TestTime();
  OK(aclrtDestroyStream(g_a));
  OK(aclrtDestroyStream(g_b));
  OK(aclrtResetDevice(0));
  OK(aclFinalize());
  return FAILURES();
}
