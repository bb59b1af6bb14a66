// SPDX-License-Identifier: Apache-2.0
// Ranks for the tests of HCCL: a process each, one device each, and a
// communicator of all of them.
#ifndef BELAY_CANNSIM_TESTS_RANKS_H_
#define BELAY_CANNSIM_TESTS_RANKS_H_

#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "acl/acl.h"
#include "cannsim/tests/check.h"
#include "hccl/hccl.h"

// What the processes of a test share.
typedef struct {
  HcclRootInfo root;
  atomic_int has_root;
  atomic_int marks[8];  // for a test's own use
} Shared;

static Shared* g_shared;

typedef struct {
  int rank;
  int n;
  HcclComm comm;
  aclrtStream stream;
} Rank;

static inline void Pause(int ms) {
  const struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
  nanosleep(&time, NULL);
}

// aclInit, device, stream.
static inline void Enter(Rank* r) {
  OK(aclInit(NULL));
  OK(aclrtSetDevice(r->rank));
  OK(aclrtCreateStream(&r->stream));
}

// Rank 0 makes the root info, the others wait for it.
static inline HcclResult Connect(Rank* r) {
  if (r->rank == 0) {
    const HcclResult result = HcclGetRootInfo(&g_shared->root);
    if (result != HCCL_SUCCESS) return result;
    atomic_store(&g_shared->has_root, 1);
  }
  while (!atomic_load(&g_shared->has_root)) Pause(1);
  return HcclCommInitRootInfo((uint32_t)r->n, &g_shared->root,
                              (uint32_t)r->rank, &r->comm);
}

static inline void Leave(Rank* r) {
  if (r->comm != NULL) CHECK_IS(HcclCommDestroy(r->comm), HCCL_SUCCESS);
  OK(aclrtDestroyStream(r->stream));
  OK(aclrtResetDevice(r->rank));
  OK(aclFinalize());
}

// Starts `n` ranks; each runs `body` and fails by CHECK. Exit statuses go to
// `status` (may be null: then all must be 0). Returns the number of failures.
static inline int RunRanks(int n, void (*body)(Rank*), int* status) {
  pid_t children[64];
  g_shared = (Shared*)mmap(NULL, sizeof(Shared), PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  fflush(stdout);
  for (int i = 0; i < n; ++i) {
    children[i] = fork();
    if (children[i] == 0) {
      Rank r = {i, n, NULL, NULL};
      g_n_failures = 0;
      body(&r);
      fflush(stdout);
      exit(g_n_failures == 0 ? 0 : 1);
    }
  }
  int failures = 0;
  for (int i = 0; i < n; ++i) {
    int state = 0;
    waitpid(children[i], &state, 0);
    const int code = WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
    if (status != NULL) {
      status[i] = code;
    } else if (code != 0) {
      ++failures;
      printf("rank %d of %d ended with %d\n", i, n, code);
    }
  }
  munmap(g_shared, sizeof(Shared));
  return failures;
}

// Device memory with a copy of `bytes` at `host` (null: not filled).
static inline void* OnDevice(const void* host, size_t bytes) {
  void* device = NULL;
  OK(aclrtMalloc(&device, bytes == 0 ? 1 : bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  if (host != NULL && bytes > 0) {
    OK(aclrtMemcpy(device, bytes, host, bytes, ACL_MEMCPY_HOST_TO_DEVICE));
  }
  return device;
}

static inline void ToHost(void* host, const void* device, size_t bytes) {
  OK(aclrtMemcpy(host, bytes, device, bytes, ACL_MEMCPY_DEVICE_TO_HOST));
}

#endif  // BELAY_CANNSIM_TESTS_RANKS_H_
