// SPDX-License-Identifier: Apache-2.0
// Allocation, the budget of the profile, virtual memory, pinned host memory.
#include <stdlib.h>

#include "cannsim/tests/check.h"

enum { kMiB = 1 << 20 };
#define GIB ((size_t)1 << 30)

static void TestMalloc(void) {
  void* a = NULL;
  void* b = (void*)1;
  CHECK_IS(aclrtMalloc(NULL, 16, ACL_MEM_MALLOC_HUGE_FIRST),
           ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtMalloc(&b, 0, ACL_MEM_MALLOC_HUGE_FIRST),
           ACL_ERROR_RT_PARAM_INVALID);
  CHECK(b == NULL);
  for (size_t size = 1; size < 200; size += 7) {
    OK(aclrtMalloc(&a, size, ACL_MEM_MALLOC_NORMAL_ONLY));
    OK(aclrtMalloc(&b, size, (aclrtMemMallocPolicy)77));  // unknown: allowed
    CHECK_IS((size_t)a % 64, 0);
    // Rounded up to 32 and 32 more: the next one begins behind that.
    const size_t taken = (size + 31) / 32 * 32 + 32;
    CHECK((size_t)b >= (size_t)a + taken || (size_t)a >= (size_t)b + taken);
    OK(aclrtFree(a));
    OK(aclrtFree(b));
  }
  CHECK_IS(aclrtFree(NULL), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtFree(a), ACL_ERROR_RT_PARAM_INVALID);
  CHECK(strstr(aclGetRecentErrMsg(), "freed by aclrtFree") != NULL);
  CHECK_IS(aclrtFree(&a), ACL_ERROR_RT_PARAM_INVALID);
}

// 64 GiB and not one more; only pages that are touched cost the host anything.
static void TestBudget(void) {
  void* chunks[64] = {NULL};
  void* more = NULL;
  size_t free_bytes = 0;
  size_t total = 0;
  OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  CHECK_IS(total, 64 * GIB);
  CHECK_IS(free_bytes, 64 * GIB);
  for (int i = 0; i < 64; ++i) {
    OK(aclrtMalloc(&chunks[i], GIB, ACL_MEM_MALLOC_HUGE_FIRST));
  }
  CHECK_IS(aclrtMalloc(&more, GIB, ACL_MEM_MALLOC_HUGE_FIRST),
           ACL_ERROR_RT_MEMORY_ALLOCATION);
  CHECK(strstr(aclGetRecentErrMsg(), "EL0004") != NULL);
  CHECK_IS(aclrtMalloc(&more, 1, ACL_MEM_MALLOC_HUGE_FIRST),
           ACL_ERROR_RT_MEMORY_ALLOCATION);
  OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  CHECK_IS(free_bytes, 0);
  OK(aclrtFree(chunks[7]));
  OK(aclrtMalloc(&chunks[7], GIB, ACL_MEM_MALLOC_HUGE_FIRST));
  for (int i = 0; i < 64; ++i) OK(aclrtFree(chunks[i]));
  CHECK_IS(aclrtMalloc(&more, (size_t)-1, ACL_MEM_MALLOC_HUGE_FIRST),
           ACL_ERROR_RT_MEMORY_ALLOCATION);
  aclrtMemUsageInfo usage;
  size_t n = 0;
  OK(aclrtGetMemUsageInfo(0, &usage, 1, &n));
  CHECK_IS(n, 1);
  CHECK_IS(usage.curMemSize, 0);
  CHECK_IS(usage.memPeakSize, 64 * GIB);
}

static void TestMemInfoKinds(void) {
  size_t free_bytes = 9;
  size_t total = 9;
  OK(aclrtGetMemInfo(ACL_DDR_MEM, &free_bytes, &total));
  CHECK_IS(total, 0);  // this part has HBM only
  OK(aclrtGetMemInfo(ACL_MEM_HUGE, &free_bytes, &total));
  CHECK_IS(total, 64 * GIB);
  OK(aclrtGetMemInfo((aclrtMemAttr)99, &free_bytes, &total));
  CHECK_IS(total, 0);
}

static void TestDeviceMemoryHoldsData(void) {
  void* device = NULL;
  char out[4096];
  char in[4096];
  for (size_t i = 0; i < sizeof(out); ++i) out[i] = (char)(i * 7);
  OK(aclrtMalloc(&device, sizeof(out), ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtMemcpy(device, sizeof(out), out, sizeof(out),
                 ACL_MEMCPY_HOST_TO_DEVICE));
  OK(aclrtMemcpy(in, sizeof(in), device, sizeof(in),
                 ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(memcmp(in, out, sizeof(in)) == 0);
  OK(aclrtFree(device));
}

static aclrtPhysicalMemProp Property(aclrtMemAttr attribute) {
  aclrtPhysicalMemProp prop;
  memset(&prop, 0, sizeof(prop));
  prop.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  prop.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  prop.memAttr = attribute;
  prop.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  return prop;
}

// A pool that grows by mapping one piece behind the other, as clients do.
static void TestVirtualMemory(void) {
  aclrtPhysicalMemProp prop = Property(ACL_HBM_MEM_HUGE);
  aclrtDrvMemHandle handles[2];
  size_t grain = 0;
  void* base = NULL;
  size_t free_bytes = 0;
  size_t total = 0;
  static char out[6 * kMiB];
  static char in[6 * kMiB];
  OK(aclrtMemGetAllocationGranularity(
      &prop, ACL_RT_MEM_ALLOC_GRANULARITY_RECOMMENDED, &grain));
  CHECK_IS(grain, 2 * kMiB);
  CHECK_IS(aclrtReserveMemAddress(&base, 8 * GIB, 64, NULL, 1),
           ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtReserveMemAddress(&base, 8 * GIB, 0, NULL, 1));
  CHECK_IS(aclrtMallocPhysical(&handles[0], grain + 1, &prop, 0),
           ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtMallocPhysical(&handles[0], 2 * grain, &prop, 0));
  OK(aclrtMallocPhysical(&handles[1], grain, &prop, 0));
  char* second = (char*)base + 2 * grain;
  OK(aclrtMapMem(base, 2 * grain, 0, handles[0], 0));
  CHECK_IS(aclrtMapMem(base, 2 * grain, 0, handles[0], 0),
           ACL_ERROR_RT_PARAM_INVALID);  // there is something
  CHECK_IS(aclrtMapMem(second, 2 * grain, 0, handles[1], 0),
           ACL_ERROR_RT_PARAM_INVALID);  // not its size
  OK(aclrtMapMem(second, grain, 0, handles[1], 0));
  for (size_t i = 0; i < sizeof(out); ++i) out[i] = (char)(i >> 11);
  // Across the border of the two pieces.
  OK(aclrtMemcpy(base, sizeof(out), out, sizeof(out),
                 ACL_MEMCPY_HOST_TO_DEVICE));
  OK(aclrtMemcpy(in, sizeof(in), base, sizeof(in), ACL_MEMCPY_DEVICE_TO_HOST));
  CHECK(memcmp(in, out, sizeof(in)) == 0);
  CHECK_IS(
      aclrtMemcpy(in, sizeof(in), second + grain, 1, ACL_MEMCPY_DEVICE_TO_HOST),
      ACL_ERROR_RT_PARAM_INVALID);  // nothing is mapped there
  OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  CHECK_IS(total - free_bytes, 3 * grain);
  CHECK_IS(aclrtReleaseMemAddress(base), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtFreePhysical(handles[0]));  // deferred: still mapped
  OK(aclrtMemcpy(in, 1, base, 1, ACL_MEMCPY_DEVICE_TO_HOST));
  OK(aclrtUnmapMem(base));
  CHECK_IS(aclrtFreePhysical(handles[0]), ACL_ERROR_RT_INVALID_HANDLE);
  OK(aclrtUnmapMem(second));
  OK(aclrtFreePhysical(handles[1]));
  OK(aclrtReleaseMemAddress(base));
  OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  CHECK_IS(free_bytes, total);
  prop = Property(ACL_HBM_MEM_HUGE1G);
  OK(aclrtMemGetAllocationGranularity(
      &prop, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &grain));
  CHECK_IS(grain, GIB);
}

static void TestHostMemory(void) {
  void* host = NULL;
  void* mapped = NULL;
  char* plain = (char*)malloc(8192);
  aclrtPtrAttributes attributes;
  OK(aclrtMallocHost(&host, 1000));
  CHECK_IS((size_t)host % 64, 0);
  memset(host, 1, 1000);  // the host may touch it
  OK(aclrtPointerGetAttributes(host, &attributes));
  CHECK_IS(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  OK(aclrtPointerGetAttributes(plain, &attributes));
  CHECK_IS(attributes.location.type, ACL_MEM_LOCATION_TYPE_UNREGISTERED);
  CHECK_IS(aclrtFree(host), ACL_ERROR_RT_PARAM_INVALID);
  CHECK_IS(aclrtFreeHost(plain), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtFreeHost(host));
  CHECK_IS(aclrtFreeHost(host), ACL_ERROR_RT_PARAM_INVALID);
  OK(aclrtHostRegister(plain, 8192, ACL_HOST_REGISTER_MAPPED, &mapped));
  CHECK(mapped != NULL);
  OK(aclrtPointerGetAttributes(plain + 8191, &attributes));
  CHECK_IS(attributes.location.type, ACL_MEM_LOCATION_TYPE_HOST);
  CHECK_IS(aclrtHostRegister(plain, 1, ACL_HOST_REGISTER_MAPPED, &mapped),
           ACL_ERROR_RT_HOST_MEMORY_ALREADY_REGISTERED);
  OK(aclrtHostUnregister(plain));
  CHECK_IS(aclrtHostUnregister(plain), ACL_ERROR_RT_HOST_MEMORY_NOT_REGISTERED);
  free(plain);
}

static void TestResetFreesEverything(void) {
  void* device = NULL;
  size_t free_bytes = 0;
  size_t total = 0;
  OK(aclrtMalloc(&device, kMiB, ACL_MEM_MALLOC_HUGE_FIRST));
  OK(aclrtResetDevice(0));
  OK(aclrtSetDevice(0));
  OK(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total));
  CHECK_IS(free_bytes, total);
  CHECK_IS(aclrtFree(device), ACL_ERROR_RT_PARAM_INVALID);
}

int main(void) {
  OK(aclInit(NULL));
  OK(aclrtSetDevice(0));
  TestMalloc();
  TestBudget();
  TestMemInfoKinds();
  TestDeviceMemoryHoldsData();
  TestVirtualMemory();
  TestHostMemory();
  TestResetFreesEverything();
  OK(aclrtResetDevice(0));
  OK(aclFinalize());
  return FAILURES();
}
