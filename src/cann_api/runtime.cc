// SPDX-License-Identifier: Apache-2.0
#include "cann_api/runtime.h"

#include <mutex>

#include "base/error_ids_cann.h"

namespace belay::cann_api {
namespace {

constexpr int kRepeatInitialize = 100002;
constexpr int kApiNotSupported = 200001;

// aclInit and aclFinalize are the process's, whoever uses them: the first
// runtime initialises, the last one finalises, unless somebody else did the
// first.
std::mutex init_mutex;
int n_runtimes = 0;
bool init_is_ours = false;

// The context that a thread has is the thread's, too.
thread_local aclrtContext current_context = nullptr;

Status Initialise(const Api& api) {
  const std::lock_guard lock(init_mutex);
  if (n_runtimes == 0) {
    const int code = api.aclInit(nullptr);
    init_is_ours = code == 0;
    if (code != 0 && code != kRepeatInitialize) {
      const ErrorFacts facts =
          ErrorFactsOf(StatusOf(api, code, {.call = "aclInit"}));
      return MakeError(kCannNotStarted, facts);
    }
  }
  ++n_runtimes;
  return absl::OkStatus();
}

void Finalise(const Api& api) {
  const std::lock_guard lock(init_mutex);
  if (--n_runtimes == 0 && init_is_ours) api.aclFinalize();
}

Status CheckDeviceNumber(const Api& api, int32_t device) {
  uint32_t n_devices = 0;
  const int code = api.aclrtGetDeviceCount(&n_devices);
  if (code == kApiNotSupported) return absl::OkStatus();
  BELAY_RETURN_IF_ERROR(StatusOf(api, code, {.call = "aclrtGetDeviceCount"}));
  if (device >= 0 && static_cast<uint32_t>(device) < n_devices) {
    return absl::OkStatus();
  }
  return MakeError(kCannNoDevice,
                   {.where = "device " + std::to_string(device),
                    .what = "",
                    .expected = "0 .. " + std::to_string(n_devices) + " - 1",
                    .got = std::to_string(device)});
}

}  // namespace

StatusOr<std::unique_ptr<Runtime>> Runtime::Start(
    const Api& api, const StartOptions& options,
    std::vector<TimedStep>* steps) {
  std::unique_ptr<Runtime> runtime(new Runtime(api, options.device));
  BELAY_RETURN_IF_ERROR(
      Timed(steps, "symbols", [&] { return api.CheckRequired(); }));
  BELAY_RETURN_IF_ERROR(Timed(steps, "init", [&] { return Initialise(api); }));
  runtime->counted_ = true;
  BELAY_RETURN_IF_ERROR(runtime->StartDevice(options, steps));
  return runtime;
}

Status Runtime::StartDevice(const StartOptions& options,
                            std::vector<TimedStep>* steps) {
  BELAY_RETURN_IF_ERROR(
      Timed(steps, "count", [&] { return CheckDeviceNumber(api_, device_); }));
  BELAY_RETURN_IF_ERROR(Timed(steps, "set device", [&] {
    return Check(api_.aclrtSetDevice(device_), "aclrtSetDevice");
  }));
  set_ = true;
  const char* soc = api_.aclrtGetSocName();
  soc_ = soc != nullptr ? soc : "";
  BELAY_RETURN_IF_ERROR(Timed(steps, "ready", [&] {
    return WaitUntilReady(options.ready_timeout_ms);
  }));
  BELAY_RETURN_IF_ERROR(
      Timed(steps, "context", [&] { return CreateContext(); }));
  return Timed(steps, "stream", [&] { return CreateStream(); });
}

Status Runtime::CreateContext() {
  aclrtContext context = nullptr;
  BELAY_RETURN_IF_ERROR(
      Check(api_.aclrtCreateContext(&context, device_), "aclrtCreateContext"));
  context_ = Context(&api_, context);
  current_context = context;  // creating makes it the thread's
  return absl::OkStatus();
}

Status Runtime::CreateStream() {
  aclrtStream stream = nullptr;
  BELAY_RETURN_IF_ERROR(
      Check(api_.aclrtCreateStream(&stream), "aclrtCreateStream"));
  stream_ = Stream(&api_, stream);
  // Only for messages.
  if (api_.aclrtStreamGetId(stream, &stream_id_) != 0) stream_id_ = -1;
  return absl::OkStatus();
}

Status Runtime::WaitUntilReady(int32_t timeout_ms) const {
  int code = api_.aclrtSynchronizeDeviceWithTimeout(timeout_ms);
  if (code == kApiNotSupported) code = api_.aclrtSynchronizeDevice();
  const Status status = Check(code, "aclrtSynchronizeDevice");
  if (ErrorIdOf(status) != kCannHung.id) return status;
  ErrorFacts facts = ErrorFactsOf(status);
  facts.expected = "ready in " + std::to_string(timeout_ms) + " ms";
  return MakeError(kCannNotReady, facts);
}

void Runtime::Use() const {
  if (current_context == context_.get() || !context_) return;
  if (api_.aclrtSetCurrentContext(context_.get()) == 0) {
    current_context = context_.get();
  }
}

Status Runtime::Check(int code, std::string_view name,
                      std::string_view detail) const {
  if (code == 0) return absl::OkStatus();
  return StatusOf(api_, code,
                  {.call = name, .device = device_, .detail = detail});
}

Status Runtime::CheckStream(int code, std::string_view name,
                            std::string_view detail) const {
  if (code == 0) return absl::OkStatus();
  return StatusOf(api_, code,
                  {.call = name,
                   .device = device_,
                   .stream = stream_id_,
                   .detail = detail});
}

StatusOr<DeviceMemory> Runtime::Allocate(size_t bytes) const {
  Use();
  void* memory = nullptr;
  const int code = api_.aclrtMalloc(&memory, bytes, ACL_MEM_MALLOC_HUGE_FIRST);
  if (code == 0) return DeviceMemory(&api_, memory);
  std::string detail = std::to_string(bytes) + " bytes";
  const Status status = Check(code, "aclrtMalloc", detail);
  size_t n_free = 0;
  size_t n_total = 0;
  if (api_.aclrtGetMemInfo(ACL_HBM_MEM, &n_free, &n_total) != 0) return status;
  detail += ", " + std::to_string(n_free) + " of " + std::to_string(n_total) +
            " are free";
  ErrorFacts facts = ErrorFactsOf(status);
  facts.where =
      "device " + std::to_string(device_) + ", aclrtMalloc (" + detail + ")";
  return ErrorIdOf(status) == kCannOutOfMemory.id
             ? MakeError(kCannOutOfMemory, facts)
             : status;
}

StatusOr<PinnedMemory> Runtime::AllocatePinned(size_t bytes) const {
  Use();
  void* memory = nullptr;
  const int code = api_.aclrtMallocHost(&memory, bytes);
  if (code == 0) return PinnedMemory(&api_, memory);
  return Check(code, "aclrtMallocHost", std::to_string(bytes) + " bytes");
}

Status Runtime::Synchronize(int32_t timeout_ms) {
  Use();
  int code = kApiNotSupported;
  const char* name = "aclrtSynchronizeStreamWithTimeout";
  if (timeout_ms >= 0) {
    code = api_.aclrtSynchronizeStreamWithTimeout(stream_.get(), timeout_ms);
  }
  if (code == kApiNotSupported) {
    name = "aclrtSynchronizeStream";
    code = api_.aclrtSynchronizeStream(stream_.get());
  }
  if (code == 0) return absl::OkStatus();
  const Status status = CheckStream(
      code, name,
      timeout_ms >= 0 ? "at most " + std::to_string(timeout_ms) + " ms" : "");
  hung_ = hung_ || ErrorIdOf(status) == kCannHung.id;
  return status;
}

void Runtime::Abandon() {
  if (!stream_) return;
  Use();
  // Without the call the stream is left alone: waiting for it would hang.
  aclrtStream stream = stream_.Release();
  Check(api_.aclrtDestroyStreamForce(stream), "aclrtDestroyStreamForce")
      .IgnoreError();
}

Status Runtime::Stop() {
  Status first = absl::OkStatus();
  const auto keep = [&](const Status& status) {
    if (first.ok()) first = status;
  };
  if (set_) {
    Use();
    if (hung_) Abandon();
    keep(Check(stream_.Reset(), "aclrtDestroyStream"));
    keep(Check(context_.Reset(), "aclrtDestroyContext"));
    current_context = nullptr;
    keep(Check(api_.aclrtResetDevice(device_), "aclrtResetDevice"));
    set_ = false;
  }
  if (counted_) Finalise(api_);
  counted_ = false;
  return first;
}

Runtime::~Runtime() { Stop().IgnoreError(); }

}  // namespace belay::cann_api
