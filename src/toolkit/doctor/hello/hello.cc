// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/hello/hello.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/error_ids_cann.h"
#include "cann_api/handles.h"

namespace belay::doctor {
namespace {

using cann_api::Timed;

// Odd, so that the last vector of the kernel is not full.
constexpr int64_t kCount = 1027;
constexpr size_t kBytes = kCount * sizeof(float);
// Addresses of operands are multiples of 512 everywhere in Belay.
constexpr size_t kPart = (kBytes + 511) / 512 * 512;

float Left(int64_t i) { return static_cast<float>(i) * 0.5f; }
float Right(int64_t i) { return static_cast<float>(1000 - 3 * i); }

// The operator's three tensors, one after another in one piece of memory.
class Sum {
 public:
  explicit Sum(cann_api::Runtime& runtime) : runtime_(runtime) {}

  Status Allocate() {
    BELAY_ASSIGN_OR_RETURN(device_, runtime_.Allocate(3 * kPart));
    return absl::OkStatus();
  }

  Status AllocateHost() {
    BELAY_ASSIGN_OR_RETURN(host_, runtime_.AllocatePinned(3 * kPart));
    for (int64_t i = 0; i < kCount; ++i) {
      Host(0)[i] = Left(i);
      Host(1)[i] = Right(i);
      Host(2)[i] = -1.0f;
    }
    return absl::OkStatus();
  }

  Status CopyIn() {
    return runtime_.CheckStream(
        runtime_.api().aclrtMemcpyAsync(
            device_.get(), 3 * kPart, host_.get(), 3 * kPart,
            cann_api::ACL_MEMCPY_HOST_TO_DEVICE, runtime_.stream()),
        "aclrtMemcpyAsync", "host to device");
  }

  Status Launch() {
    const cann_api::Api& api = runtime_.api();
    const cann_api::Tensor left = Describe(0);
    const cann_api::Tensor right = Describe(1);
    const cann_api::Tensor out = Describe(2);
    float one = 1.0f;
    const cann_api::Scalar alpha(
        &api, api.aclCreateScalar(&one, cann_api::ACL_FLOAT));
    uint64_t bytes = 0;
    cann_api::aclOpExecutor* executor = nullptr;
    BELAY_RETURN_IF_ERROR(
        runtime_.Check(api.Add.plan(left.get(), right.get(), alpha.get(),
                                    const_cast<cann_api::aclTensor*>(out.get()),
                                    &bytes, &executor),
                       "aclnnAddGetWorkspaceSize"));
    if (bytes > 0) {
      BELAY_ASSIGN_OR_RETURN(workspace_, runtime_.Allocate(bytes));
    }
    return runtime_.CheckStream(
        api.Add.run(workspace_.get(), bytes, executor, runtime_.stream()),
        "aclnnAdd");
  }

  Status CopyBack() {
    return runtime_.CheckStream(
        runtime_.api().aclrtMemcpyAsync(Host(2), kBytes, DevicePart(2), kBytes,
                                        cann_api::ACL_MEMCPY_DEVICE_TO_HOST,
                                        runtime_.stream()),
        "aclrtMemcpyAsync", "device to host");
  }

  // Sums of these numbers are exact.
  Status Check() const {
    for (int64_t i = 0; i < kCount; ++i) {
      const float expected = Left(i) + Right(i);
      const float got = Host(2)[i];
      if (got == expected) continue;
      return MakeError(kCannWrongResult,
                       {.where = "aclnnAdd, value " + std::to_string(i),
                        .what = "",
                        .expected = std::to_string(expected),
                        .got = std::to_string(got)});
    }
    return absl::OkStatus();
  }

  Status Free() {
    for (cann_api::DeviceMemory* memory : {&workspace_, &device_}) {
      BELAY_RETURN_IF_ERROR(runtime_.Check(memory->Reset(), "aclrtFree"));
    }
    return runtime_.Check(host_.Reset(), "aclrtFreeHost");
  }

 private:
  float* Host(size_t i) const {
    return reinterpret_cast<float*>(static_cast<std::byte*>(host_.get()) +
                                    i * kPart);
  }
  void* DevicePart(size_t i) const {
    return static_cast<std::byte*>(device_.get()) + i * kPart;
  }
  cann_api::Tensor Describe(size_t i) const {
    const int64_t n = kCount;
    const int64_t stride = 1;
    const cann_api::Api& api = runtime_.api();
    return {&api,
            api.aclCreateTensor(&n, 1, cann_api::ACL_FLOAT, &stride, 0,
                                cann_api::ACL_FORMAT_ND, &n, 1, DevicePart(i))};
  }

  cann_api::Runtime& runtime_;
  cann_api::DeviceMemory device_;
  cann_api::DeviceMemory workspace_;
  cann_api::PinnedMemory host_;
};

Status AddOnDevice(cann_api::Runtime& runtime, int32_t timeout_ms,
                   std::vector<cann_api::TimedStep>* steps) {
  Sum sum(runtime);
  const std::pair<const char*, std::function<Status()>> parts[] = {
      {"malloc", [&] { return sum.Allocate(); }},
      {"malloc host", [&] { return sum.AllocateHost(); }},
      {"copy in", [&] { return sum.CopyIn(); }},
      {"operator", [&] { return sum.Launch(); }},
      {"wait", [&] { return runtime.Synchronize(timeout_ms); }},
      {"copy back",
       [&]() -> Status {
         BELAY_RETURN_IF_ERROR(sum.CopyBack());
         return runtime.Synchronize(timeout_ms);
       }},
      {"numbers", [&] { return sum.Check(); }},
      {"free", [&] { return sum.Free(); }}};
  for (const auto& [name, work] : parts) {
    const Status status = Timed(steps, name, work);
    if (status.ok()) continue;
    // What may still run must not find its memory gone.
    if (cann_api::IsFatal(status) || !runtime.Synchronize(timeout_ms).ok()) {
      runtime.Abandon();
    }
    return status;
  }
  return absl::OkStatus();
}

}  // namespace

HelloReport Hello(const HelloOptions& options) {
  HelloReport report;
  std::unique_ptr<cann_api::Api> api;
  report.status = Timed(&report.steps, "load", [&]() -> Status {
    BELAY_ASSIGN_OR_RETURN(api, cann_api::Api::Load(options.libraries));
    return absl::OkStatus();
  });
  if (!report.status.ok()) return report;
  report.libraries = api->libraries();
  report.missing = api->Missing();
  auto started = cann_api::Runtime::Start(*api, options.start, &report.steps);
  report.status = started.status();
  if (!started.ok()) return report;
  cann_api::Runtime& runtime = **started;
  report.soc = runtime.soc();
  report.status = AddOnDevice(runtime, options.timeout_ms, &report.steps);
  // Given back in any case; what failed first is what is told.
  const Status stopped =
      Timed(&report.steps, "teardown", [&] { return runtime.Stop(); });
  if (report.status.ok()) {
    report.status = stopped;
  } else {
    report.steps.pop_back();
  }
  return report;
}

}  // namespace belay::doctor
