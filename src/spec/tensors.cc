// SPDX-License-Identifier: Apache-2.0
#include "spec/tensors.h"

#include <array>
#include <charconv>
#include <utility>

#include "base/error_ids.h"
#include "spec/names.h"

namespace belay::spec {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// How a linear weight is split; see the fields of ExpectedTensor.
struct Split {
  Shard shard = Shard::kReplicate;
  int64_t units = 0;
};

// Writes the table, one layer after another.
class Table {
 public:
  explicit Table(const ModelConfig& config) : c_(config) {}

  std::vector<ExpectedTensor> Build() {
    Globals();
    for (int64_t i = 0; i < c_.n_layers; ++i) {
      layer_ = i;
      prefix_ = names::LayerPrefix(i);
      Layer();
    }
    for (int64_t i = 0; i < c_.n_mtp_layers; ++i) {
      layer_ = c_.n_layers + i;
      prefix_ = names::MtpPrefix(i);
      MtpInput();
      Layer();
      Add(Family::kNorm, names::kNorm, DType::kBF16, {c_.dim});
      HcHead();
    }
    return std::move(rows_);
  }

 private:
  ExpectedTensor& Add(Family family, std::string_view name, DType dtype,
                      const Shape& shape) {
    ExpectedTensor& row = rows_.emplace_back();
    row.name = prefix_ + std::string(name);
    row.dtype = dtype;
    row.shape = shape;
    row.family = family;
    row.layer = layer_;
    row.expert = expert_;
    if (expert_ >= 0) {
      row.shard = Shard::kExpert;
      row.units = c_.n_routed_experts;
    }
    return row;
  }

  static void Apply(const Split& split, int64_t extent, int64_t block,
                    ExpectedTensor& row) {
    if (split.shard == Shard::kReplicate) return;
    row.shard = split.shard;
    row.units = split.units;
    row.split_extent = extent;
    row.block = block;
  }

  // `name`.weight in bf16.
  void Bf16Linear(Family family, const std::string& name, int64_t n_out,
                  int64_t n_in, const Split& split = {}) {
    ExpectedTensor& row =
        Add(family, name + names::kWeight, DType::kBF16, {n_out, n_in});
    Apply(split, split.shard == Shard::kColumns ? n_in : n_out, 1, row);
  }

  // `name`.weight in e4m3 with a scale a block.
  void Fp8Linear(Family family, const std::string& name, int64_t n_out,
                 int64_t n_in, const Split& split = {}) {
    const int64_t block = c_.fp8_block;
    const int64_t extent = split.shard == Shard::kColumns ? n_in : n_out;
    Apply(split, extent, block,
          Add(family, name + names::kWeight, DType::kF8E4M3, {n_out, n_in}));
    // The -Base releases have F32 scales, the others E8M0, under one name.
    const bool base = c_.expert_format == ExpertFormat::kFp8;
    ExpectedTensor& scale =
        Add(family, name + names::kScale, base ? DType::kF32 : DType::kF8E8M0,
            {CeilDiv(n_out, block), CeilDiv(n_in, block)});
    scale.also = base ? DType::kF8E8M0 : DType::kF32;
    scale.role = Role::kScale;
    Apply(split, extent, block, scale);
  }

  // Two e2m1 codes a byte, one e8m0 scale per fp4_block inputs.
  void Fp4Linear(const std::string& name, int64_t n_out, int64_t n_in) {
    Add(Family::kExperts, name + names::kWeight, DType::kI8, {n_out, n_in / 2});
    Add(Family::kExperts, name + names::kScale, DType::kF8E8M0,
        {n_out, n_in / c_.fp4_block})
        .role = Role::kScale;
  }

  void Hc(const std::string& name, int64_t n_mixes, int64_t n_scales) {
    Add(Family::kHc, name + names::kHcFn, DType::kF32,
        {n_mixes, c_.hc_mult * c_.dim});
    Add(Family::kHc, name + names::kHcBase, DType::kF32, {n_mixes});
    Add(Family::kHc, name + names::kHcScale, DType::kF32, {n_scales});
  }
  void HcHead() { Hc(names::kHcHead, c_.hc_mult, 1); }

  void Globals() {
    const Split vocab{Shard::kRows, c_.vocab_size};
    Bf16Linear(Family::kEmbed, names::kEmbed, c_.vocab_size, c_.dim, vocab);
    Bf16Linear(Family::kHead, names::kHead, c_.vocab_size, c_.dim, vocab);
    Add(Family::kNorm, names::kNorm, DType::kBF16, {c_.dim});
    HcHead();
  }

  void MtpInput() {
    Fp8Linear(Family::kMtpInput, names::kMtpEProj, c_.dim, c_.dim);
    Fp8Linear(Family::kMtpInput, names::kMtpHProj, c_.dim, c_.dim);
    Add(Family::kMtpInput, names::kMtpENorm, DType::kBF16, {c_.dim});
    Add(Family::kMtpInput, names::kMtpHNorm, DType::kBF16, {c_.dim});
  }

  void Layer() {
    const int64_t n_mixes = int64_t{2 + c_.hc_mult} * c_.hc_mult;
    Hc(names::kHcAttn, n_mixes, 3);
    Add(Family::kNorm, names::kAttnNorm, DType::kBF16, {c_.dim});
    Attention();
    Hc(names::kHcFfn, n_mixes, 3);
    Add(Family::kNorm, names::kFfnNorm, DType::kBF16, {c_.dim});
    Moe();
  }

  void Attention() {
    constexpr Family kAttn = Family::kAttention;
    const Split heads{Shard::kRows, c_.n_heads};
    const Split groups{Shard::kRows, c_.o_groups};
    const Split group_columns{Shard::kColumns, c_.o_groups};
    const int64_t mid = c_.o_groups * c_.o_lora_rank;
    Apply(heads, c_.n_heads, 1,
          Add(kAttn, names::kSink, DType::kF32, {c_.n_heads}));
    Fp8Linear(kAttn, names::kWqA, c_.q_lora_rank, c_.dim);
    Add(kAttn, names::kQNorm, DType::kBF16, {c_.q_lora_rank});
    Fp8Linear(kAttn, names::kWqB, c_.n_heads * c_.head_dim, c_.q_lora_rank,
              heads);
    Fp8Linear(kAttn, names::kWkv, c_.head_dim, c_.dim);
    Add(kAttn, names::kKvNorm, DType::kBF16, {c_.head_dim});
    Fp8Linear(kAttn, names::kWoA, mid, c_.n_heads * c_.head_dim / c_.o_groups,
              groups);
    Fp8Linear(kAttn, names::kWoB, c_.dim, mid, group_columns);
    const LayerKind kind = c_.kind(layer_);
    if (kind == LayerKind::kSliding) return;
    Compressor(Family::kCompressor, names::kCompressor, c_.head_dim);
    if (kind != LayerKind::kCsa) return;
    Fp8Linear(Family::kIndexer, names::kIndexerWqB,
              c_.index_n_heads * c_.index_head_dim, c_.q_lora_rank);
    Bf16Linear(Family::kIndexer, names::kIndexerWeights, c_.index_n_heads,
               c_.dim);
    Compressor(Family::kIndexer, names::kIndexerCompressor, c_.index_head_dim);
  }

  // Ratio 4 overlaps two blocks and is twice as wide.
  void Compressor(Family family, const std::string& name, int64_t dim) {
    const int64_t ratio = c_.compress_ratios[static_cast<size_t>(layer_)];
    const int64_t width = ratio == 4 ? 2 * dim : dim;
    Add(family, name + names::kCompressorApe, DType::kF32, {ratio, width});
    Bf16Linear(family, name + names::kCompressorWkv, width, c_.dim);
    Bf16Linear(family, name + names::kCompressorWgate, width, c_.dim);
    Add(family, name + names::kCompressorNorm, DType::kBF16, {dim});
  }

  void Moe() {
    Bf16Linear(Family::kGate, names::kGate, c_.n_routed_experts, c_.dim);
    if (c_.is_hash(layer_)) {
      Add(Family::kGate, names::kGateTable, DType::kI64,
          {c_.vocab_size, c_.n_activated_experts})
          .role = Role::kTable;
    } else {
      Add(Family::kGate, names::kGateBias, DType::kF32, {c_.n_routed_experts});
    }
    for (expert_ = 0; expert_ < c_.n_routed_experts; ++expert_) {
      Expert(Family::kExperts, names::ExpertPrefix(expert_),
             c_.expert_format == ExpertFormat::kFp4);
    }
    expert_ = -1;
    Expert(Family::kSharedExpert, names::kSharedExpert, /*fp4=*/false);
  }

  void Expert(Family family, const std::string& name, bool fp4) {
    const auto add = [&](const char* matrix, int64_t n_out, int64_t n_in) {
      if (fp4) {
        Fp4Linear(name + matrix, n_out, n_in);
      } else {
        Fp8Linear(family, name + matrix, n_out, n_in);
      }
    };
    add(names::kW1, c_.moe_inter_dim, c_.dim);
    add(names::kW2, c_.dim, c_.moe_inter_dim);
    add(names::kW3, c_.moe_inter_dim, c_.dim);
  }

  const ModelConfig& c_;
  std::vector<ExpectedTensor> rows_;
  std::string prefix_;
  int64_t layer_ = -1;
  int64_t expert_ = -1;
};

Status Unsliceable(const ExpectedTensor& tensor, std::string what,
                   std::string expected, std::string got) {
  return MakeError(kCkptUnsliceable, {tensor.name, std::move(what),
                                      std::move(expected), std::move(got)});
}

Status CheckPart(const ExpectedTensor& tensor, int parts, int part) {
  if (parts < 1 || part < 0 || part >= parts) {
    return Unsliceable(tensor, "no such rank",
                       "0 .. " + std::to_string(parts - 1),
                       std::to_string(part));
  }
  if (tensor.units % parts != 0) {
    return Unsliceable(tensor, "heads, groups, rows or experts do not divide",
                       "a divisor of " + std::to_string(tensor.units),
                       std::to_string(parts) + " ranks");
  }
  const int64_t elements = tensor.split_extent / parts;
  if (elements % tensor.block != 0) {
    return Unsliceable(
        tensor, "a rank's part cuts through a scale block",
        "a multiple of " + std::to_string(tensor.block),
        std::to_string(elements) + " with " + std::to_string(parts) + " ranks");
  }
  return absl::OkStatus();
}

// Glob with "*" only.
bool Matches(std::string_view pattern, std::string_view text) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == text;
  if (text.substr(0, star) != pattern.substr(0, star)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  for (size_t i = star; i <= text.size(); ++i) {
    if (Matches(rest, text.substr(i))) return true;
  }
  return false;
}

struct UnusedFamily {
  std::string_view name;
  std::string_view pattern;
};

constexpr UnusedFamily kUnusedFamilies[] = {
    {"DSpark draft model", "mtp.*.main_proj.*"},
    {"DSpark draft model", "mtp.*.main_norm.*"},
    {"DSpark draft model", "mtp.*.markov_head.*"},
    {"DSpark draft model", "mtp.*.confidence_head.*"},
    {"copy of the embedding in an MTP layer", "mtp.*emb*"},
    {"copy of the head in an MTP layer", "mtp.*head.weight"},
};

// N of "mtp.N.…".
std::optional<int64_t> MtpIndex(std::string_view name) {
  constexpr std::string_view kPrefix = "mtp.";
  if (name.substr(0, kPrefix.size()) != kPrefix) return std::nullopt;
  const char* const end = name.data() + name.size();
  int64_t index = 0;
  const auto [rest, error] =
      std::from_chars(name.data() + kPrefix.size(), end, index);
  if (error != std::errc() || rest == end || *rest != '.') return std::nullopt;
  return index;
}

}  // namespace

std::string_view FamilyName(Family family) {
  constexpr std::array<std::string_view, kFamilies> kNames = {
      "embed",     "head",          "norm",     "hc",
      "attention", "compressor",    "indexer",  "gate",
      "experts",   "shared_expert", "mtp_input"};
  return kNames[static_cast<size_t>(family)];
}

int64_t ExpectedTensor::parameters() const {
  if (role != Role::kWeight) return 0;
  return shape.n_elements() * (dtype == DType::kI8 ? 2 : 1);
}

std::vector<ExpectedTensor> ExpectedTensors(const ModelConfig& config) {
  return Table(config).Build();
}

StatusOr<TensorSlice> SliceOf(const ExpectedTensor& tensor, const Rank& rank) {
  TensorSlice slice;
  slice.shape = tensor.shape;
  switch (tensor.shard) {
    case Shard::kReplicate:
      return slice;
    case Shard::kExpert: {
      BELAY_RETURN_IF_ERROR(CheckPart(tensor, rank.ep, rank.ep_rank));
      const int64_t n_local = tensor.units / rank.ep;
      slice.present = tensor.expert / n_local == rank.ep_rank;
      return slice;
    }
    case Shard::kRows:
    case Shard::kColumns:
      break;
  }
  BELAY_RETURN_IF_ERROR(CheckPart(tensor, rank.tp, rank.tp_rank));
  if (rank.tp == 1) return slice;
  slice.dim = tensor.shard == Shard::kRows ? 0 : 1;
  // A scale has one element a block of the weight.
  const int64_t n = tensor.shape[slice.dim] / rank.tp;
  slice.begin = n * rank.tp_rank;
  slice.shape.set_dim(slice.dim, n);
  return slice;
}

Status CheckRank(const ModelConfig& config, const Rank& rank) {
  for (const ExpectedTensor& tensor : ExpectedTensors(config)) {
    BELAY_RETURN_IF_ERROR(SliceOf(tensor, rank).status());
  }
  return absl::OkStatus();
}

ParameterCounts CountParameters(const ModelConfig& config) {
  ParameterCounts counts;
  for (const ExpectedTensor& tensor : ExpectedTensors(config)) {
    const int64_t n = tensor.parameters();
    // A token is routed to n_activated_experts experts of each layer; all are
    // of one size, so count that many of the first.
    const bool active = tensor.family != Family::kEmbed &&
                        tensor.expert < config.n_activated_experts;
    const bool mtp = tensor.layer >= config.n_layers;
    (mtp ? counts.mtp : counts.total) += n;
    if (active) (mtp ? counts.mtp_active : counts.active) += n;
  }
  return counts;
}

std::optional<std::string_view> UnusedFamilyOf(const ModelConfig& config,
                                               std::string_view name) {
  for (const UnusedFamily& family : kUnusedFamilies) {
    if (Matches(family.pattern, name)) return family.name;
  }
  const std::optional<int64_t> index = MtpIndex(name);
  if (!index.has_value() || *index < config.n_mtp_layers) return std::nullopt;
  return config.draft_block > 0 ? "DSpark draft model"
                                : "MTP layer that the config does not count";
}

}  // namespace belay::spec
