// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf/convert.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error_ids.h"
#include "base/float_formats.h"
#include "checkpoint/gguf/model.h"
#include "checkpoint/gguf/names.h"
#include "spec/names.h"

namespace belay::checkpoint::gguf {
namespace {

using spec::ExpectedTensor;

// Rows are encoded in pieces of about this size.
constexpr size_t kPieceBytes = size_t{4} << 20;

// One official tensor with its scales.
struct Source {
  ConstTensorView weight;
  ConstTensorView scale;  // empty for BF16, F32 and I64
  int64_t block_n = 1;
  int64_t block_k = 1;

  int64_t n_rows() const {
    return weight.shape().rank() == 1 ? 1 : weight.dim(0);
  }
  int64_t n_cols() const {
    if (weight.shape().rank() == 1) return weight.dim(0);
    return weight.dtype() == DType::kI8 ? 2 * weight.dim(1) : weight.dim(1);
  }
};

// A tensor of the file: its rows are those of all sources one after another,
// or, side by side, their rows joined.
struct OutTensor {
  std::string name;
  Shape shape;
  uint32_t type = 0;
  std::vector<Source> sources;
  bool side_by_side = false;

  int64_t n_rows() const {
    return shape.rank() == 1 ? 1 : shape.n_elements() / n_cols();
  }
  int64_t n_cols() const { return shape[shape.rank() - 1]; }
};

float ScaleAt(const Source& s, int64_t row, int64_t block) {
  const int64_t at = row / s.block_n;
  return s.scale.dtype() == DType::kF32
             ? s.scale.row<float>(at)[block]
             : F32FromE8m0(s.scale.row<uint8_t>(at)[block]);
}

float ElementAt(const Source& s, int64_t row, int64_t col) {
  switch (s.weight.dtype()) {
    case DType::kF8E4M3:
      return F32FromE4m3(s.weight.row<uint8_t>(row)[col]);
    case DType::kI8: {
      const uint8_t byte = s.weight.row<uint8_t>(row)[col / 2];
      return F32FromE2m1(col % 2 == 0 ? byte & 15u : byte >> 4);
    }
    case DType::kBF16:
      return F32FromBf16(s.weight.row<uint16_t>(row)[col]);
    default:
      return s.weight.row<float>(row)[col];
  }
}

// Row `row` as float32: exact but for F32 scales, which round once.
void ReadRow(const Source& s, int64_t row, float* out) {
  const Source flat = {.weight = s.weight.shape().rank() == 1
                                     ? s.weight.reshaped({1, s.weight.dim(0)})
                                     : s.weight,
                       .scale = s.scale,
                       .block_n = s.block_n,
                       .block_k = s.block_k};
  for (int64_t col = 0; col < s.n_cols(); ++col) {
    out[col] = ElementAt(flat, row, col);
    if (!s.scale.empty()) out[col] *= ScaleAt(s, row, col / s.block_k);
  }
}

// The same codes and scales: value j and j + 16 share a byte, not neighbours.
void RowToMxfp4(const Source& s, int64_t row, std::byte* out) {
  const uint8_t* codes = s.weight.row<uint8_t>(row);
  const uint8_t* scales = s.scale.row<uint8_t>(row);
  const auto code = [&](int64_t i) {
    return static_cast<uint8_t>(i % 2 == 0 ? codes[i / 2] & 15u
                                           : codes[i / 2] >> 4);
  };
  for (int64_t begin = 0; begin < s.n_cols(); begin += 32) {
    *out++ = static_cast<std::byte>(scales[begin / 32]);
    for (int64_t j = begin; j < begin + 16; ++j) {
      *out++ = static_cast<std::byte>(code(j) | code(j + 16) << 4);
    }
  }
}

void RowToI32(const Source& s, int64_t row, std::byte* out) {
  const int64_t* ids = s.weight.row<int64_t>(row);
  for (int64_t i = 0; i < s.n_cols(); ++i) {
    const auto id = static_cast<int32_t>(ids[i]);
    std::memcpy(out + 4 * i, &id, sizeof(id));
  }
}

uint64_t RowBytes(const OutTensor& t) {
  return FindType(t.type)->bytes(static_cast<uint64_t>(t.n_cols()));
}

void EncodeRow(const OutTensor& t, int64_t row, std::vector<float>& values,
               std::byte* out) {
  const int64_t rows_each = t.side_by_side ? 0 : t.sources.front().n_rows();
  const Source& s =
      t.sources[t.side_by_side ? 0 : static_cast<size_t>(row / rows_each)];
  const int64_t at = t.side_by_side ? row : row % rows_each;
  if (t.type == kTypeMxfp4) return RowToMxfp4(s, at, out);
  if (t.type == kTypeI32) return RowToI32(s, at, out);
  if (t.type == kTypeBf16) {
    std::memcpy(out, s.weight.row<std::byte>(at), RowBytes(t));
    return;
  }
  values.resize(static_cast<size_t>(t.n_cols()));
  ReadRow(s, at, values.data());
  if (t.side_by_side) ReadRow(t.sources[1], at, values.data() + s.n_cols());
  if (t.type == kTypeQ8_0) {
    EncodeQ8_0(values.data(), t.n_cols(), out);
  } else {
    std::memcpy(out, values.data(), RowBytes(t));
  }
}

class Converter {
 public:
  Converter(const Checkpoint& checkpoint, const ConvertOptions& options)
      : checkpoint_(checkpoint),
        options_(options),
        c_(checkpoint.config()),
        n_blocks_(c_.n_layers + (options.mtp ? c_.n_mtp_layers : 0)) {}

  Status List() {
    std::unordered_map<std::string, size_t> by_name;
    for (const ExpectedTensor& t : checkpoint_.tensors()) {
      if (t.role == spec::Role::kScale) continue;
      if (!options_.mtp && t.layer >= c_.n_layers) continue;
      BELAY_ASSIGN_OR_RETURN(Source source, SourceOf(t));
      const Place place = PlacesOf(c_, t.name).front();
      const auto [it, is_new] = by_name.emplace(place.name, tensors_.size());
      if (is_new) tensors_.push_back(NewTensor(t, place, source));
      tensors_[it->second].sources.push_back(source);
    }
    for (const OutTensor& t : tensors_) {
      total_ += RowBytes(t) * static_cast<uint64_t>(t.n_rows());
    }
    return absl::OkStatus();
  }

  HeaderBuilder Header() const {
    HeaderBuilder h;
    AddConfig(h);
    if (options_.add_metadata) options_.add_metadata(h);
    for (const OutTensor& t : tensors_) h.AddTensor(t.name, t.shape, t.type);
    return h;
  }

  // Encodes everything in the order of the file and hands it on in pieces:
  // take(tensor, first byte within it, bytes).
  template <typename Fn>
  Status ForEachPiece(const Fn& take) const {
    std::vector<float> values;
    std::vector<std::byte> piece;
    uint64_t done = 0;
    for (const OutTensor& t : tensors_) {
      const auto row_bytes = static_cast<size_t>(RowBytes(t));
      const auto rows_at_once =
          static_cast<int64_t>(std::max<size_t>(1, kPieceBytes / row_bytes));
      for (int64_t row = 0; row < t.n_rows(); row += rows_at_once) {
        const int64_t n = std::min(rows_at_once, t.n_rows() - row);
        piece.resize(static_cast<size_t>(n) * row_bytes);
        for (int64_t i = 0; i < n; ++i) {
          EncodeRow(t, row + i, values,
                    piece.data() + static_cast<size_t>(i) * row_bytes);
        }
        BELAY_RETURN_IF_ERROR(
            take(t, static_cast<size_t>(row) * row_bytes, piece));
        done += piece.size();
        if (!options_.progress) continue;
        BELAY_RETURN_IF_ERROR(options_.progress(done, total_));
      }
    }
    return absl::OkStatus();
  }

  Converted summary() const {
    return {static_cast<int64_t>(tensors_.size()), total_};
  }

 private:
  StatusOr<Source> SourceOf(const ExpectedTensor& t) const {
    Source source;
    BELAY_ASSIGN_OR_RETURN(source.weight, checkpoint_.Get(t.name));
    const bool fp4 = t.dtype == DType::kI8;
    if (!fp4 && t.dtype != DType::kF8E4M3) return source;
    const size_t stem = t.name.size() - std::strlen(spec::names::kWeight);
    BELAY_ASSIGN_OR_RETURN(
        source.scale,
        checkpoint_.Get(t.name.substr(0, stem) + spec::names::kScale));
    source.block_n = fp4 ? 1 : c_.fp8_block;
    source.block_k = fp4 ? c_.fp4_block : c_.fp8_block;
    return source;
  }

  uint32_t TypeOf(const ExpectedTensor& t) const {
    switch (t.dtype) {
      case DType::kI8:
        return options_.experts == ExpertType::kMxfp4 && c_.fp4_block == 32
                   ? kTypeMxfp4
                   : kTypeQ8_0;
      case DType::kF8E4M3:
        return kTypeQ8_0;
      case DType::kI64:
        return kTypeI32;
      case DType::kBF16:
        return t.shape.rank() == 2 ? kTypeBf16 : kTypeF32;
      default:
        return kTypeF32;
    }
  }

  OutTensor NewTensor(const ExpectedTensor& t, const Place& place,
                      const Source& source) const {
    OutTensor out;
    out.name = place.name;
    out.type = TypeOf(t);
    out.side_by_side = place.part == Part::kLeftHalf;
    if (place.part == Part::kExpert) {
      out.shape = {c_.n_routed_experts, source.n_rows(), source.n_cols()};
    } else if (out.side_by_side) {
      out.shape = {source.n_rows(), 2 * source.n_cols()};
    } else {
      out.shape = source.weight.shape();
    }
    return out;
  }

  static void U32(HeaderBuilder& h, const char* key, int64_t value) {
    h.AddU32(std::string("deepseek4.") + key, static_cast<uint32_t>(value));
  }
  static void F32(HeaderBuilder& h, const char* key, double value) {
    h.AddF32(std::string("deepseek4.") + key, static_cast<float>(value));
  }

  void AddConfig(HeaderBuilder& h) const {
    h.AddText("general.architecture", "deepseek4");
    h.AddText("general.type", "model");
    // 38: MXFP4 experts; 7: mostly Q8_0.
    h.AddU32("general.file_type",
             options_.experts == ExpertType::kMxfp4 ? 38 : 7);
    h.AddU32("general.quantization_version", 2);
    U32(h, "block_count", n_blocks_);
    U32(h, "context_length", c_.max_positions);
    U32(h, "embedding_length", c_.dim);
    U32(h, "vocab_size", c_.vocab_size);
    AddAttention(h);
    AddExperts(h);
    U32(h, "hyper_connection.count", c_.hc_mult);
    U32(h, "hyper_connection.sinkhorn_iterations", c_.hc_sinkhorn_iters);
    F32(h, "hyper_connection.epsilon", c_.hc_eps);
    if (options_.mtp) U32(h, "nextn_predict_layers", c_.n_mtp_layers);
  }

  void AddAttention(HeaderBuilder& h) const {
    U32(h, "attention.head_count", c_.n_heads);
    U32(h, "attention.head_count_kv", 1);
    U32(h, "attention.key_length", c_.head_dim);
    U32(h, "attention.value_length", c_.head_dim);
    F32(h, "attention.layer_norm_rms_epsilon", c_.norm_eps);
    U32(h, "attention.q_lora_rank", c_.q_lora_rank);
    U32(h, "attention.output_group_count", c_.o_groups);
    U32(h, "attention.output_lora_rank", c_.o_lora_rank);
    U32(h, "attention.sliding_window", c_.window_size);
    std::vector<int32_t> ratios(c_.compress_ratios.begin(),
                                c_.compress_ratios.end());
    h.AddI32s("deepseek4.attention.compress_ratios", ratios);
    F32(h, "attention.compress_rope_freq_base", c_.compress_rope_theta);
    U32(h, "attention.indexer.head_count", c_.index_n_heads);
    U32(h, "attention.indexer.key_length", c_.index_head_dim);
    U32(h, "attention.indexer.top_k", c_.index_topk);
    U32(h, "rope.dimension_count", c_.rope_head_dim);
    F32(h, "rope.freq_base", c_.rope_theta);
    h.AddText("deepseek4.rope.scaling.type", "yarn");
    F32(h, "rope.scaling.factor", c_.rope_factor);
    U32(h, "rope.scaling.original_context_length", c_.original_seq_len);
    F32(h, "rope.scaling.yarn_beta_fast", c_.beta_fast);
    F32(h, "rope.scaling.yarn_beta_slow", c_.beta_slow);
  }

  void AddExperts(HeaderBuilder& h) const {
    U32(h, "expert_count", c_.n_routed_experts);
    U32(h, "expert_used_count", c_.n_activated_experts);
    U32(h, "expert_shared_count", c_.n_shared_experts);
    U32(h, "expert_feed_forward_length", c_.moe_inter_dim);
    F32(h, "expert_weights_scale", c_.route_scale);
    h.AddBool("deepseek4.expert_weights_norm", true);
    U32(h, "expert_gating_func", 4);  // sqrt(softplus(x))
    U32(h, "hash_layer_count", c_.n_hash_layers);
    const std::vector<float> limits(static_cast<size_t>(n_blocks_),
                                    c_.swiglu_limit);
    h.AddF32s("deepseek4.swiglu_clamp_exp", limits);
    h.AddF32s("deepseek4.swiglu_clamp_shexp", limits);
  }

  const Checkpoint& checkpoint_;
  const ConvertOptions& options_;
  const spec::ModelConfig& c_;
  int64_t n_blocks_;
  std::vector<OutTensor> tensors_;
  uint64_t total_ = 0;
};

}  // namespace

StatusOr<Converted> ConvertToGguf(const Checkpoint& checkpoint,
                                  const ConvertOptions& options) {
  Converter converter(checkpoint, options);
  BELAY_RETURN_IF_ERROR(converter.List());
  BELAY_ASSIGN_OR_RETURN(const auto writer,
                         GgufWriter::Create(options.out, converter.Header()));
  BELAY_RETURN_IF_ERROR(converter.ForEachPiece(
      [&](const OutTensor&, size_t, std::span<const std::byte> piece) {
        return writer->Append(piece);
      }));
  BELAY_RETURN_IF_ERROR(writer->Finish());
  return converter.summary();
}

Status VerifyGguf(const Checkpoint& checkpoint, const ConvertOptions& options) {
  BELAY_ASSIGN_OR_RETURN(const auto model,
                         GgufModel::Open(options.out, /*strict=*/true));
  spec::ModelConfig wanted = checkpoint.config();
  if (!options.mtp) {
    wanted.n_mtp_layers = 0;
    wanted.compress_ratios.resize(static_cast<size_t>(wanted.n_layers));
  }
  // The file does not say how the source held its experts, nor the words of
  // its chat encoding.
  wanted.expert_format = model->config().expert_format;
  wanted.encoding_revision = model->config().encoding_revision;
  if (!(wanted == model->config())) {
    return MakeError(
        kConfInconsistent,
        {options.out, "", "the config that was converted", "another"});
  }
  Converter converter(checkpoint, options);
  BELAY_RETURN_IF_ERROR(converter.List());
  return converter.ForEachPiece(
      [&](const OutTensor& t, size_t begin, std::span<const std::byte> piece) {
        const TensorInfo* const info = model->files().tensors.at(t.name);
        if (info->type == t.type && info->shape == t.shape &&
            std::memcmp(info->data + begin, piece.data(), piece.size()) == 0) {
          return absl::OkStatus();
        }
        return MakeError(kCkptBadValue, {options.out + ": " + t.name, "",
                                         "what was written", "other bytes"});
      });
}

}  // namespace belay::checkpoint::gguf
