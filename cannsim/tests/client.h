// SPDX-License-Identifier: Apache-2.0
// A small client for the tests of faults: eight floats on a device, a few
// operators, and children in which a program may fail. Each child reads its own
// environment, since cannsim looks at it once a process.
#ifndef BELAY_CANNSIM_TESTS_CLIENT_H_
#define BELAY_CANNSIM_TESTS_CLIENT_H_

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_sub.h"
#include "cannsim/tests/check.h"

#define N 8

// Runs `program` in a child with a variable set; its exit status (-1: it died
// of a signal), and its stderr.
static inline int RunChild(int (*program)(void), const char* variable,
                           const char* value, char* text, size_t bytes) {
  int ends[2];
  if (pipe(ends) != 0) return -2;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv(variable, value, 1);
    _exit(program());  // without a look for leaks: a program may just fail
  }
  close(ends[1]);
  size_t n = 0;
  ssize_t got = 0;
  while (n + 1 < bytes && (got = read(ends[0], text + n, bytes - 1 - n)) > 0) {
    n += (size_t)got;
  }
  text[n] = '\0';
  char rest[256];
  while (read(ends[0], rest, sizeof(rest)) > 0) {
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline aclTensor* Tensor(void* data, aclDataType dtype, int rank,
                                const int64_t* dims) {
  return aclCreateTensor(dims, (uint64_t)rank, dtype, NULL, 0, ACL_FORMAT_ND,
                         dims, (uint64_t)rank, data);
}

static inline aclTensor* Floats(void* data) {
  const int64_t dims[1] = {N};
  return Tensor(data, ACL_FLOAT, 1, dims);
}

// N floats on the current device, all `value`; null when there is no memory.
static inline float* Filled(float value) {
  float host[N];
  for (int i = 0; i < N; ++i) host[i] = value;
  void* device = NULL;
  if (aclrtMalloc(&device, sizeof(host), ACL_MEM_MALLOC_HUGE_FIRST) != 0 ||
      aclrtMemcpy(device, sizeof(host), host, sizeof(host),
                  ACL_MEMCPY_HOST_TO_DEVICE) != 0) {
    return NULL;
  }
  return (float*)device;
}

// The first of N floats on the device, all of which are equal; -999 if they
// cannot be read or differ.
static inline float Value(const float* device) {
  float host[N];
  if (aclrtMemcpy(host, sizeof(host), device, sizeof(host),
                  ACL_MEMCPY_DEVICE_TO_HOST) != 0) {
    return -999.0F;
  }
  for (int i = 1; i < N; ++i) {
    if (host[i] != host[0]) return -999.0F;
  }
  return host[0];
}

// A workspace for each stream; freed by FreeWorkspaces.
static struct {
  aclrtStream stream;
  void* memory;
} g_workspaces[8];

static inline void* WorkspaceOf(aclrtStream stream, uint64_t bytes) {
  for (int i = 0; bytes > 0 && i < 8; ++i) {
    if (g_workspaces[i].memory == NULL) {
      g_workspaces[i].stream = stream;
      aclrtMalloc(&g_workspaces[i].memory, 4096, ACL_MEM_MALLOC_HUGE_FIRST);
    }
    if (g_workspaces[i].stream == stream) return g_workspaces[i].memory;
  }
  return NULL;
}

static inline void FreeWorkspaces(void) {
  for (int i = 0; i < 8; ++i) {
    if (g_workspaces[i].memory != NULL) aclrtFree(g_workspaces[i].memory);
    g_workspaces[i].memory = NULL;
  }
}

// out = a + b, by Add or by Sub; the first error.
static inline int Sum(float* a, float* b, float* out, int by_sub,
                      aclrtStream stream) {
  float alpha = by_sub ? -1.0F : 1.0F;
  aclTensor* ta = Floats(a);
  aclTensor* tb = Floats(b);
  aclTensor* to = Floats(out);
  aclScalar* scalar = aclCreateScalar(&alpha, ACL_FLOAT);
  uint64_t workspace = 0;
  aclOpExecutor* executor = NULL;
  int code = 0;
  if (by_sub) {
    code = aclnnSubGetWorkspaceSize(ta, tb, scalar, to, &workspace, &executor);
    void* memory = WorkspaceOf(stream, workspace);
    if (code == 0) code = aclnnSub(memory, workspace, executor, stream);
  } else {
    code = aclnnAddGetWorkspaceSize(ta, tb, scalar, to, &workspace, &executor);
    void* memory = WorkspaceOf(stream, workspace);
    if (code == 0) code = aclnnAdd(memory, workspace, executor, stream);
  }
  aclDestroyTensor(ta);
  aclDestroyTensor(tb);
  aclDestroyTensor(to);
  aclDestroyScalar(scalar);
  return code;
}

static inline int Add(float* a, float* b, float* out, aclrtStream stream) {
  return Sum(a, b, out, 0, stream);
}

// aclInit, device, wait (a careful program does), one stream.
static inline aclrtStream Start(int device) {
  aclrtStream stream = NULL;
  const int init = aclInit(NULL);
  if ((init != 0 && init != ACL_ERROR_REPEAT_INITIALIZE) ||
      aclrtSetDevice(device) != 0 || aclrtSynchronizeDevice() != 0 ||
      aclrtCreateStream(&stream) != 0) {
    return NULL;
  }
  return stream;
}

#endif  // BELAY_CANNSIM_TESTS_CLIENT_H_
