// SPDX-License-Identifier: Apache-2.0
// A program for tests of logs, reports and strict mode (tests/e2e/sim): what an
// honest client does, with the error that it met as exit code 1. Arguments are
// mistakes that it is to make.
#include "cannsim/tests/client.h"

static int Has(int argc, char** argv, const char* word) {
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], word) == 0) return 1;
  }
  return 0;
}

static int Report(const char* what, int code) {
  if (code != 0) {
    fprintf(stderr, "%s: error code is %d\n%s", what, code,
            aclGetRecentErrMsg());
  }
  return code;
}

// sum = 3 a; the first error. Without a limit it does not wait.
static int Work(float* a, float* sum, aclrtStream stream, int timeout_ms) {
  int code = Report("launch", Add(a, a, sum, stream));
  if (code == 0) code = Report("launch", Add(sum, a, sum, stream));
  if (code == 0 && timeout_ms != 0) {
    code = Report("aclrtSynchronizeStreamWithTimeout",
                  aclrtSynchronizeStreamWithTimeout(stream, timeout_ms));
  }
  return code;
}

int main(int argc, char** argv) {
  aclrtStream stream = Start(0);
  if (stream == NULL) return Report("start", aclrtGetLastError(0)) != 0;
  float* a = Filled(1);
  float* sum = Filled(0);
  int code = a == NULL || sum == NULL ? Report("aclrtMalloc", 207001) : 0;
  const int timeout_ms = Has(argc, argv, "no-wait") ? 0
                         : Has(argc, argv, "short") ? 50
                                                    : 60000;
  if (code == 0) code = Work(a, sum, stream, timeout_ms);
  if (code == 0 && Value(sum) != 3.0F) code = Report("result", 1);
  if (code != 0) {
    aclrtResetDeviceForce(0);
    return 1;
  }
  if (!Has(argc, argv, "leak-stream")) aclrtDestroyStream(stream);
  if (Has(argc, argv, "leak-tensor")) CHECK(Floats(a) != NULL);
  aclrtFree(a);
  if (Has(argc, argv, "free-twice")) aclrtFree(a);
  aclrtFree(sum);
  FreeWorkspaces();
  aclrtResetDevice(0);
  aclFinalize();
  return g_n_failures;
}
