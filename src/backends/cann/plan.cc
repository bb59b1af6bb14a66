// SPDX-License-Identifier: Apache-2.0
// The one piece of memory that operators work in, and what lies in it.
#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include "backends/cann/backend.h"
#include "base/error_ids.h"
#include "base/float_formats.h"

namespace belay::cann {
namespace {

constexpr size_t kMib = size_t{1} << 20;

// What operators of CANN may ask for themselves. The stand-in asks for nothing;
// products on a card are known to take up to some 20 MiB.
constexpr size_t kOperatorBytes = 48 * kMib;
// Chunks of attention, of the indexer and of sampling, which keep to it.
constexpr size_t kChunkBytes = 192 * kMib;

size_t Size(int64_t n) { return static_cast<size_t>(std::max<int64_t>(n, 0)); }

size_t RoundUp(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

struct Parts {
  size_t operators = 0;
  size_t lists = 0;
  size_t constants = 0;
  size_t scratch = 0;
  size_t total() const { return operators + lists + constants + scratch; }
};

int64_t CountingFor(const ops::OpLimits& l) {
  return std::max(
             {l.n_context / 4 + 64, l.window_size, l.n_tokens, l.index_topk}) +
         128;
}

// Temporaries of the operator that needs most. Each term is what one family
// holds at once (bytes a token times tokens), generously; chunks are beside it.
size_t ScratchFor(const ops::OpLimits& l) {
  const auto hc = static_cast<int64_t>(l.hc_mult);
  const int64_t widest =
      std::max({l.dim, l.n_heads * l.head_dim, l.o_mid, l.q_lora_rank,
                l.moe_inter, l.n_index_heads * l.index_dim});
  const int64_t pairs_bytes =
      l.n_experts_per_token * (14 * l.dim + 40 * l.moe_inter) +
      9 * l.n_experts * std::max<int64_t>(l.n_experts_per_token, 1);
  const int64_t token = std::max({16 * hc * l.dim, pairs_bytes + 22 * l.dim,
                                  40 * widest + 48 * l.head_dim,
                                  112 * l.head_dim, 20 * l.n_experts}) +
                        24 * widest;
  // Rows of a sequence: its window, compressed rows, and indexer keys with
  // the scores of four tokens.
  const int64_t rows = l.n_context / 4 + l.window_size + 256;
  const int64_t row = 8 * l.head_dim + 4 * l.index_dim +
                      4 * 12 * std::max<int64_t>(l.n_index_heads, 1) +
                      4 * 10 * l.n_heads;
  return kChunkBytes + Size(l.n_tokens) * Size(token) + Size(rows) * Size(row) +
         20 * Size(l.vocab);
}

Parts PartsFor(const ops::OpLimits& l) {
  Parts parts;
  parts.operators = kOperatorBytes;
  parts.lists =
      RoundUp(8 * kMib + 256 * Size(l.n_tokens) + 64 * Size(l.n_context / 4));
  parts.constants = RoundUp(4 * Size(CountingFor(l)) +
                            2 * Size(l.index_dim) * Size(l.index_dim) +
                            4 * Size(l.n_experts + 2) + 64 * kAlignment);
  parts.scratch = RoundUp(ScratchFor(l));
  return parts;
}

Status RefuseSize(const char* where, const std::string& expected, int64_t got) {
  return MakeError(kBackUnsupported, {.where = where,
                                      .what = "",
                                      .expected = expected,
                                      .got = std::to_string(got)});
}

Status CheckLimits(const ops::Numerics& numerics, const ops::OpLimits& l) {
  if (l.n_tokens < 1) return RefuseSize("n_tokens", ">= 1", l.n_tokens);
  if (l.hc_mult < 1) return RefuseSize("hc_mult", ">= 1", l.hc_mult);
  if (l.n_experts_per_token > l.n_experts) {
    return RefuseSize("n_experts_per_token",
                      "<= " + std::to_string(l.n_experts),
                      l.n_experts_per_token);
  }
  if (l.index_dim == 0) return absl::OkStatus();
  if (l.index_dim < 0 || !std::has_single_bit(Size(l.index_dim))) {
    return RefuseSize("index_dim", "a power of two (Hadamard transform)",
                      l.index_dim);
  }
  if (l.index_dim % numerics.index_group != 0) {
    return RefuseSize("index_dim",
                      "a multiple of " + std::to_string(numerics.index_group),
                      l.index_dim);
  }
  return absl::OkStatus();
}

// Fills constants one after another in their part of the memory.
class ConstantWriter {
 public:
  ConstantWriter(std::span<std::byte> memory, const WeightMemory& copier)
      : memory_(memory), copier_(copier) {}

  template <typename T>
  Array Put(aclDataType dtype, Dims dims, const std::vector<T>& values) {
    const Array a(memory_.data() + used_, dtype, dims);
    const size_t bytes = values.size() * sizeof(T);
    BELAY_CHECK(used_ + bytes <= memory_.size());
    used_ = RoundUp(used_ + bytes);
    if (status_.ok()) status_ = copier_.Copy(a.data, values.data(), bytes);
    return a;
  }
  Array Counting(int64_t n) {
    std::vector<int32_t> values(Size(n));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<int32_t>(i);
    }
    return Put(kI32, {n}, values);
  }
  const Status& status() const { return status_; }

 private:
  std::span<std::byte> memory_;
  const WeightMemory& copier_;
  size_t used_ = 0;
  Status status_;
};

// Natural order: -1 where the indices have an odd number of common bits.
std::vector<uint16_t> HadamardMatrix(int64_t n) {
  std::vector<uint16_t> values;
  values.reserve(Size(n) * Size(n));
  for (size_t i = 0; i < Size(n); ++i) {
    for (size_t j = 0; j < Size(n); ++j) {
      values.push_back(
          Bf16FromF32(std::popcount(i & j) % 2 == 0 ? 1.0f : -1.0f));
    }
  }
  return values;
}

std::vector<int32_t> ScaleOfMixes(int hc) {
  std::vector<int32_t> which;
  for (int i = 0; i < (2 + hc) * hc; ++i) {
    which.push_back(std::min(i / hc, 2));
  }
  return which;
}

}  // namespace

size_t CannBackend::WorkspaceBytes(const ops::OpLimits& limits) const {
  return PartsFor(limits).total();
}

Status CannBackend::Plan(const ops::OpLimits& limits,
                         std::span<std::byte> workspace) {
  BELAY_RETURN_IF_ERROR(CheckLimits(numerics_, limits));
  const Parts parts = PartsFor(limits);
  if (workspace.size() < parts.total()) {
    return RefuseSize("workspace", std::to_string(parts.total()) + " bytes",
                      static_cast<int64_t>(workspace.size()));
  }
  limits_ = limits;
  size_t used = 0;
  const auto take = [&](size_t bytes) {
    const std::span<std::byte> part = workspace.subspan(used, bytes);
    used += bytes;
    return part;
  };
  const std::span<std::byte> operators = take(parts.operators);
  launcher_.SetWorkspace(operators.data(), operators.size());
  index_.SetMemory(take(parts.lists));
  ConstantWriter writer(take(parts.constants), weights_);
  c_.SetScratch(take(parts.scratch));
  constants_.one = writer.Put(kF32, {1}, std::vector<float>{1.0f});
  constants_.counting = writer.Counting(CountingFor(limits));
  constants_.expert_ids = writer.Counting(limits.n_experts + 1);
  const std::vector<int32_t> scales = ScaleOfMixes(limits.hc_mult);
  constants_.hc_scales =
      writer.Put(kI32, {static_cast<int64_t>(scales.size())}, scales);
  if (limits.index_dim > 0) {
    constants_.hadamard =
        writer.Put(kBf16, {limits.index_dim, limits.index_dim},
                   HadamardMatrix(limits.index_dim));
  }
  return writer.status();
}

}  // namespace belay::cann
