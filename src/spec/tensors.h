// SPDX-License-Identifier: Apache-2.0
// The table of tensors that a checkpoint of a model holds: name, dtype, shape,
// what it belongs to, and which part of it a rank has.
// Source of names and shapes: DeepSeek-V4 inference/model.py and convert.py,
// checked against the published totals (69,187 tensors and 159,609,485,896
// bytes for Flash, 145,116 tensors for Pro).
#ifndef BELAY_SPEC_TENSORS_H_
#define BELAY_SPEC_TENSORS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "spec/config.h"
#include "spec/rank.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace belay::spec {

enum class Family : uint8_t {
  kEmbed,
  kHead,
  kNorm,  // of layers and of the head; norms inside attention count there
  kHc,    // hyper-connections
  kAttention,
  kCompressor,
  kIndexer,
  kGate,
  kExperts,
  kSharedExpert,
  kMtpInput,  // e_proj, h_proj and their norms
};
inline constexpr int kFamilies = static_cast<int>(Family::kMtpInput) + 1;
std::string_view FamilyName(Family family);  // "embed", "head", ...

// What the numbers of a tensor are.
enum class Role : uint8_t {
  kWeight,  // counts as parameters
  kScale,   // of the weight beside it
  kTable,   // expert ids of a hash layer
};

// How tensors are split over ranks. The indexer, compressors, gate, norms,
// hyper-connections and the shared expert are on every rank: splitting the
// indexer's heads would sum bf16 partial scores in another order, and so choose
// other rows than a single rank does.
enum class Shard : uint8_t {
  kReplicate,
  kRows,     // heads, output groups or vocabulary rows over tp
  kColumns,  // the output projection's input over tp
  kExpert,   // whole experts over ep
};

struct ExpectedTensor {
  std::string name;
  // Accepted, the usual one first. At most two: E8M0 and F32 scales.
  DType dtype = DType::kF32;
  std::optional<DType> also;
  Shape shape;
  Family family = Family::kNorm;
  Role role = Role::kWeight;
  int64_t layer = -1;   // n_layers + i for MTP layer i; -1 for globals
  int64_t expert = -1;  // routed experts only

  Shard shard = Shard::kReplicate;
  int64_t units = 0;  // heads, groups or rows that a rank gets whole
  // Elements of the split dimension of the weight that share a scale, 1 for
  // tensors without; a rank's part is a multiple.
  int64_t block = 1;
  // Elements of the split dimension of the weight (this tensor's own extent
  // unless it is a scale).
  int64_t split_extent = 0;

  bool accepts(DType d) const { return d == dtype || (also && d == *also); }
  uint64_t bytes() const {
    return static_cast<uint64_t>(shape.n_elements()) * DtypeBytes(dtype);
  }
  // Numbers that the tensor stands for: two a byte in packed FP4; 0 for scales
  // and tables.
  int64_t parameters() const;
};

// Every tensor of the model, in the order of the forward pass, MTP layers last.
// `config` must have passed CheckConfig.
std::vector<ExpectedTensor> ExpectedTensors(const ModelConfig& config);

// The part of a tensor on one rank.
struct TensorSlice {
  bool present = true;  // false: an expert of another rank
  int dim = -1;         // the split dimension; -1 = the whole tensor
  int64_t begin = 0;    // first index of `dim`
  Shape shape;          // of the part
};

// CKPT-015 with the reason when the rank count does not divide the tensor or
// would cut through a scale block.
StatusOr<TensorSlice> SliceOf(const ExpectedTensor& tensor, const Rank& rank);

// Whether `rank` can hold its part of every tensor; the first refusal.
Status CheckRank(const ModelConfig& config, const Rank& rank);

// Parameters of the model. Weights only: no scales, no tid2eid tables; packed
// FP4 counts its values.
struct ParameterCounts {
  int64_t total = 0;  // without MTP
  // What one token is multiplied with, without MTP: everything but the
  // embedding table (a token reads one row) and the experts it is not routed
  // to. The published "active" figures come out by this rule.
  int64_t active = 0;
  int64_t mtp = 0;         // all MTP layers
  int64_t mtp_active = 0;  // of these, what one token is multiplied with
};
ParameterCounts CountParameters(const ModelConfig& config);

// Tensors that releases carry and that the forward pass does not use, by name.
// "mtp.*emb*" and "mtp.*head.weight" are dropped by the official convert.py.
// DSpark draft models (V4-Flash-DSpark, V4-Flash-0731, V4-Pro-0813) keep their
// stages under mtp.N: blocks as a sliding layer's, main_proj and main_norm in
// the first, norm, hc_head, markov_head and confidence_head in the last stage.
// Not first-hand: names and counts (1568 + 1565 + 1572 tensors for Flash-0731)
// are from public indexes of the checkpoints, seen through several readers of
// them; that they add up to the release's 72,317 tensors supports them.
//
// Returns what the tensor is, or nothing for an unknown name.
std::optional<std::string_view> UnusedFamilyOf(const ModelConfig& config,
                                               std::string_view name);

}  // namespace belay::spec

#endif  // BELAY_SPEC_TENSORS_H_
