// SPDX-License-Identifier: Apache-2.0
// The host may not touch device memory: the child that does dies, and the
// simulator says of which buffer, and what had been done with it. In strict
// mode a leaked buffer and one used after free are named as well.
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cannsim/tests/check.h"

// Runs `function` in a child; its stderr, and whether it ended well.
static int RunChild(void (*function)(void), char* text, size_t bytes) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return -1;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    dup2(pipe_ends[1], STDERR_FILENO);
    close(pipe_ends[0]);
    function();
    _exit(0);
  }
  close(pipe_ends[1]);
  size_t n = 0;
  ssize_t got = 0;
  while (n + 1 < bytes &&
         (got = read(pipe_ends[0], text + n, bytes - 1 - n)) > 0) {
    n += (size_t)got;
  }
  text[n] = '\0';
  char rest[256];
  while (read(pipe_ends[0], rest, sizeof(rest)) > 0) {
  }
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static volatile char g_sink;

static void TouchDevice(void) {
  char* device = NULL;
  aclInit(NULL);
  aclrtSetDevice(0);
  aclrtMalloc((void**)&device, 1000, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(device, 1000, 1, 1000);
  g_sink = device[40];
}

static void TouchNothing(void) {
  char* device = NULL;
  aclInit(NULL);
  aclrtSetDevice(0);
  aclrtMalloc((void**)&device, 1000, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtFree(device);
  aclrtResetDevice(0);
}

static void Leak(void) {
  void* device = NULL;
  aclInit(NULL);
  aclrtSetDevice(0);
  aclrtMalloc(&device, 12345, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtResetDevice(0);
}

int main(void) {
  static char text[1 << 16];
  CHECK_IS(RunChild(TouchDevice, text, sizeof(text)), 0);
  CHECK(strstr(text, "SIM-010 the host touched device memory") != NULL);
  CHECK(strstr(text, "live buffer of 1000 bytes") != NULL);
  CHECK(strstr(text, "offset 40") != NULL);
  CHECK(strstr(text, "allocated by aclrtMalloc") != NULL);
  CHECK(strstr(text, "filled by aclrtMemset") != NULL);
  CHECK(strstr(text, "touch_test") != NULL);  // where the calls came from
  CHECK_IS(RunChild(TouchNothing, text, sizeof(text)), 1);
  CHECK(strstr(text, "SIM-") == NULL);
  CHECK_IS(RunChild(Leak, text, sizeof(text)), 1);
  CHECK(strstr(text, "SIM-011") != NULL);
  CHECK(strstr(text, "12345 bytes") != NULL);
  return FAILURES();
}
