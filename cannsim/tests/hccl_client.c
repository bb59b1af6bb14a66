// SPDX-License-Identifier: Apache-2.0
// Not a test by itself: tests/e2e/sim runs it. Four ranks reduce three times;
// one of them may misbehave, as the word says.
#include "cannsim/tests/ranks.h"

static const char* g_word = "";

static int Is(const char* word) { return strcmp(g_word, word) == 0; }

static void Work(Rank* r) {
  Enter(r);
  const int odd = r->rank == 2;
  if (odd && Is("never-connects")) {
    Leave(r);
    return;
  }
  if (Connect(r) != HCCL_SUCCESS) {
    printf("%s\n", aclGetRecentErrMsg());
    ++g_n_failures;
    Leave(r);
    return;
  }
  const float host[4] = {1, 1, 1, 1};
  void* buffer = OnDevice(host, sizeof(host));
  for (int i = 0; i < 3 && g_n_failures == 0; ++i) {
    if (odd && i == 1 && Is("killed")) raise(SIGKILL);
    if (odd && i == 1 && Is("never-calls")) break;
    const uint64_t count = odd && i == 1 && Is("other-count") ? 3 : 4;
    HcclAllReduce(buffer, buffer, count, HCCL_DATA_TYPE_FP32, HCCL_REDUCE_SUM,
                  r->comm, r->stream);
    if (aclrtSynchronizeStream(r->stream) != 0) {
      printf("%s\n", aclGetRecentErrMsg());
      ++g_n_failures;
    }
  }
  while (odd && Is("never-calls") && atomic_load(&g_shared->marks[0]) < 3) {
    Pause(5);
  }
  atomic_fetch_add(&g_shared->marks[0], 1);
  OK(aclrtFree(buffer));
  if (Is("leak")) r->comm = NULL;
  Leave(r);
}

int main(int argc, char** argv) {
  if (argc > 1) g_word = argv[1];
  return RunRanks(4, Work, NULL) == 0 ? 0 : 1;
}
