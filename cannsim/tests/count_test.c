// SPDX-License-Identifier: Apache-2.0
// Counters between two points, and simulated time: what a step of a program
// costs, without looking at a real clock. Figures of Ascend910B3: a launch of
// 10 us, copies of 20 us and up to 10 us of jitter, 25 GB/s.
#include "cannsim/cannsim.h"
#include "cannsim/tests/client.h"

static cannsimCounters g_before;
static cannsimCounters g_after;

static void Before(void) { cannsim_get_counters(&g_before, sizeof(g_before)); }

static void After(void) { cannsim_get_counters(&g_after, sizeof(g_after)); }

#define COUNT(field) (g_after.field - g_before.field)

// A steady step of decoding: one copy in, work, one copy out, one wait.
static void TestSteadyStep(aclrtStream stream) {
  void* host = NULL;
  float* sum = Filled(0);
  OK(aclrtMallocHost(&host, 32));
  memset(host, 0, 32);
  for (int step = 0; step < 3; ++step) {
    Before();
    OK(aclrtMemcpyAsync(sum, 32, host, 32, ACL_MEMCPY_HOST_TO_DEVICE, stream));
    CHECK_IS(Add(sum, sum, sum, stream), 0);
    OK(aclrtMemcpyAsync(host, 8, sum, 8, ACL_MEMCPY_DEVICE_TO_HOST, stream));
    OK(aclrtSynchronizeStream(stream));
    After();
    CHECK_IS(COUNT(launches), 3);
    CHECK_IS(COUNT(operators), 1);
    CHECK_IS(COUNT(host_syncs), 1);
    CHECK_IS(COUNT(blocking_copies), 0);
    CHECK_IS(COUNT(allocations), 0);
    CHECK_IS(COUNT(frees), 0);
    CHECK_IS(COUNT(host_allocations), 0);
    CHECK_IS(COUNT(bytes_to_device), 32);
    CHECK_IS(COUNT(bytes_to_host), 8);
    CHECK_IS(COUNT(compilations), 0);
    CHECK(COUNT(host_ns) >= 30000);  // a launch and two copies, at least
    CHECK(COUNT(host_ns) <= 71000);
  }
  OK(aclrtFreeHost(host));
  OK(aclrtFree(sum));
}

static void TestWhatIsNotSteady(aclrtStream stream) {
  char pageable[32] = {0};
  Before();
  float* one = Filled(1);  // malloc, blocking copy
  OK(aclrtMemcpyAsync(one, 32, pageable, 32, ACL_MEMCPY_HOST_TO_DEVICE,
                      stream));
  OK(aclrtSynchronizeDevice());
  After();
  CHECK_IS(COUNT(allocations), 1);
  CHECK_IS(COUNT(blocking_copies), 2);
  CHECK_IS(COUNT(host_syncs), 1);
  CHECK_IS(COUNT(memory_bytes), 32);
  CHECK(g_after.memory_peak_bytes >= g_after.memory_bytes);
  Before();
  float* two = Filled(2);
  OK(aclrtMemcpyAsync(one, 32, two, 32, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  OK(aclrtSynchronizeStream(stream));
  OK(aclrtFree(one));
  OK(aclrtFree(two));
  After();
  CHECK_IS(COUNT(bytes_on_device), 32);
  CHECK_IS(COUNT(frees), 2);
  // A caller of an older header gets what it knows, and nothing more.
  cannsimCounters old;
  memset(&old, 0x55, sizeof(old));
  cannsim_get_counters(&old, sizeof(old.launches));
  CHECK_IS(old.launches, g_after.launches);
  CHECK_IS(old.operators, 0x5555555555555555LL);
}

static void TestReplays(aclrtStream stream) {
  float* one = Filled(1);
  aclmdlRI graph = NULL;
  OK(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  CHECK_IS(Add(one, one, one, stream), 0);
  CHECK_IS(Add(one, one, one, stream), 0);
  OK(aclmdlRICaptureEnd(stream, &graph));
  Before();
  OK(aclmdlRIExecuteAsync(graph, stream));
  OK(aclrtSynchronizeStream(stream));
  After();
  CHECK_IS(COUNT(launches), 1);
  CHECK_IS(COUNT(graph_replays), 1);
  CHECK_IS(COUNT(operators), 2);
  OK(aclmdlRIDestroy(graph));
  OK(aclrtFree(one));
}

static float Elapsed(aclrtEvent a, aclrtEvent b) {
  float ms = -1.0F;
  OK(aclrtEventElapsedTime(&ms, a, b));
  return ms;
}

static void TestTimes(aclrtStream a) {
  aclrtStream b = NULL;
  aclrtEvent event[4];
  float* one = Filled(1);
  float* two = Filled(2);
  for (int i = 0; i < 4; ++i) {
    OK(aclrtCreateEventWithFlag(&event[i],
                                ACL_EVENT_TIME_LINE | ACL_EVENT_SYNC));
  }
  OK(aclrtCreateStream(&b));
  OK(aclrtSynchronizeDevice());
  OK(aclrtRecordEvent(event[0], a));
  for (int i = 0; i < 5; ++i) Add(one, one, one, a);
  OK(aclrtRecordEvent(event[1], a));
  // One sum beside the five, then one behind them.
  Add(two, two, two, b);
  OK(aclrtRecordEvent(event[2], b));
  OK(aclrtStreamWaitEvent(b, event[1]));
  Add(two, two, two, b);
  OK(aclrtRecordEvent(event[3], b));
  OK(aclrtSynchronizeDevice());
  const float five = Elapsed(event[0], event[1]);
  CHECK(five > 0.0499F && five < 0.0502F);
  const float beside = Elapsed(event[0], event[2]);
  CHECK(beside > 0.0099F && beside < 0.0102F);
  const float behind = Elapsed(event[0], event[3]);
  CHECK(behind > 0.0599F && behind < 0.0602F);
  for (int i = 0; i < 4; ++i) OK(aclrtDestroyEvent(event[i]));
  OK(aclrtDestroyStream(b));
  OK(aclrtFree(one));
  OK(aclrtFree(two));
}

int main(void) {
  aclrtStream stream = Start(0);
  CHECK(stream != NULL);
  TestSteadyStep(stream);
  TestWhatIsNotSteady(stream);
  TestReplays(stream);
  TestTimes(stream);
  OK(aclrtDestroyStream(stream));
  OK(aclrtResetDevice(0));
  OK(aclFinalize());
  return FAILURES();
}
