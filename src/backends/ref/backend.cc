// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/backend.h"

#include <cstring>
#include <string>
#include <utility>

#include "backends/ref/ref.h"
#include "backends/ref/weights.h"
#include "base/error_ids.h"
#include "tensor/buffer.h"

namespace belay::ref {
namespace {

class HostBuffer final : public ops::DeviceBuffer {
 public:
  explicit HostBuffer(Buffer buffer) : buffer_(std::move(buffer)) {}
  void* data() const override { return buffer_.data(); }
  size_t bytes() const override { return buffer_.bytes(); }

 private:
  Buffer buffer_;
};

Status Refuse(const char* where, const std::string& expected, int64_t got) {
  return MakeError(kBackUnsupported, {.where = where,
                                      .what = "",
                                      .expected = expected,
                                      .got = std::to_string(got)});
}

bool IsPowerOfTwo(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

}  // namespace

StatusOr<std::unique_ptr<ops::Backend>> Create(const ops::Numerics& numerics) {
  const std::pair<const char*, int> sizes[] = {
      {"act_block", numerics.act_block},
      {"kv_group", numerics.kv_group},
      {"index_group", numerics.index_group},
      {"attention_tile", numerics.attention_tile}};
  for (const auto& [what, size] : sizes) {
    if (size < 1) return Refuse(what, ">= 1", size);
  }
  if (numerics.int8_activations) {
    return MakeError(kBackUnsupported, {.where = "ref",
                                        .what = "--activations int8",
                                        .expected = "--backend cpu",
                                        .got = ""});
  }
  return std::make_unique<RefBackend>(numerics);
}

std::vector<ops::Implementation> RefBackend::Explain() const {
  std::vector<ops::Implementation> list;
  for (const char* op :
       {"Embed",        "RmsNorm",      "Linear",        "HcPre",
        "HcPost",       "HcHead",       "GatherRows",    "AddBroadcast",
        "Logits",       "QueryProject", "KvProject",     "RopeTail",
        "KvStore",      "KvCompress",   "IndexerSelect", "SparseAttention",
        "AttentionOut", "Route",        "RoutedExperts", "SharedExpert",
        "Sample"}) {
    list.push_back({.op = op, .name = "ref", .applies = absl::OkStatus()});
  }
  return list;
}

StatusOr<std::unique_ptr<ops::DeviceBuffer>> RefBackend::Allocate(
    size_t bytes) {
  BELAY_ASSIGN_OR_RETURN(Buffer buffer, Buffer::Create(bytes));
  return std::make_unique<HostBuffer>(std::move(buffer));
}

size_t RefBackend::WorkspaceBytes(const ops::OpLimits&) const { return 0; }

// What BindLinear cannot see: sizes that belong to no weight.
Status RefBackend::Plan(const ops::OpLimits& limits, std::span<std::byte>) {
  if (limits.n_tokens < 1) return Refuse("n_tokens", ">= 1", limits.n_tokens);
  if (limits.hc_mult < 1) return Refuse("hc_mult", ">= 1", limits.hc_mult);
  if (limits.n_experts_per_token > limits.n_experts) {
    return Refuse("n_experts_per_token",
                  "<= " + std::to_string(limits.n_experts),
                  limits.n_experts_per_token);
  }
  if (limits.index_dim == 0) return absl::OkStatus();
  if (!IsPowerOfTwo(limits.index_dim)) {
    return Refuse("index_dim", "a power of two (Hadamard transform)",
                  limits.index_dim);
  }
  if (limits.index_dim % numerics_.index_group != 0) {
    return Refuse("index_dim",
                  "a multiple of " + std::to_string(numerics_.index_group),
                  limits.index_dim);
  }
  return absl::OkStatus();
}

void RefBackend::CopyIn(TensorView dst, const void* host_src) {
  const auto* src = static_cast<const std::byte*>(host_src);
  for (int64_t i = 0; i < dst.n_rows(); ++i, src += dst.row_bytes()) {
    std::memcpy(dst.row<std::byte>(i), src, dst.row_bytes());
  }
}

void RefBackend::CopyOut(void* host_dst, ConstTensorView src) {
  auto* dst = static_cast<std::byte*>(host_dst);
  for (int64_t i = 0; i < src.n_rows(); ++i, dst += src.row_bytes()) {
    std::memcpy(dst, src.row<std::byte>(i), src.row_bytes());
  }
}

StatusOr<std::unique_ptr<ops::BoundLinear>> RefBackend::BindLinear(
    const ops::LinearSource& source) {
  BELAY_ASSIGN_OR_RETURN(auto linear, RefLinear::Create(numerics_, source));
  return std::unique_ptr<ops::BoundLinear>(std::move(linear));
}

StatusOr<std::unique_ptr<ops::BoundExperts>> RefBackend::BindExperts(
    std::span<const ops::ExpertSource> experts, int64_t first_expert) {
  BELAY_ASSIGN_OR_RETURN(auto bound,
                         RefExperts::Create(numerics_, experts, first_expert));
  return std::unique_ptr<ops::BoundExperts>(std::move(bound));
}

}  // namespace belay::ref
