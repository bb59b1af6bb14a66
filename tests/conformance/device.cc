// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/device.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <utility>

#include "backends/ref/ref.h"
#include "base/float_formats.h"
#ifdef BELAY_CONFORMANCE_CANN
#include "backends/cann/cann.h"
#endif
#ifdef BELAY_CONFORMANCE_CPU
#include "backends/cpu/cpu.h"
#include "base/thread_pool.h"
#include "kernels/simd_target.h"
#endif

namespace belay::conformance {
namespace {

using Factory = std::function<StatusOr<std::unique_ptr<ops::Backend>>(
    const ops::Numerics&)>;

struct NamedFactory {
  std::string name;
  Factory create;
};

#ifdef BELAY_CONFORMANCE_CPU
// Two threads, so that the suite sees work being split.
StatusOr<std::unique_ptr<ops::Backend>> CreateCpu(const ops::Numerics& numerics,
                                                  std::string_view target) {
  static StatusOr<std::unique_ptr<ThreadPool>> pool = ThreadPool::Create(2);
  if (!pool.ok()) return pool.status();
  return cpu::Create(numerics, pool->get(),
                     {.simd_target = std::string(target)});
}

// "cpu_AVX2": what a test's name may hold.
std::string NameOfTarget(std::string_view target) {
  std::string name = "cpu_" + std::string(target);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}
#endif

#ifdef BELAY_CONFORMANCE_CANN
// On the stand-in, with the profile that the environment names.
StatusOr<std::unique_ptr<ops::Backend>> CreateCann(
    const ops::Numerics& numerics) {
  cann::Options options;
  options.variable = [](const char* name) -> std::string {
    if (std::string(name) == "ASCEND_HOME_PATH") return BELAY_CANNSIM;
    // Fused operators of a package, when the test is run with one.
    const bool custom = std::string(name) == "ASCEND_CUSTOM_OPP_PATH";
    const char* value = custom ? std::getenv(name) : nullptr;
    return value == nullptr ? "" : value;
  };
  return cann::Create(numerics, options);
}
#endif

std::vector<NamedFactory> MakeFactories() {
  std::vector<NamedFactory> factories = {{"ref", ref::Create}};
#ifdef BELAY_CONFORMANCE_CPU
  // As it runs by itself, and held to each lesser target of this machine.
  for (const std::string_view target : kernels::SimdTargets()) {
    const bool best = factories.size() == 1;
    factories.push_back({best ? "cpu" : NameOfTarget(target),
                         [target](const ops::Numerics& numerics) {
                           return CreateCpu(numerics, target);
                         }});
  }
#endif
#ifdef BELAY_CONFORMANCE_CANN
  factories.push_back({"cann", CreateCann});
#endif
  return factories;
}

// The one list of back ends that the suite holds.
const std::vector<NamedFactory>& Factories() {
  static const std::vector<NamedFactory> factories = MakeFactories();
  return factories;
}

}  // namespace

ops::OpLimits SuiteLimits() {
  return {.n_tokens = 512,
          .n_context = 4096,
          .dim = 1024,
          .n_heads = 16,
          .head_dim = 512,
          .q_lora_rank = 1024,
          .o_mid = 1024,
          .n_index_heads = 8,
          .index_dim = 128,
          .index_topk = 256,
          .window_size = 128,
          .n_experts = 16,
          .n_experts_per_token = 4,
          .moe_inter = 1024,
          .vocab = 4096,
          .hc_mult = 4};
}

Device::Device(std::unique_ptr<ops::Backend> backend)
    : backend_(std::move(backend)) {
  const size_t bytes = backend_->WorkspaceBytes(SuiteLimits());
  auto workspace = backend_->Allocate(bytes);
  BELAY_CHECK(workspace.ok());
  const Status planned = backend_->Plan(
      SuiteLimits(),
      {static_cast<std::byte*>((*workspace)->data()), (*workspace)->bytes()});
  EXPECT_TRUE(planned.ok()) << planned;
  buffers_.push_back(std::move(workspace).value());
}

TensorView Device::Zeros(DType dtype, const Shape& shape) {
  const size_t bytes =
      static_cast<size_t>(shape.n_elements()) * DtypeBytes(dtype);
  auto buffer = backend_->Allocate(bytes);
  BELAY_CHECK(buffer.ok());
  buffers_.push_back(std::move(buffer).value());
  const TensorView view(buffers_.back()->data(), dtype, shape);
  const std::vector<std::byte> zeros(bytes);
  backend_->CopyIn(view, zeros.data());
  return view;
}

TensorView Device::Put(const ConstTensorView& host) {
  std::vector<std::byte> packed;
  for (int64_t i = 0; i < host.n_rows(); ++i) {
    const std::byte* row = host.row<std::byte>(i);
    packed.insert(packed.end(), row, row + host.row_bytes());
  }
  const TensorView view = Zeros(host.dtype(), host.shape());
  backend_->CopyIn(view, packed.data());
  return view;
}

TensorView Device::Put(DType dtype, const Shape& shape,
                       const std::vector<float>& values) {
  BELAY_CHECK(static_cast<int64_t>(values.size()) == shape.n_elements());
  if (dtype == DType::kF32) {
    return Put(ConstTensorView(values.data(), dtype, shape));
  }
  BELAY_CHECK(dtype == DType::kBF16);
  std::vector<uint16_t> bits;
  for (const float v : values) bits.push_back(Bf16FromF32(v));
  return Put(ConstTensorView(bits.data(), dtype, shape));
}

TensorView Device::PutInts(const Shape& shape,
                           const std::vector<int32_t>& values) {
  BELAY_CHECK(static_cast<int64_t>(values.size()) == shape.n_elements());
  return Put(ConstTensorView(values.data(), DType::kI32, shape));
}

std::vector<uint8_t> Device::GetBytes(const ConstTensorView& view) {
  std::vector<uint8_t> bytes(view.bytes());
  backend_->CopyOut(bytes.data(), view);
  const Status finished = backend_->Finish();
  EXPECT_TRUE(finished.ok()) << finished;
  return bytes;
}

std::vector<float> Device::Get(const ConstTensorView& view) {
  const std::vector<uint8_t> bytes = GetBytes(view);
  std::vector<float> values(static_cast<size_t>(view.n_elements()));
  if (view.dtype() == DType::kF32) {
    std::copy(bytes.begin(), bytes.end(),
              reinterpret_cast<uint8_t*>(values.data()));
    return values;
  }
  BELAY_CHECK(view.dtype() == DType::kBF16);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = F32FromBf16(
        static_cast<uint16_t>(bytes[2 * i] | (bytes[2 * i + 1] << 8)));
  }
  return values;
}

std::vector<int32_t> Device::GetInts(const ConstTensorView& view) {
  const std::vector<uint8_t> bytes = GetBytes(view);
  std::vector<int32_t> values(bytes.size() / sizeof(int32_t));
  std::copy(bytes.begin(), bytes.end(),
            reinterpret_cast<uint8_t*>(values.data()));
  return values;
}

const ops::BoundLinear* Device::Bind(const ops::LinearSource& source) {
  auto bound = backend_->BindLinear(source);
  EXPECT_TRUE(bound.ok()) << bound.status();
  BELAY_CHECK(bound.ok());
  linears_.push_back(std::move(bound).value());
  return linears_.back().get();
}

const ops::BoundExperts* Device::Bind(
    const std::vector<ops::ExpertSource>& experts, int64_t first_expert) {
  auto bound = backend_->BindExperts(experts, first_expert);
  EXPECT_TRUE(bound.ok()) << bound.status();
  BELAY_CHECK(bound.ok());
  experts_.push_back(std::move(bound).value());
  return experts_.back().get();
}

ConstTensorView Device::Bind(const ConstTensorView& host) {
  const auto bound = backend_->BindTensor(host);
  BELAY_CHECK(bound.ok());
  return *bound;
}

const ops::BoundLinear* Device::BindBf16(int64_t n_out, int64_t n_in,
                                         const std::vector<float>& values) {
  std::vector<uint16_t>& bits = host_weights_.emplace_back();
  for (const float v : values) bits.push_back(Bf16FromF32(v));
  ops::LinearSource source;
  source.weight = ConstTensorView(bits.data(), DType::kBF16, {n_out, n_in});
  return Bind(source);
}

std::vector<std::string> BackendNames() {
  std::vector<std::string> names;
  for (const NamedFactory& factory : Factories()) names.push_back(factory.name);
  return names;
}

std::unique_ptr<Device> MakeDevice(const std::string& name,
                                   const ops::Numerics& numerics) {
  for (const NamedFactory& factory : Factories()) {
    if (name != factory.name) continue;
    auto backend = factory.create(numerics);
    EXPECT_TRUE(backend.ok()) << backend.status();
    BELAY_CHECK(backend.ok());
    return std::make_unique<Device>(std::move(backend).value());
  }
  BELAY_CHECK(false);
}

ops::Numerics Official() { return {}; }

ops::Numerics Exact() {
  ops::Numerics numerics;
  numerics.mode = ops::NumericsMode::kExact;
  return numerics;
}

}  // namespace belay::conformance
