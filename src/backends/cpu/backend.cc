// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/backend.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "backends/cpu/cpu.h"
#include "base/error_ids.h"
#include "base/float_formats.h"
#include "kernels/matmul_bf16.h"
#include "kernels/pack.h"
#include "kernels/quantize.h"
#include "kernels/simd_target.h"

namespace belay::cpu {
namespace {

class HostBuffer final : public ops::DeviceBuffer {
 public:
  explicit HostBuffer(Buffer buffer) : buffer_(std::move(buffer)) {}
  void* data() const override { return buffer_.data(); }
  size_t bytes() const override { return buffer_.bytes(); }

 private:
  Buffer buffer_;
};

Status Unsupported(std::string what, std::string expected, int64_t got) {
  return MakeError(kBackUnsupported, {.where = "cpu",
                                      .what = std::move(what),
                                      .expected = std::move(expected),
                                      .got = std::to_string(got)});
}

Status CheckLimits(const ops::OpLimits& limits) {
  if (limits.n_tokens < 1) {
    return Unsupported("tokens a step", ">= 1", limits.n_tokens);
  }
  if (limits.dim < 1) return Unsupported("dim", ">= 1", limits.dim);
  const int64_t n = limits.index_dim;
  if (limits.n_index_heads > 0 && (n < 1 || (n & (n - 1)) != 0)) {
    return Unsupported("index dim: Hadamard transform", "a power of two", n);
  }
  return absl::OkStatus();
}

Status CheckInt8(const ops::Numerics& numerics) {
  if (!numerics.official()) {
    return MakeError(kBackUnsupported, {.where = "cpu",
                                        .what = "--activations int8",
                                        .expected = "--numerics official",
                                        .got = "--numerics exact"});
  }
  if (kernels::Avx512Bf16Allowed()) return absl::OkStatus();
  return MakeError(kBackUnavailable,
                   {.where = "cpu",
                    .what = "--activations int8: instructions",
                    .expected = "AVX512_VNNI, AVX512_BF16, AVX512_VBMI",
                    .got = std::string(kernels::SimdTarget())});
}

}  // namespace

StatusOr<std::unique_ptr<ops::Backend>> Create(const ops::Numerics& numerics,
                                               ThreadPool* pool,
                                               const Options& options) {
  BELAY_RETURN_IF_ERROR(kernels::UseSimdTarget(options.simd_target));
  // An expert's task quantises the hidden values of its own rows.
  if (numerics.act_block < 1 || kExpertRows % numerics.act_block != 0) {
    return Unsupported("act_quant block",
                       "a divisor of " + std::to_string(kExpertRows),
                       numerics.act_block);
  }
  if (numerics.attention_tile < 1) {
    return Unsupported("attention tile", ">= 1", numerics.attention_tile);
  }
  if (numerics.int8_activations) BELAY_RETURN_IF_ERROR(CheckInt8(numerics));
  return std::make_unique<CpuBackend>(numerics, pool, options.topology);
}

std::vector<ops::Implementation> CpuBackend::Explain() const {
  std::vector<ops::Implementation> list;
  Status bf16 = absl::OkStatus();
  if (!kernels::HasBf16MatMul()) {
    bf16 = MakeError(kBackUnavailable, {.where = "cpu",
                                        .what = "instructions",
                                        .expected = "AVX512_BF16, AVX512_VBMI",
                                        .got = ""});
  } else if (!numerics_.official()) {
    bf16 = MakeError(kBackUnsupported, {.where = "cpu",
                                        .what = "activations",
                                        .expected = "BF16",
                                        .got = "F32"});
  }
  const Status int8 =
      numerics_.int8_activations
          ? absl::OkStatus()
          : MakeError(kBackUnsupported,
                      {.where = "cpu",
                       .what = "weights",
                       .expected = "Q8_0, MXFP4, or --activations int8",
                       .got = ""});
  for (const char* op : {"Linear", "QueryProject", "KvProject", "AttentionOut",
                         "RoutedExperts", "SharedExpert"}) {
    list.push_back({op, "int8-dot", int8});
  }
  for (const char* op : {"Linear", "Logits", "QueryProject", "KvProject",
                         "KvCompress", "IndexerSelect", "AttentionOut", "HcPre",
                         "HcHead", "Route", "RoutedExperts", "SharedExpert"}) {
    list.push_back({op, "bf16-dot", bf16});
    list.push_back({op, kernels::F32MatMul().name, absl::OkStatus()});
  }
  // The mixing weights are float32, which bf16 would round.
  for (const char* op : {"HcPre", "HcHead"}) {
    list.push_back({op, kernels::F32MatMul().name, absl::OkStatus()});
  }
  for (const char* op :
       {"Embed", "RmsNorm", "HcPost", "GatherRows", "AddBroadcast", "RopeTail",
        "KvStore", "SparseAttention", "Sample"}) {
    list.push_back({op, "simd", absl::OkStatus()});
  }
  return list;
}

std::string CpuBackend::PackedLayout() const {
  if (!numerics_.official() || numerics_.int8_activations ||
      !kernels::HasBf16MatMul()) {
    return "";
  }
  return std::string("cpu ") + kernels::kPackLayout + " bf16-dot";
}

StatusOr<std::unique_ptr<ops::DeviceBuffer>> CpuBackend::Allocate(
    size_t bytes) {
  BELAY_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Create(bytes));
  return std::make_unique<HostBuffer>(std::move(buffer));
}

size_t CpuBackend::WorkspaceBytes(const ops::OpLimits& limits) const {
  return SizesFor(numerics_, limits).total(pool_->n_threads());
}

Status CpuBackend::Plan(const ops::OpLimits& limits,
                        std::span<std::byte> workspace) {
  BELAY_RETURN_IF_ERROR(CheckLimits(limits));
  const WorkspaceSizes sizes = SizesFor(numerics_, limits);
  const size_t needed = sizes.total(pool_->n_threads());
  if (workspace.size() < needed) {
    return Unsupported("workspace bytes", std::to_string(needed),
                       static_cast<int64_t>(workspace.size()));
  }
  workspace_ = Workspace(sizes, workspace);
  return absl::OkStatus();
}

void CpuBackend::CopyIn(TensorView dst, const void* host_src) {
  const auto* from = static_cast<const std::byte*>(host_src);
  for (int64_t i = 0; i < dst.n_rows(); ++i) {
    const size_t offset = static_cast<size_t>(i) * dst.row_bytes();
    std::memcpy(dst.row<std::byte>(i), from + offset, dst.row_bytes());
  }
}

void CpuBackend::CopyOut(void* host_dst, ConstTensorView src) {
  auto* to = static_cast<std::byte*>(host_dst);
  for (int64_t i = 0; i < src.n_rows(); ++i) {
    const size_t offset = static_cast<size_t>(i) * src.row_bytes();
    std::memcpy(to + offset, src.row<std::byte>(i), src.row_bytes());
  }
}

void CpuBackend::Discard(TensorView memory) {
  if (memory.is_contiguous()) DiscardMemory(memory.data(), memory.bytes());
}

StatusOr<std::unique_ptr<ops::BoundLinear>> CpuBackend::BindLinear(
    const ops::LinearSource& source) {
  BELAY_ASSIGN_OR_RETURN(std::unique_ptr<CpuLinear> linear,
                         CpuLinear::Create(numerics_, source, packed_memory_));
  return std::unique_ptr<ops::BoundLinear>(std::move(linear));
}

StatusOr<std::unique_ptr<ops::BoundExperts>> CpuBackend::BindExperts(
    std::span<const ops::ExpertSource> experts, int64_t first_expert) {
  BELAY_ASSIGN_OR_RETURN(
      std::unique_ptr<CpuExperts> bound,
      CpuExperts::Create(numerics_, experts, first_expert, packed_memory_));
  return std::unique_ptr<ops::BoundExperts>(std::move(bound));
}

void CpuBackend::Round(float* x, int64_t n) const {
  if (numerics_.official()) kernels::RoundToBf16(x, static_cast<size_t>(n));
}

float CpuBackend::Round(float x) const {
  return numerics_.official() ? RoundToBf16(x) : x;
}

void CpuBackend::Load(ConstTensorView x, int64_t t, int64_t begin, int64_t n,
                      float* row) {
  const auto count = static_cast<size_t>(n);
  if (x.dtype() == DType::kBF16) {
    kernels::Bf16ToF32(x.row<uint16_t>(t) + begin, count, row);
  } else {
    std::memcpy(row, x.row<float>(t) + begin, count * sizeof(float));
  }
}

void CpuBackend::Store(const float* row, int64_t n, TensorView y, int64_t t,
                       int64_t begin) {
  const auto count = static_cast<size_t>(n);
  if (y.dtype() == DType::kBF16) {
    kernels::F32ToBf16(row, count, y.row<uint16_t>(t) + begin);
  } else {
    std::memcpy(y.row<float>(t) + begin, row, count * sizeof(float));
  }
}

}  // namespace belay::cpu
