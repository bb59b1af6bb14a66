// SPDX-License-Identifier: Apache-2.0
// Ranks that end, do not come or call something else: nobody hangs, and the
// error says who it was.
#include "cannsim/tests/client.h"
#include "cannsim/tests/ranks.h"

static char g_text[1 << 16];
static const HcclDataType kFloat = HCCL_DATA_TYPE_FP32;

static HcclResult Reduce(Rank* r, void* buffer, uint64_t count) {
  return HcclAllReduce(buffer, buffer, count, kFloat, HCCL_REDUCE_SUM, r->comm,
                       r->stream);
}

// The wait ends with `code`, and the message has all of the words.
static void Fails(Rank* r, int code, const char* a, const char* b) {
  CHECK_IS(aclrtSynchronizeStream(r->stream), code);
  const char* text = aclGetRecentErrMsg();
  if (strstr(text, a) == NULL || strstr(text, b) == NULL) {
    printf("rank %d: no \"%s\" and \"%s\" in: %s\n", r->rank, a, b, text);
    CHECK(0);
  }
}

static HcclResult Async(Rank* r) {
  HcclResult result = HCCL_SUCCESS;
  CHECK_IS(HcclGetCommAsyncError(r->comm, &result), HCCL_SUCCESS);
  return result;
}

// --- A rank is killed ---

static void KilledBefore(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = OnDevice(NULL, 4096);
  CHECK_IS(HcclBarrier(r->comm, r->stream), HCCL_SUCCESS);
  OK(aclrtSynchronizeStream(r->stream));
  if (r->rank == 2) raise(SIGKILL);
  CHECK_IS(Reduce(r, buffer, 1024), HCCL_SUCCESS);
  Fails(r, ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, "\nEI0002: ", "remote rank: [2]");
  CHECK_IS(Async(r), HCCL_E_REMOTE);
  // The communicator is of no use any more, and says so at once.
  CHECK_IS(Reduce(r, buffer, 1024), HCCL_SUCCESS);
  Fails(r, ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, "EI9999", "does not work");
  OK(aclrtFree(buffer));
  Leave(r);
}

#define LARGE (1 << 22)

static void KilledAmidst(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = OnDevice(NULL, LARGE * (size_t)4);
  CHECK_IS(HcclBroadcast(buffer, LARGE, kFloat, 0, r->comm, r->stream),
           HCCL_SUCCESS);
  if (r->rank == 0) {
    Pause(2);
    raise(SIGKILL);
  }
  const int code = aclrtSynchronizeStream(r->stream);
  CHECK(code == ACL_ERROR_RT_FFTS_PLUS_TIMEOUT || code == 0);  // fast machine
  OK(aclrtFree(buffer));
  Leave(r);
}

static void TestKilled(void) {
  int status[4];
  RunRanks(4, KilledBefore, status);
  for (int i = 0; i < 4; ++i) CHECK_IS(status[i], i == 2 ? -SIGKILL : 0);
  RunRanks(3, KilledAmidst, status);
  for (int i = 0; i < 3; ++i) CHECK_IS(status[i], i == 0 ? -SIGKILL : 0);
}

// --- A rank destroys its communicator, or gives up ---

static void LeavesEarly(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = OnDevice(NULL, 64);
  if (r->rank != 1) {
    CHECK_IS(Reduce(r, buffer, 16), HCCL_SUCCESS);
    Fails(r, ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, "EI0002", "destroyed its");
  }
  OK(aclrtFree(buffer));
  Leave(r);
}

// --- A rank never comes ---

static void NeverCalls(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = OnDevice(NULL, 64);
  if (r->rank == 3) {
    while (atomic_load(&g_shared->marks[0]) < 3) Pause(5);
  } else {
    CHECK_IS(Reduce(r, buffer, 16), HCCL_SUCCESS);
    Fails(r, ACL_ERROR_RT_FFTS_PLUS_TIMEOUT, "EI0002", "remote rank: [3]");
    CHECK_IS(Async(r), HCCL_E_TIMEOUT);
    atomic_fetch_add(&g_shared->marks[0], 1);
  }
  OK(aclrtFree(buffer));
  Leave(r);
}

static void NeverConnects(Rank* r) {
  Enter(r);
  if (r->rank < 2) {
    // The time of one is up first; the other sees it go.
    const HcclResult result = Connect(r);
    CHECK(result == HCCL_E_TIMEOUT || result == HCCL_E_TCP_CONNECT);
    if (result == HCCL_E_TIMEOUT) atomic_store(&g_shared->marks[1], 1);
    const char* text = aclGetRecentErrMsg();
    CHECK(strstr(text, "EI0006: ") == text);
    CHECK(strstr(strstr(text, "missing: ["), "2]") != NULL);
    CHECK(r->comm == NULL);
    atomic_fetch_add(&g_shared->marks[0], 1);
  }
  while (atomic_load(&g_shared->marks[0]) < 2) Pause(5);
  CHECK(atomic_load(&g_shared->marks[1]));
  Leave(r);
}

static void DiesConnecting(Rank* r) {
  Enter(r);
  r->n = 3;
  if (r->rank == 1) {
    while (!atomic_load(&g_shared->has_root)) Pause(1);
    if (fork() == 0) {  // joins, and is killed while the others wait
      alarm(1);
      OK(aclrtSetDevice(1));
      HcclCommInitRootInfo(3, &g_shared->root, 1, &r->comm);
      _exit(0);
    }
  } else if (r->rank == 0) {
    CHECK_IS(Connect(r), HCCL_E_TCP_CONNECT);
    CHECK(strstr(aclGetRecentErrMsg(), "missing: [1 2]") != NULL);
  }
  Leave(r);
}

static void RootEnds(Rank* r) {
  Enter(r);
  if (r->rank == 0) {
    CHECK_IS(HcclGetRootInfo(&g_shared->root), HCCL_SUCCESS);
    atomic_store(&g_shared->has_root, getpid());
    _exit(0);
  }
  while (!atomic_load(&g_shared->has_root)) Pause(1);
  while (kill(atomic_load(&g_shared->has_root), 0) == 0) Pause(1);
  CHECK_IS(Connect(r), HCCL_E_TCP_CONNECT);
  CHECK(strstr(aclGetRecentErrMsg(), "EI0006") != NULL);
  CHECK(strstr(aclGetRecentErrMsg(), "EI0006") == NULL);  // reading clears
  Leave(r);
}

static void TestNeverComes(void) {
  setenv("CANNSIM_HCCL_SECOND", "0.002", 1);
  setenv("HCCL_EXEC_TIMEOUT", "200", 1);
  CHECK_IS(RunRanks(4, NeverCalls, NULL), 0);
  setenv("HCCL_CONNECT_TIMEOUT", "150", 1);
  CHECK_IS(RunRanks(3, NeverConnects, NULL), 0);
  unsetenv("CANNSIM_HCCL_SECOND");
  CHECK_IS(RunRanks(2, RootEnds, NULL), 0);
  CHECK_IS(RunRanks(2, DiesConnecting, NULL), 0);
  unsetenv("HCCL_EXEC_TIMEOUT");
  unsetenv("HCCL_CONNECT_TIMEOUT");
  CHECK_IS(RunRanks(3, LeavesEarly, NULL), 0);
}

// --- Calls that differ ---

static void Differs(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  const int odd = r->rank == 1;
  const uint64_t six = 6, five = 5, zero = 0;
  float host[16];
  for (int i = 0; i < 16; ++i) host[i] = 1;
  void* a = OnDevice(host, 64);
  void* b = OnDevice(host, 64);
  const char* said[] = {"rank 1 calls HcclAllReduce (count 5,",
                        "int32",
                        "max",
                        "root 1",
                        "HcclBarrier",
                        "rank 0 sends 24 bytes"};
  for (int what = 0; what < 6; ++what) {
    HcclResult result = HCCL_SUCCESS;
    switch (what) {
      case 0:
        result = Reduce(r, a, odd ? 5 : 6);
        break;
      case 1:
        result = HcclAllGather(a, b, 2, odd ? HCCL_DATA_TYPE_INT32 : kFloat,
                               r->comm, r->stream);
        break;
      case 2:
        result =
            HcclReduce(a, b, 4, kFloat, odd ? HCCL_REDUCE_MAX : HCCL_REDUCE_SUM,
                       0, r->comm, r->stream);
        break;
      case 3:
        result = HcclBroadcast(a, 4, kFloat, odd ? 1 : 0, r->comm, r->stream);
        break;
      case 4:
        result = odd ? HcclBarrier(r->comm, r->stream) : Reduce(r, a, 3);
        break;
      default: {
        // Rank 0 sends six elements to rank 1, which expects five.
        const uint64_t sends[2] = {0, r->rank == 0 ? six : zero};
        const uint64_t receives[2] = {odd ? five : zero, 0};
        const uint64_t places[2] = {0, 0};
        result = HcclAlltoAllV(a, sends, places, kFloat, b, receives, places,
                               kFloat, r->comm, r->stream);
      }
    }
    CHECK_IS(result, HCCL_SUCCESS);
    Fails(r, ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, "EI0005", said[what]);
    CHECK_IS(Async(r), HCCL_E_PARA);
  }
  // No byte has moved, and the communicator is as good as before.
  CHECK_IS(Reduce(r, a, 16), HCCL_SUCCESS);
  OK(aclrtSynchronizeStream(r->stream));
  ToHost(host, a, 64);
  for (int i = 0; i < 16; ++i) CHECK(host[i] == 2.0F);
  OK(aclrtFree(a));
  OK(aclrtFree(b));
  Leave(r);
}

static int DiffersInChild(void) { return RunRanks(2, Differs, NULL); }

static void TestDiffers(void) {
  CHECK_IS(RunRanks(2, Differs, NULL), 0);
  CHECK_IS(
      RunChild(DiffersInChild, "CANNSIM_STRICT", "1", g_text, sizeof(g_text)),
      0);
  CHECK(strstr(g_text, "SIM-019 collective 1 of") != NULL);
  CHECK(strstr(g_text, "hccl_fault_test") != NULL);  // the place
}

static void DifferentSizes(Rank* r) {
  Enter(r);
  if (r->rank == 1) r->n = 3;
  const HcclResult result = Connect(r);
  CHECK(result == HCCL_E_PARA || result == HCCL_E_TIMEOUT);
  Leave(r);
}

static void OneRankTwice(Rank* r) {
  Enter(r);
  if (r->rank == 2) {
    while (!atomic_load(&g_shared->marks[0])) Pause(1);
    CHECK_IS(HcclCommInitRootInfo(2, &g_shared->root, 1, &r->comm),
             HCCL_E_PARA);
    atomic_store(&g_shared->marks[1], 1);
  } else if (r->rank == 1) {
    r->n = 2;
    while (!atomic_load(&g_shared->has_root)) Pause(1);
    atomic_store(&g_shared->marks[0], 0);
    CHECK_IS(Connect(r), HCCL_SUCCESS);
  } else {
    r->n = 2;
    CHECK_IS(HcclGetRootInfo(&g_shared->root), HCCL_SUCCESS);
    atomic_store(&g_shared->has_root, 1);
    Pause(100);  // rank 1 has joined and waits
    atomic_store(&g_shared->marks[0], 1);
    while (!atomic_load(&g_shared->marks[1])) Pause(1);
    CHECK_IS(HcclCommInitRootInfo(2, &g_shared->root, 0, &r->comm),
             HCCL_SUCCESS);
  }
  Leave(r);
}

// --- Fault scripts ---

static void ThirdFails(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = OnDevice(NULL, 64);
  for (int i = 1; i <= 2; ++i) {
    CHECK_IS(Reduce(r, buffer, 16), HCCL_SUCCESS);
    OK(aclrtSynchronizeStream(r->stream));
  }
  CHECK_IS(Reduce(r, buffer, 16), HCCL_SUCCESS);
  if (r->rank == 1) {
    CHECK_IS(aclrtSynchronizeStream(r->stream), 507035);
    // It goes on, as if nothing had been.
    CHECK_IS(Reduce(r, buffer, 16), HCCL_SUCCESS);
    CHECK(aclrtSynchronizeStream(r->stream) != 0);
  } else {
    Fails(r, ACL_ERROR_RT_FFTS_PLUS_EXCEPTION, "EI0005",
          "rank 1 never ran its own");
  }
  OK(aclrtFree(buffer));
  Leave(r);
}

static int ThirdFailsInChild(void) { return RunRanks(2, ThirdFails, NULL); }

static int g_is_slow;

// What an event measures of one collective; the other rank is a hundred times
// slower, and both are done when it is.
static void Slow(Rank* r) {
  aclrtEvent begin = NULL, end = NULL;
  float ms = -1;
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = OnDevice(NULL, 4 << 20);
  OK(aclrtCreateEventWithFlag(&begin, ACL_EVENT_TIME_LINE));
  OK(aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE));
  OK(aclrtRecordEvent(begin, r->stream));
  CHECK_IS(Reduce(r, buffer, 1 << 20), HCCL_SUCCESS);
  CHECK_IS(HcclBarrier(r->comm, r->stream), HCCL_SUCCESS);
  OK(aclrtRecordEvent(end, r->stream));
  OK(aclrtSynchronizeStream(r->stream));
  OK(aclrtEventElapsedTime(&ms, begin, end));
  CHECK(g_is_slow == (ms > 1));  // 100 times 4 MiB over the link
  OK(aclrtDestroyEvent(begin));
  OK(aclrtDestroyEvent(end));
  OK(aclrtFree(buffer));
  Leave(r);
}

static int SlowInChild(void) {
  g_is_slow = getenv("CANNSIM_FAULTS")[0] != '\0';
  return RunRanks(2, Slow, NULL);
}

static void TestScripts(void) {
  CHECK_IS(RunChild(ThirdFailsInChild, "CANNSIM_FAULTS",
                    "at 3rd AllReduce on device 1 return 507035", g_text,
                    sizeof(g_text)),
           0);
  CHECK(strstr(g_text, "HcclAllReduce, number 3 that fits, on device 1") !=
        NULL);
  CHECK_IS(RunChild(SlowInChild, "CANNSIM_FAULTS",
                    "always HcclAllReduce on device 1 slow 100", g_text,
                    sizeof(g_text)),
           0);
  CHECK_IS(RunChild(SlowInChild, "CANNSIM_FAULTS", "", g_text, sizeof(g_text)),
           0);
}

// --- Strict mode and arguments ---

static int Alone(HcclComm* comm) {
  HcclRootInfo root;
  return aclInit(NULL) == 0 && aclrtSetDevice(0) == 0 &&
         HcclGetRootInfo(&root) == HCCL_SUCCESS &&
         HcclCommInitRootInfo(1, &root, 0, comm) == HCCL_SUCCESS;
}

static int Leaks(void) {
  HcclComm comm = NULL;
  exit(Alone(&comm) ? 0 : 1);
}

static int DestroysTwice(void) {
  HcclComm comm = NULL;
  if (!Alone(&comm)) return 1;
  if (HcclCommDestroy(comm) != HCCL_SUCCESS) return 2;
  exit(HcclCommDestroy(comm) == HCCL_E_PARA ? 0 : 3);
}

static int BadVariable(void) {
  HcclComm comm = NULL;
  return !Alone(&comm) && strstr(aclGetRecentErrMsg(), "EI0001") != NULL ? 0
                                                                         : 1;
}

static void TestStrict(void) {
  CHECK_IS(RunChild(Leaks, "CANNSIM_STRICT", "1", g_text, sizeof(g_text)), 0);
  CHECK(strstr(g_text, "SIM-012 the communicator cannsim_") != NULL);
  CHECK(strstr(g_text, "HcclCommInitRootInfo from") != NULL);
  CHECK_IS(RunChild(Leaks, "CANNSIM_STRICT", "exit", g_text, sizeof(g_text)),
           1);
  CHECK_IS(RunChild(Leaks, "CANNSIM_STRICT", "", g_text, sizeof(g_text)), 0);
  CHECK(strstr(g_text, "SIM-") == NULL);
  CHECK_IS(
      RunChild(DestroysTwice, "CANNSIM_STRICT", "1", g_text, sizeof(g_text)),
      0);
  CHECK(strstr(g_text, "SIM-013 this communicator") != NULL);
  CHECK(strstr(g_text, "SIM-012") == NULL);
  const char* const bad[][2] = {{"HCCL_CONNECT_TIMEOUT", "119"},
                                {"HCCL_CONNECT_TIMEOUT", "fast"},
                                {"HCCL_EXEC_TIMEOUT", "-1"},
                                {"HCCL_EXEC_TIMEOUT", ""}};
  for (int i = 0; i < 4; ++i) {
    CHECK_IS(
        RunChild(BadVariable, bad[i][0], bad[i][1], g_text, sizeof(g_text)), 0);
  }
}

int main(void) {
  setenv("CANNSIM_DEVICES", "8", 1);
  TestKilled();
  TestNeverComes();
  TestDiffers();
  CHECK_IS(RunRanks(3, OneRankTwice, NULL), 0);
  setenv("CANNSIM_HCCL_SECOND", "0.001", 1);
  CHECK_IS(RunRanks(2, DifferentSizes, NULL), 0);
  unsetenv("CANNSIM_HCCL_SECOND");
  TestScripts();
  TestStrict();
  return FAILURES();
}
