// SPDX-License-Identifier: Apache-2.0
// What the simulator itself costs: the launch of work that does nothing. The
// goal is less than 5 us, the order of what a real launch costs the host.
#include <benchmark/benchmark.h>

#include "acl/acl.h"

namespace {

void Nothing(void*) {}

void BM_EmptyLaunch(benchmark::State& state) {
  aclInit(nullptr);
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  if (aclrtCreateStream(&stream) != ACL_SUCCESS) {
    state.SkipWithError(aclGetRecentErrMsg());
    return;
  }
  for (auto _ : state) {
    aclrtLaunchHostFunc(stream, Nothing, nullptr);
  }
  aclrtSynchronizeStream(stream);
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
}
BENCHMARK(BM_EmptyLaunch)->Iterations(200000)->UseRealTime();

void BM_LaunchAndWait(benchmark::State& state) {
  aclrtSetDevice(0);
  aclrtStream stream = nullptr;
  aclrtCreateStream(&stream);
  for (auto _ : state) {
    aclrtLaunchHostFunc(stream, Nothing, nullptr);
    aclrtSynchronizeStream(stream);
  }
  aclrtDestroyStream(stream);
  aclrtResetDevice(0);
}
BENCHMARK(BM_LaunchAndWait)->Iterations(20000)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
