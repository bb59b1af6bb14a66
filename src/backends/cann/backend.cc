// SPDX-License-Identifier: Apache-2.0
#include "backends/cann/backend.h"

#include <utility>

#include "base/error_ids.h"
#include "base/error_ids_cann.h"

namespace belay::cann {
namespace {

constexpr size_t kInBytes = size_t{4} << 20;
constexpr size_t kOutBytes = size_t{4} << 20;

class CannBuffer final : public ops::DeviceBuffer {
 public:
  CannBuffer(cann_api::DeviceMemory memory, size_t bytes,
             std::shared_ptr<Device> device)
      : device_(std::move(device)), memory_(std::move(memory)), bytes_(bytes) {}
  ~CannBuffer() override { device_->runtime->Use(); }
  void* data() const override { return memory_.get(); }
  size_t bytes() const override { return bytes_; }

 private:
  std::shared_ptr<Device> device_;
  cann_api::DeviceMemory memory_;
  size_t bytes_;
};

Status RefuseNumerics(const ops::Numerics& numerics) {
  const auto refuse = [](const char* what, const char* expected,
                         const std::string& got) {
    return MakeError(
        kBackUnsupported,
        {.where = "cann", .what = what, .expected = expected, .got = got});
  };
  if (numerics.int8_activations) {
    return refuse("--activations int8", "--backend cpu", "");
  }
  const std::pair<const char*, int> sizes[] = {
      {"act_block", numerics.act_block},
      {"kv_group", numerics.kv_group},
      {"index_group", numerics.index_group},
      {"attention_tile", numerics.attention_tile}};
  for (const auto& [what, size] : sizes) {
    if (size < 1) return refuse(what, ">= 1", std::to_string(size));
  }
  return absl::OkStatus();
}

// Chips without BF16 have no way to hold the official activations.
Status CheckChip(const std::string& soc) {
  const bool known = soc.starts_with("Ascend910B") ||
                     soc.starts_with("Ascend910_93") ||
                     soc.starts_with("Ascend950") || soc.empty();
  if (known) return absl::OkStatus();
  return MakeError(kBackUnsupported,
                   {.where = "cann",
                    .what = "the chip has no BF16, or is not known",
                    .expected = "Ascend910B, Ascend910_93 or Ascend950",
                    .got = soc});
}

}  // namespace

StatusOr<std::unique_ptr<ops::Backend>> Create(const ops::Numerics& numerics,
                                               const Options& options) {
  BELAY_RETURN_IF_ERROR(RefuseNumerics(numerics));
  const auto variable = [&](const char* name) {
    return options.variable ? options.variable(name) : std::string();
  };
  std::vector<cann_api::TimedStep> steps;
  auto device = std::make_shared<Device>();
  std::unique_ptr<cann_api::Api>& api = device->api;
  const auto load = [&]() -> Status {
    BELAY_ASSIGN_OR_RETURN(
        api, cann_api::Api::Load(cann_api::OptionsFrom(variable)));
    return absl::OkStatus();
  };
  BELAY_RETURN_IF_ERROR(cann_api::Timed(&steps, "load", load));
  std::string missing;
  for (const cann_api::MissingSymbol& one : api->Missing()) {
    if (one.name.starts_with("aclnn")) missing += " " + one.name;
  }
  if (!missing.empty()) {
    return MakeError(kCannMissingSymbol, {.where = "cann",
                                          .what = "operators:" + missing,
                                          .expected = "",
                                          .got = ""});
  }
  BELAY_ASSIGN_OR_RETURN(
      device->runtime,
      cann_api::Runtime::Start(*api,
                               {.device = options.device,
                                .ready_timeout_ms = options.ready_timeout_ms},
                               &steps));
  BELAY_RETURN_IF_ERROR(CheckChip(device->runtime->soc()));
  auto backend =
      std::make_unique<CannBackend>(numerics, options, std::move(device));
  BELAY_RETURN_IF_ERROR(backend->Init(std::move(steps)));
  return backend;
}

CannBackend::CannBackend(const ops::Numerics& numerics, const Options& options,
                         std::shared_ptr<Device> device)
    : numerics_(numerics),
      options_(options),
      device_(std::move(device)),
      api_(device_->api.get()),
      runtime_(device_->runtime.get()),
      weights_(*runtime_),
      copies_(*runtime_),
      launcher_(*runtime_),
      c_(*runtime_, launcher_),
      index_(c_, copies_) {}

CannBackend::~CannBackend() {
  runtime_->Use();
  // Nothing may run when executors go; a hung stream was waited for before.
  if (broken_.ok()) {
    runtime_->Synchronize(options_.step_timeout_ms).IgnoreError();
  }
}

Status CannBackend::Init(std::vector<cann_api::TimedStep> steps) {
  steps_ = std::move(steps);
  copies_.SetTimeout(options_.step_timeout_ms);
  BELAY_RETURN_IF_ERROR(cann_api::Timed(&steps_, "pinned memory", [&] {
    return copies_.Create(kInBytes, kOutBytes);
  }));
  cann_api::aclrtEvent event = nullptr;
  BELAY_RETURN_IF_ERROR(
      runtime_->Check(api_->aclrtCreateEvent(&event), "aclrtCreateEvent"));
  fence_ = cann_api::Event(api_, event);
  c_.SetFence(event);
  return absl::OkStatus();
}

std::vector<ops::StartStep> CannBackend::StartSteps() const {
  std::vector<ops::StartStep> steps;
  for (const cann_api::TimedStep& step : steps_) {
    steps.push_back({.name = step.name, .seconds = step.seconds});
  }
  return steps;
}

size_t CannBackend::FreeBytes() const {
  size_t n_free = 0;
  size_t n_total = 0;
  runtime_->Use();
  const int code =
      api_->aclrtGetMemInfo(cann_api::ACL_HBM_MEM, &n_free, &n_total);
  return code == 0 ? n_free : 0;
}

bool CannBackend::Enter(const char* op) {
  launcher_.SetOp(op);
  if (!launcher_.ok() || !broken_.ok()) return false;
  runtime_->Use();
  return true;
}

void CannBackend::Refuse(const std::string& what, const std::string& expected) {
  launcher_.Fail(MakeError(kBackUnsupported, {.where = launcher_.op(),
                                              .what = what,
                                              .expected = expected,
                                              .got = ""}));
}

StatusOr<std::unique_ptr<ops::DeviceBuffer>> CannBackend::Allocate(
    size_t bytes) {
  BELAY_ASSIGN_OR_RETURN(cann_api::DeviceMemory memory,
                         runtime_->Allocate(std::max<size_t>(bytes, 1)));
  return std::make_unique<CannBuffer>(std::move(memory), bytes, device_);
}

void CannBackend::CopyIn(TensorView dst, const void* host_src) {
  if (!Enter("CopyIn")) return;
  index_.Invalidate();
  const auto* from = static_cast<const std::byte*>(host_src);
  const auto copy = [&](void* to, size_t bytes) {
    const Status copied = copies_.In(to, from, bytes);
    if (!copied.ok()) launcher_.Fail(copied);
    from += bytes;
  };
  if (dst.is_contiguous()) return copy(dst.data(), dst.bytes());
  for (int64_t i = 0; i < dst.n_rows() && launcher_.ok(); ++i) {
    copy(dst.row<std::byte>(i), dst.row_bytes());
  }
}

void CannBackend::CopyOut(void* host_dst, ConstTensorView src) {
  if (!Enter("CopyOut")) return;
  auto* to = static_cast<std::byte*>(host_dst);
  const auto copy = [&](const void* from, size_t bytes) {
    const Status copied = copies_.Out(to, from, bytes);
    if (!copied.ok()) launcher_.Fail(copied);
    to += bytes;
  };
  if (src.is_contiguous()) return copy(src.data(), src.bytes());
  for (int64_t i = 0; i < src.n_rows() && launcher_.ok(); ++i) {
    copy(src.row<std::byte>(i), src.row_bytes());
  }
}

// The one wait of a step. A fault of the device comes first, since calls that
// queue work only fail because of it; it ends everything that comes after:
// neither stream nor caches can be trusted.
Status CannBackend::Finish() {
  if (!broken_.ok()) return broken_;
  Status queued = launcher_.TakeFault();
  const Status ran = runtime_->Synchronize(options_.step_timeout_ms);
  index_.Invalidate();
  const Status status = queued.ok() || cann_api::IsFatal(ran) ? ran : queued;
  if (cann_api::IsFatal(ran) || cann_api::IsFatal(queued)) {
    broken_ = status;
    runtime_->Abandon();
  }
  if (!status.ok()) {
    copies_.Drop();
    return status;
  }
  copies_.Deliver();
  launcher_.Trim();
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<ops::BoundLinear>> CannBackend::BindLinear(
    const ops::LinearSource& source) {
  BELAY_ASSIGN_OR_RETURN(auto linear,
                         CannLinear::Create(numerics_, source, weights_));
  return std::unique_ptr<ops::BoundLinear>(std::move(linear));
}

StatusOr<std::unique_ptr<ops::BoundExperts>> CannBackend::BindExperts(
    std::span<const ops::ExpertSource> experts, int64_t first_expert) {
  BELAY_ASSIGN_OR_RETURN(
      auto bound,
      CannExperts::Create(numerics_, experts, first_expert, weights_));
  return std::unique_ptr<ops::BoundExperts>(std::move(bound));
}

StatusOr<ConstTensorView> CannBackend::BindTensor(ConstTensorView host) {
  switch (host.dtype()) {
    case DType::kF32:
    case DType::kBF16:
    case DType::kF16:
    case DType::kI32:
    case DType::kI64:
      break;
    default:
      return MakeError(kBackUnsupported,
                       {.where = "cann",
                        .what = "a tensor that is no number to it",
                        .expected = "F32, BF16, F16, I32 or I64",
                        .got = std::string(DtypeName(host.dtype()))});
  }
  if (host.empty()) return host;
  BELAY_ASSIGN_OR_RETURN(void* device, weights_.Take(host.bytes()));
  auto* to = static_cast<std::byte*>(device);
  for (int64_t i = 0; i < host.n_rows(); ++i) {
    const bool whole = host.is_contiguous();
    const size_t bytes = whole ? host.bytes() : host.row_bytes();
    BELAY_RETURN_IF_ERROR(weights_.Copy(to, host.row<std::byte>(i), bytes));
    if (whole) break;
    to += bytes;
  }
  return ConstTensorView(device, host.dtype(), host.shape());
}

}  // namespace belay::cann
