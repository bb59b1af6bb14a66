// SPDX-License-Identifier: Apache-2.0
// Strict mode: what it finds, where it says that it was, and that it is silent
// about programs that do it right. Nothing here depends on how fast anything
// ran. What is told at the end of a process is in tests/e2e/sim.
#include "cannsim/tests/client.h"

static char g_text[1 << 16];

static void End(aclrtStream stream) {
  FreeWorkspaces();
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
}

// --- SIM-012 ---

static int Handles(int leaks) {
  aclrtStream stream = Start(0);
  aclrtEvent event = NULL;
  aclrtCreateEvent(&event);
  if (!leaks) {
    aclrtDestroyEvent(event);
    aclrtDestroyStream(stream);
  }
  aclrtResetDevice(0);
  return 0;
}
static int HandlesNaive(void) { return Handles(1); }
static int HandlesCareful(void) { return Handles(0); }

// --- SIM-013 ---

static int AfterFree(int how) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  aclrtFree(one);
  if (how == 1) Value(one);
  if (how == 2) aclrtFree(one);
  End(stream);
  return 0;
}
static int AfterFreeRead(void) { return AfterFree(1); }
static int AfterFreeTwice(void) { return AfterFree(2); }
static int AfterFreeCareful(void) { return AfterFree(0); }

static int DestroyTwice(void) {
  aclrtStream stream = Start(0);
  aclTensor* tensor = Floats(NULL);
  aclDestroyTensor(tensor);
  aclDestroyTensor(tensor);
  End(stream);
  return 0;
}

// --- SIM-014 ---

static int FreeInUse(int waits) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  Add(one, one, one, stream);
  if (waits) aclrtSynchronizeStream(stream);
  aclrtFree(one);
  End(stream);
  return 0;
}
static int FreeInUseNaive(void) { return FreeInUse(0); }
static int FreeInUseCareful(void) { return FreeInUse(1); }

// --- SIM-015 ---

enum { kNothing, kStream, kDevice, kEvent, kOtherStream, kQuery };

static int ReadResult(int how) {
  aclrtStream stream = Start(0);
  aclrtStream other = NULL;
  aclrtEvent event = NULL;
  aclrtStreamStatus status = ACL_STREAM_STATUS_NOT_READY;
  float* one = Filled(1);
  aclrtCreateStream(&other);
  aclrtCreateEvent(&event);
  Add(one, one, one, stream);
  aclrtRecordEvent(event, stream);
  switch (how) {
    case kStream:
      aclrtSynchronizeStream(stream);
      break;
    case kDevice:
      aclrtSynchronizeDevice();
      break;
    case kEvent:
      aclrtSynchronizeEvent(event);
      break;
    case kOtherStream:
      aclrtStreamWaitEvent(other, event);
      aclrtSynchronizeStream(other);
      break;
    case kQuery:
      while (status != ACL_STREAM_STATUS_COMPLETE) {
        aclrtStreamQuery(stream, &status);
        sched_yield();
      }
      break;
    default:
      aclrtSynchronizeStream(other);  // the wrong one
      break;
  }
  Value(one);
  aclrtSynchronizeDevice();
  aclrtFree(one);
  aclrtDestroyEvent(event);
  aclrtDestroyStream(other);
  End(stream);
  return 0;
}
static int ReadNaive(void) { return ReadResult(kNothing); }
static int ReadStream(void) { return ReadResult(kStream); }
static int ReadDevice(void) { return ReadResult(kDevice); }
static int ReadEvent(void) { return ReadResult(kEvent); }
static int ReadOther(void) { return ReadResult(kOtherStream); }
static int ReadQuery(void) { return ReadResult(kQuery); }

// --- SIM-016 ---

// Two streams and one buffer, or one workspace.
static int TwoStreams(int ordered, int shares_workspace) {
  aclrtStream a = Start(0);
  aclrtStream b = NULL;
  aclrtEvent event = NULL;
  float* one = Filled(1);
  float* two = Filled(2);
  aclrtCreateStream(&b);
  aclrtCreateEvent(&event);
  Add(one, one, one, a);
  aclrtRecordEvent(event, a);
  if (ordered) aclrtStreamWaitEvent(b, event);
  if (shares_workspace) {
    g_workspaces[0].stream = b;
    Add(two, two, two, b);
  } else {
    Add(one, one, two, b);
  }
  aclrtSynchronizeDevice();
  aclrtFree(one);
  aclrtFree(two);
  aclrtDestroyEvent(event);
  aclrtDestroyStream(b);
  End(a);
  return 0;
}
static int BuffersNaive(void) { return TwoStreams(0, 0); }
static int BuffersCareful(void) { return TwoStreams(1, 0); }
static int WorkspaceNaive(void) { return TwoStreams(0, 1); }
static int WorkspaceCareful(void) { return TwoStreams(1, 1); }

// Different parts of one buffer, and reading together, are no race.
static int PartsCareful(void) {
  aclrtStream a = Start(0);
  aclrtStream b = NULL;
  void* pool = NULL;
  aclrtCreateStream(&b);
  aclrtMalloc(&pool, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(pool, 256, 0, 256);
  float* common = Filled(1);
  Add(common, common, (float*)pool, a);
  Add(common, common, (float*)pool + 32, b);
  aclrtSynchronizeDevice();
  aclrtFree(pool);
  aclrtFree(common);
  aclrtDestroyStream(b);
  End(a);
  return 0;
}

// --- SIM-017 ---

static int CopyLoop(int pinned) {
  static float pageable[N];
  aclrtStream stream = Start(0);
  void* host = pageable;
  float* device = Filled(0);
  if (pinned) aclrtMallocHost(&host, sizeof(pageable));
  for (int i = 0; i < 20; ++i) {
    aclrtMemcpyAsync(device, sizeof(pageable), host, sizeof(pageable),
                     ACL_MEMCPY_HOST_TO_DEVICE, stream);
  }
  aclrtSynchronizeStream(stream);
  aclrtFree(device);
  if (pinned) aclrtFreeHost(host);
  End(stream);
  return 0;
}
static int CopyNaive(void) { return CopyLoop(0); }
static int CopyCareful(void) { return CopyLoop(1); }

// What a child ended with. A naive one may have a race of its own (it frees or
// reads what the device still writes), which ThreadSanitizer sees too: its exit
// code is no fault of the simulator's then.
static int EndOf(int code, int is_naive) {
#ifdef __SANITIZE_THREAD__
  if (is_naive && code == 66) return 0;
#else
  (void)is_naive;
#endif
  return code;
}

int main(void) {
  setenv("CANNSIM_WORKSPACE", "512", 1);  // for all children
  const struct {
    const char* id;    // that must be said; null: nothing may be
    const char* says;  // a part of the text
    int (*program)(void);
  } cases[] = {
      {"SIM-012", "a stream made by aclrtCreateStream", HandlesNaive},
      {"SIM-012", "an event made by aclrtCreateEvent", HandlesNaive},
      {NULL, "", HandlesCareful},
      {"SIM-013", "aclrtMemcpy", AfterFreeRead},
      {"SIM-013", "freed by aclrtFree", AfterFreeTwice},
      {"SIM-013", "aclTensor was destroyed before", DestroyTwice},
      {NULL, "", AfterFreeCareful},
      {"SIM-014", "aclnnAdd", FreeInUseNaive},
      {NULL, "", FreeInUseCareful},
      {"SIM-015", "the host reads what queued work may still", ReadNaive},
      {NULL, "", ReadStream},
      {NULL, "", ReadDevice},
      {NULL, "", ReadEvent},
      {NULL, "", ReadOther},
      {NULL, "", ReadQuery},
      {"SIM-016", "32 bytes at", BuffersNaive},
      {NULL, "", BuffersCareful},
      {"SIM-016", "512 bytes at", WorkspaceNaive},
      {NULL, "", WorkspaceCareful},
      {NULL, "", PartsCareful},
      {"SIM-017", "aclrtMemcpyAsync", CopyNaive},
      {NULL, "", CopyCareful},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    const int is_naive = cases[i].id != NULL;
    CHECK_IS(EndOf(RunChild(cases[i].program, "CANNSIM_STRICT", "1", g_text,
                            sizeof(g_text)),
                   is_naive),
             0);
    const char* said = cases[i].id == NULL ? strstr(g_text, "SIM-")
                                           : strstr(g_text, cases[i].id);
    const int is_right =
        cases[i].id == NULL
            ? said == NULL
            : said != NULL && strstr(said, cases[i].says) != NULL &&
                  strstr(said, "strict_test") != NULL;  // the place
    if (!is_right) {
      printf("case %zu (%s) said: %s\n", i,
             cases[i].id == NULL ? "nothing" : cases[i].id, g_text);
      CHECK(0);
    }
    // Without the mode nothing is said (and a second destruction is fatal).
    if (cases[i].program == DestroyTwice) continue;
    CHECK_IS(EndOf(RunChild(cases[i].program, "CANNSIM_STRICT", "", g_text,
                            sizeof(g_text)),
                   is_naive),
             0);
    CHECK(strstr(g_text, "SIM-") == NULL);
  }
  return FAILURES();
}
