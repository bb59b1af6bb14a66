// SPDX-License-Identifier: Apache-2.0
// Quirks: each as a program meets it that does not know of it, and as one that
// is careful does; and without the quirk both are well.
#include "aclnnop/aclnn_index_copy.h"
#include "aclnnop/aclnn_index_select.h"
#include "aclnnop/aclnn_rms_norm.h"
#include "aclnnop/aclnn_slice.h"
#include "cannsim/cannsim.h"
#include "cannsim/tests/client.h"

#define GIB ((size_t)1 << 30)

static char g_text[1 << 16];

// Phase 2 of an operator and a wait, after phase 1 gave `code`.
#define RUN(op, code, executor, stream)                 \
  ((code) != 0 ? (code)                                 \
               : (aclnn##op(NULL, 0, executor, stream), \
                  aclrtSynchronizeStream(stream)))

// --- early-malloc ---

static int Early(int wait) {
  if (aclInit(NULL) != 0 || aclrtSetDevice(0) != 0) return 2;
  if (wait) aclrtSynchronizeDevice();
  void* memory = NULL;
  char host[64] = {0};
  if (aclrtMalloc(&memory, 64, ACL_MEM_MALLOC_HUGE_FIRST) != 0) return 3;
  return aclrtMemcpy(memory, 64, host, 64, ACL_MEMCPY_HOST_TO_DEVICE) == 0 ? 0
                                                                           : 1;
}
static int EarlyNaive(void) { return Early(0); }
static int EarlyCareful(void) { return Early(1); }

// --- fragmented-malloc ---

static int Fragmented(int late) {
  aclrtStream stream = Start(0);
  float* one = Filled(1);
  void* big = NULL;
  int code = 0;
  if (!late) code = aclrtMalloc(&big, 40 * GIB, ACL_MEM_MALLOC_HUGE_FIRST);
  Add(one, one, one, stream);
  if (aclrtSynchronizeStream(stream) != 0) return 2;
  if (late) code = aclrtMalloc(&big, 40 * GIB, ACL_MEM_MALLOC_HUGE_FIRST);
  return code == 0 ? 0 : 1;
}
static int FragmentedNaive(void) { return Fragmented(1); }
static int FragmentedCareful(void) { return Fragmented(0); }

// --- first-run ---

static int First(int wait) {
  aclrtStream stream = NULL;
  if (aclInit(NULL) != 0 || aclrtSetDevice(0) != 0) return 2;
  if (wait) aclrtSynchronizeDevice();
  aclrtCreateStream(&stream);
  float* one = Filled(1);
  Add(one, one, one, stream);
  const int code = aclrtSynchronizeStream(stream);
  if (code != 0 && code != ACL_ERROR_RT_TS_ERROR) return 3;
  return code == 0 ? 0 : 1;
}
static int FirstNaive(void) { return First(0); }
static int FirstCareful(void) { return First(1); }

// --- expert-index ---

// Picks experts out of a table of `n`.
static int Experts(int64_t n) {
  aclrtStream stream = Start(0);
  const int64_t table_dims[2] = {n, N};
  const int64_t index_dims[1] = {2};
  const int64_t out_dims[2] = {2, N};
  const int64_t index[2] = {15, 0};
  void* table = NULL;
  void* places = NULL;
  void* out = NULL;
  aclrtMalloc(&table, (size_t)n * N * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(table, (size_t)n * N * 4, 0, (size_t)n * N * 4);
  aclrtMalloc(&places, sizeof(index), ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMalloc(&out, 2 * N * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(places, sizeof(index), index, sizeof(index),
              ACL_MEMCPY_HOST_TO_DEVICE);
  uint64_t workspace = 0;
  aclOpExecutor* executor = NULL;
  int code = aclnnIndexSelectGetWorkspaceSize(
      Tensor(table, ACL_FLOAT, 2, table_dims), 0,
      Tensor(places, ACL_INT64, 1, index_dims),
      Tensor(out, ACL_FLOAT, 2, out_dims), &workspace, &executor);
  code = RUN(IndexSelect, code, executor, stream);
  if (code != 0 && code != ACL_ERROR_RT_AICORE_EXCEPTION) return 2;
  return code == 0 ? 0 : 1;
}
static int ExpertsNaive(void) { return Experts(16); }
static int ExpertsCareful(void) { return Experts(17); }

// --- nan-address ---

// A view that begins `skip` floats behind the begin of its buffer.
static int Address(int skip) {
  aclrtStream stream = Start(0);
  float* a = Filled(1);
  void* buffer = NULL;
  aclrtMalloc(&buffer, 256, ACL_MEM_MALLOC_HUGE_FIRST);
  float* sum = (float*)buffer + skip;
  Add(a, a, sum, stream);
  if (aclrtSynchronizeStream(stream) != 0) return 2;
  return Value(sum) == 2.0F ? 0 : 1;
}
static int AddressNaive(void) { return Address(1); }
static int AddressCareful(void) { return Address(4); }

// --- slow-last-dim ---

// Simulated time of a sum of [256, columns].
static float TimeOf(int64_t columns, aclrtStream stream) {
  const int64_t dims[2] = {256, columns};
  float alpha = 1.0F;
  float ms = -1.0F;
  void* data = NULL;
  uint64_t workspace = 0;
  aclOpExecutor* executor = NULL;
  aclrtEvent begin = NULL;
  aclrtEvent end = NULL;
  aclrtMalloc(&data, 256 * (size_t)columns * 4, ACL_MEM_MALLOC_HUGE_FIRST);
  aclTensor* tensor = Tensor(data, ACL_FLOAT, 2, dims);
  aclrtCreateEventWithFlag(&begin, ACL_EVENT_TIME_LINE);
  aclrtCreateEventWithFlag(&end, ACL_EVENT_TIME_LINE);
  aclrtRecordEvent(begin, stream);
  if (aclnnAddGetWorkspaceSize(tensor, tensor,
                               aclCreateScalar(&alpha, ACL_FLOAT), tensor,
                               &workspace, &executor) == 0) {
    aclnnAdd(NULL, 0, executor, stream);
  }
  aclrtRecordEvent(end, stream);
  aclrtSynchronizeStream(stream);
  aclrtEventElapsedTime(&ms, begin, end);
  return ms;
}

static int Columns(int64_t columns) {
  aclrtStream stream = Start(0);
  const float good = TimeOf(1024, stream);
  return TimeOf(columns, stream) <= 1.1F * good ? 0 : 1;
}
static int ColumnsNaive(void) { return Columns(1000); }
static int ColumnsCareful(void) { return Columns(1008); }

// --- eps-underflow ---

static int Eps(double eps) {
  aclrtStream stream = Start(0);
  const int64_t dims[2] = {1, N};
  const int64_t row[1] = {N};
  const int64_t one[2] = {1, 1};
  void* x = NULL;
  void* rstd = NULL;
  aclrtMalloc(&x, 2 * N, ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemset(x, 2 * N, 0x3C, 2 * N);
  aclrtMalloc(&rstd, 4, ACL_MEM_MALLOC_HUGE_FIRST);
  uint64_t workspace = 0;
  aclOpExecutor* executor = NULL;
  int code = aclnnRmsNormGetWorkspaceSize(
      Tensor(x, ACL_FLOAT16, 2, dims), Tensor(x, ACL_FLOAT16, 1, row), eps,
      Tensor(x, ACL_FLOAT16, 2, dims), Tensor(rstd, ACL_FLOAT, 2, one),
      &workspace, &executor);
  code = RUN(RmsNorm, code, executor, stream);
  if (code != 0 && code != ACLNN_ERR_PARAM_INVALID) return 2;
  return code == 0 ? 0 : 1;
}
static int EpsNaive(void) { return Eps(1e-7); }
static int EpsCareful(void) { return Eps(1e-5); }

// --- dynamic-k ---

// Cuts k of N out, four times; k grows or stays. Steady steps compile nothing.
static int DynamicK(int grows) {
  aclrtStream stream = Start(0);
  float* data = Filled(1);
  float* out = Filled(0);
  cannsimCounters first = {0};
  cannsimCounters last = {0};
  for (int step = 0; step < 4; ++step) {
    if (step == 1) cannsim_get_counters(&first, sizeof(first));
    const int64_t dims[1] = {grows ? step + 1 : 4};
    uint64_t workspace = 0;
    aclOpExecutor* executor = NULL;
    int code = aclnnSliceGetWorkspaceSize(Floats(data), 0, 0, dims[0], 1,
                                          Tensor(out, ACL_FLOAT, 1, dims),
                                          &workspace, &executor);
    code = RUN(Slice, code, executor, stream);
    if (code != 0) return 2;
  }
  cannsim_get_counters(&last, sizeof(last));
  if (last.operators - first.operators != 3) return 3;
  return last.compilations == first.compilations ? 0 : 1;
}
static int DynamicKNaive(void) { return DynamicK(1); }
static int DynamicKCareful(void) { return DynamicK(0); }

// --- cache-order ---

// Writes 5 into the cache, and adds it to nothing behind that.
static int Cache(int marks) {
  aclrtStream stream = Start(0);
  float* cache = Filled(0);
  float* row = Filled(5);
  float* zero = Filled(0);
  float* out = Filled(-1);
  int64_t index[N];
  const int64_t dims[1] = {N};
  void* places = NULL;
  aclrtEvent event = NULL;
  for (int i = 0; i < N; ++i) index[i] = i;
  aclrtMalloc(&places, sizeof(index), ACL_MEM_MALLOC_HUGE_FIRST);
  aclrtMemcpy(places, sizeof(index), index, sizeof(index),
              ACL_MEMCPY_HOST_TO_DEVICE);
  aclrtCreateEvent(&event);
  uint64_t workspace = 0;
  aclOpExecutor* executor = NULL;
  if (aclnnInplaceIndexCopyGetWorkspaceSize(
          Floats(cache), 0, Tensor(places, ACL_INT64, 1, dims), Floats(row),
          &workspace, &executor) != 0) {
    return 2;
  }
  aclnnInplaceIndexCopy(NULL, 0, executor, stream);
  if (marks) aclrtRecordEvent(event, stream);
  Add(cache, zero, out, stream);
  if (aclrtSynchronizeStream(stream) != 0) return 3;
  if (Value(cache) != 5.0F) return 4;  // late, but not lost
  return Value(out) == 5.0F ? 0 : 1;
}
static int CacheNaive(void) { return Cache(0); }
static int CacheCareful(void) { return Cache(1); }

int main(void) {
  const struct {
    const char* quirk;
    const char* id;
    int (*naive)(void);
    int (*careful)(void);
  } cases[] = {
      {"early-malloc", "SIM-020", EarlyNaive, EarlyCareful},
      {"fragmented-malloc", "SIM-021", FragmentedNaive, FragmentedCareful},
      {"first-run", "SIM-022", FirstNaive, FirstCareful},
      {"expert-index", "SIM-023", ExpertsNaive, ExpertsCareful},
      {"nan-address", "SIM-024", AddressNaive, AddressCareful},
      {"slow-last-dim", "SIM-025", ColumnsNaive, ColumnsCareful},
      {"eps-underflow", "SIM-026", EpsNaive, EpsCareful},
      {"dynamic-k", "SIM-027", DynamicKNaive, DynamicKCareful},
      {"cache-order", "SIM-028", CacheNaive, CacheCareful},
  };
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
    const char* const variable = "CANNSIM_QUIRKS";
    printf("%s\n", cases[i].quirk);
    CHECK_IS(RunChild(cases[i].naive, variable, cases[i].quirk, g_text,
                      sizeof(g_text)),
             1);
    CHECK(strstr(g_text, cases[i].id) != NULL);
    CHECK_IS(RunChild(cases[i].careful, variable, cases[i].quirk, g_text,
                      sizeof(g_text)),
             0);
    // Without the quirk the naive one is right.
    CHECK_IS(RunChild(cases[i].naive, variable, "", g_text, sizeof(g_text)), 0);
    CHECK(strstr(g_text, "SIM-0") == NULL);
  }
  return FAILURES();
}
