// SPDX-License-Identifier: Apache-2.0
// Communicators: several at once, parts of others, by rank table, in one
// process; and collectives as tasks of streams.
#include <dirent.h>

#include "cannsim/tests/ranks.h"

static const HcclDataType kFloat = HCCL_DATA_TYPE_FP32;

static HcclResult Reduce(HcclComm comm, void* buffer, aclrtStream stream) {
  return HcclAllReduce(buffer, buffer, 8, kFloat, HCCL_REDUCE_SUM, comm,
                       stream);
}

static void* Eight(float value) {
  float host[8];
  for (int i = 0; i < 8; ++i) host[i] = value;
  return OnDevice(host, sizeof(host));
}

// The value of all eight; -1 when they differ.
static float ValueOf(const void* device) {
  float host[8];
  ToHost(host, device, sizeof(host));
  for (int i = 1; i < 8; ++i) {
    if (host[i] != host[0]) return -1;
  }
  return host[0];
}

static int Entries(const char* folder, const char* part) {
  int n = 0;
  DIR* open = opendir(folder);
  const struct dirent* entry = NULL;
  while (open != NULL && (entry = readdir(open)) != NULL) {
    n += strstr(entry->d_name, part) != NULL;
  }
  if (open != NULL) closedir(open);
  return n;
}

// --- Two communicators on two streams ---

static void Two(Rank* r) {
  Enter(r);
  const int files = Entries("/proc/self/fd", "");
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  CHECK_IS(Entries("/dev/shm", "cannsim"), 0);
  // The second goes the other way round: ranks count down.
  HcclComm second = NULL;
  if (r->rank == 0) {
    CHECK_IS(HcclGetRootInfo(&g_shared->root), HCCL_SUCCESS);
    atomic_store(&g_shared->marks[0], 1);
  }
  while (!atomic_load(&g_shared->marks[0])) Pause(1);
  CHECK_IS(HcclCommInitRootInfo((uint32_t)r->n, &g_shared->root,
                                (uint32_t)(r->n - 1 - r->rank), &second),
           HCCL_SUCCESS);
  CHECK_IS(Entries("/proc/self/fd", ""), files);  // nothing stays open
  aclrtStream other = NULL;
  OK(aclrtCreateStream(&other));
  void* a = Eight(1);
  void* b = Eight(2);
  for (int i = 0; i < 20; ++i) {
    // Ranks queue them in different orders: they do not depend on each other.
    if (r->rank % 2 == 0) CHECK_IS(Reduce(r->comm, a, r->stream), 0);
    CHECK_IS(HcclBroadcast(b, 8, kFloat, 0, second, other), 0);
    if (r->rank % 2 != 0) CHECK_IS(Reduce(r->comm, a, r->stream), 0);
    OK(aclrtSynchronizeStream(i % 2 == 0 ? other : r->stream));
    OK(aclrtSynchronizeDevice());
    float want = 1;
    for (int k = 0; k <= i && k < 6; ++k) want *= (float)r->n;
    if (i == 5) {
      CHECK(ValueOf(a) == want);
      OK(aclrtFree(a));
      a = Eight(0);
    }
  }
  CHECK(ValueOf(b) == 2);
  // One communicator, two streams, ranks of the same order: it stays.
  void* c = Eight(1);
  void* d = Eight(10);
  for (int i = 0; i < 10; ++i) {
    CHECK_IS(Reduce(r->comm, c, r->stream), 0);
    CHECK_IS(HcclAllReduce(d, d, 8, kFloat, HCCL_REDUCE_MAX, r->comm, other),
             0);
  }
  OK(aclrtSynchronizeDevice());
  CHECK(ValueOf(d) == 10);
  float power = 1;
  for (int i = 0; i < 10; ++i) power *= (float)r->n;
  CHECK(ValueOf(c) == power);
  CHECK_IS(HcclCommDestroy(second), HCCL_SUCCESS);
  OK(aclrtDestroyStream(other));
  OK(aclrtFree(a));
  OK(aclrtFree(b));
  OK(aclrtFree(c));
  OK(aclrtFree(d));
  Leave(r);
}

// --- A collective is a task of its stream ---

static void Asynchronous(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = Eight(3);
  void* copy = Eight(0);
  if (r->rank == 0) {
    aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
    CHECK_IS(Reduce(r->comm, buffer, r->stream), HCCL_SUCCESS);
    OK(aclrtMemcpyAsync(copy, 32, buffer, 32, ACL_MEMCPY_DEVICE_TO_DEVICE,
                        r->stream));
    Pause(30);
    OK(aclrtStreamQuery(r->stream, &status));
    CHECK_IS(status, ACL_STREAM_STATUS_NOT_READY);  // nobody else has come
    atomic_store(&g_shared->marks[0], 1);
  } else {
    while (!atomic_load(&g_shared->marks[0])) Pause(1);
    CHECK_IS(Reduce(r->comm, buffer, r->stream), HCCL_SUCCESS);
    OK(aclrtMemcpyAsync(copy, 32, buffer, 32, ACL_MEMCPY_DEVICE_TO_DEVICE,
                        r->stream));
  }
  OK(aclrtSynchronizeStream(r->stream));
  CHECK(ValueOf(copy) == 6);
  // The default stream is a stream too.
  CHECK_IS(Reduce(r->comm, buffer, NULL), HCCL_SUCCESS);
  OK(aclrtSynchronizeStream(NULL));
  CHECK(ValueOf(buffer) == 12);
  // Recorded once, run three times.
  aclmdlRI graph = NULL;
  OK(aclmdlRICaptureBegin(r->stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL));
  CHECK_IS(Reduce(r->comm, buffer, r->stream), HCCL_SUCCESS);
  OK(aclmdlRICaptureEnd(r->stream, &graph));
  for (int i = 0; i < 3; ++i) OK(aclmdlRIExecuteAsync(graph, r->stream));
  CHECK_IS(HcclBarrier(r->comm, r->stream), HCCL_SUCCESS);
  OK(aclrtSynchronizeStream(r->stream));
  CHECK(ValueOf(buffer) == 96);
  OK(aclmdlRIDestroy(graph));
  OK(aclrtFree(buffer));
  OK(aclrtFree(copy));
  Leave(r);
}

// A stream that is destroyed by force takes the rank out, not with it.
static void Forced(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = Eight(3);
  if (r->rank == 0) {
    CHECK_IS(Reduce(r->comm, buffer, r->stream), HCCL_SUCCESS);
    Pause(10);
    OK(aclrtDestroyStreamForce(r->stream));
    OK(aclrtCreateStream(&r->stream));
    atomic_store(&g_shared->marks[0], 1);
    CHECK_IS(Reduce(r->comm, buffer, r->stream), HCCL_SUCCESS);
    CHECK_IS(aclrtSynchronizeStream(r->stream),
             ACL_ERROR_RT_FFTS_PLUS_EXCEPTION);
  } else {
    while (!atomic_load(&g_shared->marks[0])) Pause(1);
    HcclBarrier(r->comm, r->stream);
    CHECK(aclrtSynchronizeStream(r->stream) != 0);
  }
  OK(aclrtFree(buffer));
  Leave(r);
}

// A collective stands behind one that was queued before it on another stream,
// which never comes to it: it waits no longer than it may.
static void Behind(Rank* r) {
  Door door;
  aclrtStream other = NULL;
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  void* buffer = Eight(3);
  DoorInit(&door);
  OK(aclrtCreateStream(&other));
  OK(aclrtLaunchHostFunc(other, DoorWait, &door));
  CHECK_IS(Reduce(r->comm, buffer, other), HCCL_SUCCESS);
  CHECK_IS(Reduce(r->comm, buffer, r->stream), HCCL_SUCCESS);
  CHECK_IS(aclrtSynchronizeStream(r->stream), ACL_ERROR_RT_FFTS_PLUS_TIMEOUT);
  CHECK(strstr(aclGetRecentErrMsg(), "stands behind") != NULL);
  DoorOpen(&door);
  CHECK_IS(aclrtSynchronizeStream(other), ACL_ERROR_RT_FFTS_PLUS_EXCEPTION);
  OK(aclrtDestroyStream(other));
  OK(aclrtFree(buffer));
  Leave(r);
}

// --- Parts of a communicator ---

static void Parts(Rank* r) {
  Enter(r);
  CHECK_IS(Connect(r), HCCL_SUCCESS);
  uint32_t evens[2] = {2, 0};  // rank 2 is the first of it
  uint32_t odds[2] = {1, 3};
  uint32_t* mine = r->rank % 2 == 0 ? evens : odds;
  const uint32_t place = mine[0] == (uint32_t)r->rank ? 0 : 1;
  for (int round = 0; round < 3; ++round) {
    HcclComm part = NULL;
    HcclCommConfig config;
    memset(&config, 0, sizeof(config));
    strcpy(config.hcclCommName, "part");
    CHECK_IS(
        HcclCreateSubCommConfig(&r->comm, 2, mine, 7, place, &config, &part),
        HCCL_SUCCESS);
    char name[COMM_NAME_MAX_LENGTH] = "";
    uint32_t rank = 9;
    CHECK_IS(HcclGetCommName(part, name), HCCL_SUCCESS);
    CHECK(strcmp(name, "part") == 0);
    CHECK_IS(HcclGetRankId(part, &rank), HCCL_SUCCESS);
    CHECK_IS(rank, place);
    void* buffer = Eight((float)(1 << r->rank));
    CHECK_IS(Reduce(part, buffer, r->stream), HCCL_SUCCESS);
    OK(aclrtSynchronizeStream(r->stream));
    CHECK(ValueOf(buffer) == (r->rank % 2 == 0 ? 5 : 10));
    OK(aclrtFree(buffer));
    CHECK_IS(HcclCommDestroy(part), HCCL_SUCCESS);
  }
  // Who is not part of it gets none.
  HcclComm none = r->comm;
  uint32_t all_but_3[3] = {0, 1, 2};
  if (r->rank == 3) {
    CHECK_IS(
        HcclCreateSubCommConfig(&r->comm, 3, NULL, 8, 0xFFFFFFFFU, NULL, &none),
        HCCL_SUCCESS);
    CHECK(none == NULL);
  } else {
    CHECK_IS(HcclCreateSubCommConfig(&r->comm, 3, all_but_3, 8,
                                     (uint32_t)r->rank, NULL, &none),
             HCCL_SUCCESS);
    CHECK_IS(HcclBarrier(none, r->stream), HCCL_SUCCESS);
    OK(aclrtSynchronizeStream(r->stream));
    CHECK_IS(HcclCommDestroy(none), HCCL_SUCCESS);
    all_but_3[1] = 0;
    CHECK_IS(HcclCreateSubCommConfig(&r->comm, 3, all_but_3, 9,
                                     (uint32_t)r->rank, NULL, &none),
             HCCL_E_PARA);
  }
  Leave(r);
}

// --- Rank tables ---

static const char* g_table;

static void WriteTable(const char* text) {
  FILE* file = fopen(g_table, "w");
  fputs(text, file);
  fclose(file);
}

static void ByTable(Rank* r) {
  Enter(r);
  Pause(r->rank == 0 ? 30 : 0);
  CHECK_IS(HcclCommInitClusterInfo(g_table, (uint32_t)r->rank, &r->comm),
           HCCL_SUCCESS);
  void* buffer = Eight(1);
  CHECK_IS(Reduce(r->comm, buffer, r->stream), HCCL_SUCCESS);
  OK(aclrtSynchronizeStream(r->stream));
  CHECK(ValueOf(buffer) == 3);
  OK(aclrtFree(buffer));
  Leave(r);
}

static void BadTable(Rank* r) {
  const char* const texts[] = {
      "",
      "[]",
      "{\"server_list\": []}",
      "{\"rank_list\": [{\"rank_id\": 1}]}",
      "{\"rank_list\": [{\"rank_id\": 0}, {\"rank_id\": 0}]}",
      "{\"rank_list\": [{\"rank_id\": \"0x\"}]}",
      "{\"server_list\": [{\"device\": []}, {\"device\": []}]}"};
  Enter(r);
  CHECK_IS(HcclCommInitClusterInfo("no/such/file", 0, &r->comm),
           HCCL_E_OPEN_FILE_FAILURE);
  for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); ++i) {
    WriteTable(texts[i]);
    CHECK_IS(HcclCommInitClusterInfo(g_table, 0, &r->comm), HCCL_E_PARA);
    CHECK(strstr(aclGetRecentErrMsg(), "EI0004") != NULL);
  }
  WriteTable("{\"rank_list\": [{\"rank_id\": 0}, {\"rank_id\": 1}]}");
  CHECK_IS(HcclCommInitClusterInfo(g_table, 2, &r->comm), HCCL_E_TIMEOUT);
  CHECK_IS(HcclCommInitClusterInfo(g_table, 0, &r->comm), HCCL_E_TIMEOUT);
  CHECK_IS(HcclCommInitClusterInfo(NULL, 0, &r->comm), HCCL_E_PTR);
  Leave(r);
}

static void TestTables(void) {
  WriteTable(
      "{\"version\": \"1.0\", \"server_count\": \"1\", \"server_list\": ["
      "{\"server_id\": \"a\", \"device\": [{\"device_id\": \"0\", "
      "\"rank_id\": \"0\"}, {\"device_id\": \"1\", \"rank_id\": \"1\"}, "
      "{\"device_id\": \"2\", \"rank_id\": \"2\"}]}]}");
  CHECK_IS(RunRanks(3, ByTable, NULL), 0);
  CHECK_IS(RunRanks(3, ByTable, NULL), 0);  // the same name again
  WriteTable(
      "{\"version\": \"2.0\", \"rank_count\": 3, \"rank_list\": ["
      "{\"rank_id\": 0}, {\"rank_id\": 1}, {\"rank_id\": 2}]}");
  CHECK_IS(RunRanks(3, ByTable, NULL), 0);
  setenv("CANNSIM_HCCL_SECOND", "0.001", 1);
  CHECK_IS(RunRanks(1, BadTable, NULL), 0);
  unsetenv("CANNSIM_HCCL_SECOND");
  remove(g_table);
}

// --- All ranks in one process ---

static void OneThread(Rank* r) {
  enum { kN = 4 };
  int32_t devices[kN] = {3, 1, 0, 2};
  HcclComm comms[kN];
  aclrtStream streams[kN];
  void* buffers[kN];
  Enter(r);
  CHECK_IS(HcclCommInitAll(kN, devices, comms), HCCL_SUCCESS);
  for (int i = 0; i < kN; ++i) {
    OK(aclrtSetDevice(devices[i]));
    OK(aclrtCreateStream(&streams[i]));
    buffers[i] = Eight((float)(i + 1));
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < kN; ++i) {
      OK(aclrtSetDevice(devices[i]));
      CHECK_IS(Reduce(comms[i], buffers[i], streams[i]), HCCL_SUCCESS);
    }
  }
  CHECK_IS(Reduce(comms[0], buffers[0], streams[0]), HCCL_E_PARA);  // device 2
  for (int i = 0; i < kN; ++i) {
    OK(aclrtSetDevice(devices[i]));
    OK(aclrtSynchronizeStream(streams[i]));
    CHECK(ValueOf(buffers[i]) == 160);
    OK(aclrtFree(buffers[i]));
    OK(aclrtDestroyStream(streams[i]));
    CHECK_IS(HcclCommDestroy(comms[i]), HCCL_SUCCESS);
  }
  devices[1] = 3;
  CHECK_IS(HcclCommInitAll(kN, devices, comms), HCCL_E_PARA);
  devices[1] = 8;
  CHECK_IS(HcclCommInitAll(kN, devices, comms), HCCL_E_PARA);
  CHECK_IS(HcclCommInitAll(0, devices, comms), HCCL_E_PARA);
  CHECK_IS(HcclCommInitAll(1, NULL, comms), HCCL_E_PTR);
  OK(aclrtSetDevice(0));
  Leave(r);
}

// --- Arguments, and what is there for show ---

static void Arguments(Rank* r) {
  uint32_t n = 0;
  char name[COMM_NAME_MAX_LENGTH] = "";
  HcclRootInfo root, other;
  HcclConfigValue value = {1};
  CHECK_IS(HcclGetRootInfo(&root), HCCL_E_RUNTIME);  // no device
  Enter(r);
  memset(&other, 'x', sizeof(other));
  CHECK_IS(HcclGetRootInfo(NULL), HCCL_E_PTR);
  CHECK_IS(HcclGetRootInfo(&root), HCCL_SUCCESS);
  CHECK_IS(HcclCommInitRootInfo(1, NULL, 0, &r->comm), HCCL_E_PTR);
  CHECK_IS(HcclCommInitRootInfo(1, &root, 0, NULL), HCCL_E_PTR);
  CHECK_IS(HcclCommInitRootInfo(1, &other, 0, &r->comm), HCCL_E_PARA);
  CHECK_IS(HcclCommInitRootInfo(0, &root, 0, &r->comm), HCCL_E_PARA);
  CHECK_IS(HcclGetRootInfo(&root), HCCL_SUCCESS);
  CHECK_IS(HcclCommInitRootInfo(2, &root, 2, &r->comm), HCCL_E_PARA);
  CHECK_IS(HcclGetRootInfo(&root), HCCL_SUCCESS);
  CHECK_IS(HcclCommInitRootInfo(65, &root, 0, &r->comm), HCCL_E_NOT_SUPPORT);
  CHECK_IS(HcclCommInitRootInfoConfig(1, &root, 0, NULL, &r->comm), HCCL_E_PTR);
  CHECK_IS(HcclGetRootInfo(&root), HCCL_SUCCESS);
  CHECK_IS(HcclCommInitRootInfo(1, &root, 0, &r->comm), HCCL_SUCCESS);
  CHECK_IS(HcclGetRankSize(NULL, &n), HCCL_E_PTR);
  CHECK_IS(HcclGetRankSize(&n, &n), HCCL_E_PARA);
  CHECK_IS(HcclGetRankSize(r->comm, NULL), HCCL_E_PTR);
  CHECK_IS(HcclGetCommName(r->comm, name), HCCL_SUCCESS);
  CHECK(strstr(name, "cannsim_") == name);
  CHECK_IS(HcclCommDestroy(NULL), HCCL_E_PTR);
  CHECK_IS(HcclCommDestroy(&n), HCCL_E_PARA);
  void* buffer = Eight(1);
  CHECK_IS(HcclAllReduce(buffer, NULL, 8, kFloat, HCCL_REDUCE_SUM, r->comm,
                         r->stream),
           HCCL_E_PTR);
  CHECK_IS(HcclAllReduce(buffer, buffer, 100, kFloat, HCCL_REDUCE_SUM, r->comm,
                         r->stream),
           HCCL_E_PARA);
  CHECK_IS(
      HcclAllReduce(&n, &n, 1, kFloat, HCCL_REDUCE_SUM, r->comm, r->stream),
      HCCL_E_PARA);  // the host's
  CHECK_IS(HcclAllReduce(buffer, buffer, UINT64_MAX, kFloat, HCCL_REDUCE_SUM,
                         r->comm, r->stream),
           HCCL_E_PARA);
  CHECK_IS(HcclBroadcast(buffer, 8, kFloat, 1, r->comm, r->stream),
           HCCL_E_PARA);
  CHECK_IS(
      HcclAlltoAll(buffer, 4, kFloat, buffer, 4, kFloat, r->comm, r->stream),
      HCCL_E_PARA);
  CHECK_IS(HcclAlltoAllV(buffer, NULL, NULL, kFloat, NULL, NULL, NULL, kFloat,
                         r->comm, r->stream),
           HCCL_E_PTR);
  CHECK_IS(Reduce(r->comm, buffer, (aclrtStream)&n), HCCL_E_RUNTIME);
  CHECK(ValueOf(buffer) == 1);
  OK(aclrtFree(buffer));
  CHECK_IS(HcclSetConfig(HCCL_DETERMINISTIC, value), HCCL_SUCCESS);
  value.value = 0;
  CHECK_IS(HcclGetConfig(HCCL_DETERMINISTIC, &value), HCCL_SUCCESS);
  CHECK_IS(value.value, 1);
  CHECK_IS(HcclCommSuspend(r->comm), HCCL_E_NOT_SUPPORT);
  CHECK(strlen(HcclGetErrorString(HCCL_E_OOM)) > 0);
  CHECK(strcmp(HcclGetErrorString(HCCL_E_OOM),
               HcclGetErrorString(HCCL_E_PARA)) != 0);
  CHECK(HcclGetErrorString((HcclResult)77) != NULL);
  CHECK(HcclGetCommConfigCapability() > 2);
  Leave(r);
}

int main(void) {
  setenv("CANNSIM_DEVICES", "8", 1);
  g_table = getenv("CANNSIM_TEST_FILE");
  if (g_table == NULL) g_table = "hccl_comm_test.json";
  CHECK_IS(RunRanks(2, Two, NULL), 0);
  CHECK_IS(RunRanks(4, Two, NULL), 0);
  CHECK_IS(RunRanks(2, Asynchronous, NULL), 0);
  CHECK_IS(RunRanks(2, Forced, NULL), 0);
  setenv("CANNSIM_HCCL_SECOND", "0.001", 1);
  setenv("HCCL_EXEC_TIMEOUT", "100", 1);
  CHECK_IS(RunRanks(1, Behind, NULL), 0);
  unsetenv("CANNSIM_HCCL_SECOND");
  unsetenv("HCCL_EXEC_TIMEOUT");
  CHECK_IS(RunRanks(4, Parts, NULL), 0);
  TestTables();
  CHECK_IS(RunRanks(1, OneThread, NULL), 0);
  CHECK_IS(RunRanks(1, Arguments, NULL), 0);
  return FAILURES();
}
