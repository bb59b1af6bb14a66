// SPDX-License-Identifier: Apache-2.0
// Fault scripts: each as a program meets it that trusts everything (and fails),
// and one that looks at results, sets limits and has another way.
#include "cannsim/tests/client.h"

static char g_text[1 << 16];

// --- return CODE ---

// 1 + 1 + 1 in two steps; never looks at a result.
static int TrustsTasks(void) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  float* sum = Filled(0);
  Add(one, one, sum, stream);
  Add(sum, one, sum, stream);
  aclrtSynchronizeStream(stream);
  return Value(sum) == 3.0F ? 0 : 1;
}

static int g_code;

static int RepeatsFailedTasks(void) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  float* sum = Filled(0);
  Add(one, one, sum, stream);
  if (aclrtSynchronizeStream(stream) != 0) return 2;
  Add(sum, one, sum, stream);
  if (aclrtSynchronizeStream(stream) != g_code) return 3;
  if (strstr(aclGetRecentErrMsg(), "aclnnAdd") == NULL) return 4;
  Add(sum, one, sum, stream);
  if (aclrtSynchronizeStream(stream) != 0) return 5;
  return Value(sum) == 3.0F ? 0 : 1;
}

static void TestReturnedCodes(void) {
  const int codes[] = {507014, 507034, 507035, 507015,
                       507018, 507053, 507054, 507048};
  for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); ++i) {
    char script[100];
    g_code = codes[i];
    snprintf(script, sizeof(script),
             "# the second sum fails\nAT the 2nd aclnnADD on device 0 "
             "return %d",
             g_code);
    CHECK_IS(
        RunChild(TrustsTasks, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)),
        1);
    CHECK(strstr(g_text, "SIM-030 line 2 of the fault script: aclnnAdd") !=
          NULL);
    CHECK_IS(RunChild(RepeatsFailedTasks, "CANNSIM_FAULTS", script, g_text,
                      sizeof(g_text)),
             0);
  }
  // Another device, another operator, no script: nothing happens.
  CHECK_IS(RunChild(TrustsTasks, "CANNSIM_FAULTS",
                    "at 1st Add on device 1 return 507035; at 1st Matmul "
                    "return 507035; at 3rd operator return 507035",
                    g_text, sizeof(g_text)),
           0);
  CHECK(strstr(g_text, "SIM-") == NULL);
}

// --- hang ---

static int WaitsForEver(void) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  ualarm(200000, 0);  // what a watchdog would do
  Add(one, one, one, stream);
  aclrtSynchronizeStream(stream);
  return 0;
}

static int WaitsWithLimit(void) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  float* sum = Filled(0);
  Add(one, one, sum, stream);
  if (aclrtSynchronizeStreamWithTimeout(stream, 20) !=
      ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) {
    return 2;
  }
  if (aclrtDestroyStreamForce(stream) != 0) return 3;
  if (aclrtCreateStream(&stream) != 0) return 4;
  Add(one, one, sum, stream);
  if (aclrtSynchronizeStream(stream) != 0) return 5;
  return Value(sum) == 2.0F ? 0 : 1;
}

static int LimitsOperators(void) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  aclrtSetOpExecuteTimeOut(1);
  Add(one, one, one, stream);
  return aclrtSynchronizeStream(stream) == ACL_ERROR_RT_AICORE_TIMEOUT ? 0 : 1;
}

static void TestHang(void) {
  const char* script = "at 1st Add hang";
  CHECK_IS(
      RunChild(WaitsForEver, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)),
      -1);
  CHECK(strstr(g_text, "SIM-031") != NULL);
  CHECK_IS(RunChild(WaitsWithLimit, "CANNSIM_FAULTS", script, g_text,
                    sizeof(g_text)),
           0);
  CHECK_IS(RunChild(LimitsOperators, "CANNSIM_FAULTS", script, g_text,
                    sizeof(g_text)),
           0);
}

// --- slow ---

// Simulated time of one sum on a device.
static float TimeOn(int device) {
  aclrtEvent begin = NULL;
  aclrtEvent end = NULL;
  float ms = -1.0F;
  aclrtStream stream = Start(device);
  float* one = Filled(1);
  aclrtCreateEventWithFlag(&begin, ACL_EVENT_TIME_LINE);
  aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE);
  aclrtRecordEvent(begin, stream);
  Add(one, one, one, stream);
  aclrtRecordEvent(end, stream);
  aclrtSynchronizeStream(stream);
  aclrtEventElapsedTime(&ms, begin, end);
  return ms;
}

// Half of the work on each device must take as long as on one good device.
static int SplitsEvenly(void) {
  const float first = TimeOn(0);
  return TimeOn(1) <= 2 * first ? 0 : 1;
}

static int MeasuresFirst(void) {
  const float first = TimeOn(0);
  const float second = TimeOn(1);
  const int faster = first <= second ? 0 : 1;
  return TimeOn(faster) <= 2 * first ? 0 : 1;
}

static void TestSlow(void) {
  const char* script = "always operator on device 1 slow 50";
  CHECK_IS(
      RunChild(SplitsEvenly, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)),
      1);
  CHECK(strstr(g_text, "SIM-032") != NULL);
  CHECK_IS(
      RunChild(MeasuresFirst, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)),
      0);
  CHECK_IS(RunChild(SplitsEvenly, "CANNSIM_FAULTS", "", g_text, sizeof(g_text)),
           0);
}

// --- ignore ---

static int TrustsSuccess(void) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  float* sum = Filled(0);
  Add(one, one, sum, stream);
  if (aclrtSynchronizeStream(stream) != 0) return 2;
  return Value(sum) == 2.0F ? 0 : 1;
}

static int LooksForAMark(void) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  float* sum = Filled(-1);  // no sum is -1
  for (int i = 0; i < 2 && Value(sum) == -1.0F; ++i) {
    Add(one, one, sum, stream);
    if (aclrtSynchronizeStream(stream) != 0) return 2;
  }
  return Value(sum) == 2.0F ? 0 : 1;
}

static void TestIgnore(void) {
  const char* script = "at 1st operator ignore";
  CHECK_IS(
      RunChild(TrustsSuccess, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)),
      1);
  CHECK(strstr(g_text, "SIM-033") != NULL);
  CHECK_IS(
      RunChild(LooksForAMark, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)),
      0);
}

// --- missing ---

static int HasAnotherWay(void) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  float* sum = Filled(0);
  int code = Add(one, one, sum, stream);
  if (code != ACLNN_ERR_INNER_FIND_KERNEL_ERROR) return 2;
  code = Sum(one, one, sum, 1, stream);
  if (code != 0 || aclrtSynchronizeStream(stream) != 0) return 3;
  return Value(sum) == 2.0F ? 0 : 1;
}

static void TestMissing(void) {
  const char* script = "always Add missing";
  CHECK_IS(
      RunChild(TrustsSuccess, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)),
      1);
  CHECK(strstr(g_text, "SIM-034") != NULL);
  CHECK_IS(
      RunChild(HasAnotherWay, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)),
      0);
}

// --- lose device ---

static int GoesToAnotherDevice(void) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  Add(one, one, one, stream);
  if (aclrtSynchronizeStream(stream) != ACL_ERROR_RT_LOST_HEARTBEAT) return 2;
  // Nothing on it works any more, whatever the stream.
  void* more = NULL;
  if (aclrtMalloc(&more, 64, ACL_MEM_MALLOC_HUGE_FIRST) !=
      ACL_ERROR_RT_LOST_HEARTBEAT) {
    return 3;
  }
  if (aclrtSynchronizeDevice() != ACL_ERROR_RT_LOST_HEARTBEAT) return 4;
  if (aclrtSetDevice(0) != ACL_ERROR_RT_LOST_HEARTBEAT) return 5;
  if (aclrtSetDevice(1) != 0 || aclrtCreateStream(&stream) != 0) return 6;
  float* two = Filled(2);
  Add(two, two, two, stream);
  if (aclrtSynchronizeStream(stream) != 0) return 7;
  return Value(two) == 4.0F ? 0 : 1;
}

static void TestLostDevice(void) {
  const char* script = "at 1st Add on device 0 lose device";
  CHECK_IS(
      RunChild(TrustsTasks, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)),
      1);
  CHECK(strstr(g_text, "SIM-035") != NULL);
  CHECK_IS(RunChild(GoesToAnotherDevice, "CANNSIM_FAULTS", script, g_text,
                    sizeof(g_text)),
           0);
}

// --- memory ---

static int TakesMemoryForGranted(void) {
  static char host[64];
  void* big = NULL;
  if (Start(0) == NULL) return 2;
  aclrtMalloc(&big, 2 << 20, ACL_MEM_MALLOC_HUGE_FIRST);
  return aclrtMemcpy(big, sizeof(host), host, sizeof(host),
                     ACL_MEMCPY_HOST_TO_DEVICE) == 0
             ? 0
             : 1;
}

static int TakesLess(void) {
  static char host[64];
  void* memory = NULL;
  size_t bytes = 2 << 20;
  if (Start(0) == NULL) return 2;
  while (bytes >= 4096 &&
         aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != 0) {
    bytes /= 2;
  }
  if (bytes != 1 << 19) return 3;
  return aclrtMemcpy(memory, sizeof(host), host, sizeof(host),
                     ACL_MEMCPY_HOST_TO_DEVICE) == 0
             ? 0
             : 1;
}

static void TestMemory(void) {
  const char* script = "at byte 1000 KiB on device 0 return 207001";
  CHECK_IS(RunChild(TakesMemoryForGranted, "CANNSIM_FAULTS", script, g_text,
                    sizeof(g_text)),
           1);
  CHECK(strstr(g_text, "SIM-036") != NULL);
  CHECK_IS(
      RunChild(TakesLess, "CANNSIM_FAULTS", script, g_text, sizeof(g_text)), 0);
  CHECK_IS(RunChild(TakesMemoryForGranted, "CANNSIM_FAULTS",
                    "at 1st malloc return 207001", g_text, sizeof(g_text)),
           1);
  CHECK_IS(RunChild(TakesMemoryForGranted, "CANNSIM_FAULTS",
                    "at 2nd malloc return 207001", g_text, sizeof(g_text)),
           0);
}

// --- scripts with mistakes ---

static int OnlyInit(void) {
  return aclInit(NULL) == ACL_ERROR_INTERNAL_ERROR ? 0 : 1;
}

static void TestMistakes(void) {
  const char* const cases[][2] = {
      {"at 120th MatMul return fast",
       "line 1, column 24: expected an error number of acl, 100000 to 600000, "
       "got \"fast\""},
      {"at 120th MatMul", "line 1, column 16: expected return CODE, hang"},
      {"\n\n  frob",
       "line 3, column 3: expected at, every, from or always, "
       "got \"frob\""},
      {"at Matmul hang", "expected a count like 3rd, got \"matmul\""},
      {"at 0th Matmul hang", "expected a count like 3rd, got \"0th\""},
      {"at 1st byte 3 return 207001", "right behind \"at\""},
      {"at byte 3TiB return 207001", "expected a number of bytes like 2GiB"},
      {"at 1st return hang", "expected task, operator, copy"},
      {"at 1st task on moon hang", "expected device or stream"},
      {"at 1st task slow 0.5", "expected a factor from 1"},
      {"at 1st task hang now", "expected nothing more, got \"now\""},
      {"at 1st malloc hang", "can only return a code"},
      {"at 1st task lose money", "expected device, got \"money\""},
      {"at 1st Add missing", "missing goes as: always NAME missing"},
      {"at 99999999999999999999th Add hang", "expected a count like 3rd"},
      {"at 1st \x01\xff hang", "got \"??\""},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    CHECK_IS(RunChild(OnlyInit, "CANNSIM_FAULTS", cases[i][0], g_text,
                      sizeof(g_text)),
             0);
    if (strstr(g_text, "SIM-003") == NULL ||
        strstr(g_text, cases[i][1]) == NULL) {
      printf("%s\n  said: %s", cases[i][0], g_text);
      CHECK(0);
    }
  }
  CHECK_IS(RunChild(OnlyInit, "CANNSIM_QUIRKS", "early-malloc,frob", g_text,
                    sizeof(g_text)),
           0);
  CHECK(strstr(g_text,
               "no quirk is called \"frob\"; there are: all, "
               "early-malloc") != NULL);
}

int main(void) {
  TestReturnedCodes();
  TestHang();
  TestSlow();
  TestIgnore();
  TestMissing();
  TestLostDevice();
  TestMemory();
  TestMistakes();
  return FAILURES();
}
