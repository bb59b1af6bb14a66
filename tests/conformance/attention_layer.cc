// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/attention_layer.h"

#include <algorithm>

#include "tests/conformance/goldens.h"
#include "tests/conformance/row_rules.h"

namespace belay::conformance {
namespace {

// Pages of the slots are interleaved from the end, so that no operator can take
// the page number for the page's place in its sequence.
int32_t PageOf(int slot, int page, int n_slots, int max_pages) {
  return n_slots * max_pages - 1 - (page * n_slots + slot);
}

}  // namespace

StepBatch::StepBatch(Device& device, const std::vector<Piece>& pieces,
                     int n_slots, int max_pages) {
  std::vector<int32_t> positions, slots, table;
  for (const Piece& piece : pieces) {
    spans_.push_back({.slot = piece.slot,
                      .first_token = static_cast<int32_t>(positions.size()),
                      .n_tokens = piece.n_tokens,
                      .start_pos = piece.start_pos,
                      .adapter = 0});
    for (int32_t i = 0; i < piece.n_tokens; ++i) {
      positions.push_back(piece.start_pos + i);
      slots.push_back(piece.slot);
    }
  }
  for (int slot = 0; slot < n_slots; ++slot) {
    for (int page = 0; page < max_pages; ++page) {
      table.push_back(PageOf(slot, page, n_slots, max_pages));
    }
  }
  const auto n = static_cast<int64_t>(positions.size());
  view_.spans = spans_;
  view_.n_tokens = n;
  view_.token_ids = device.Zeros(DType::kI32, {n});
  view_.positions = device.PutInts({n}, positions);
  view_.slots = device.PutInts({n}, slots);
  view_.page_table = device.PutInts({n_slots, max_pages}, table);
}

AttentionLayer::Formats AttentionLayer::DefaultFormats(
    const ops::Backend& backend) {
  if (!backend.numerics().official()) {
    return {ops::RowKind::kF32, ops::RowKind::kF32};
  }
  return {backend.KvRows(), backend.IndexRows()};
}

AttentionLayer::AttentionLayer(Device* device, int layer, Formats formats)
    : device_(device),
      name_("layers." + std::to_string(layer) + ".attn."),
      dtype_(device->ops().numerics().act_dtype()) {
  const int ratios[] = {128, 4, 128, 4, 4, 0};
  ratio_ = ratios[layer];
  rope_.freq = device_->Put(
      Golden(ratio_ == 0 ? "rope.main.freq" : "rope.compress.freq"));
  wq_a_ = device_->Bind(WeightLinear(name_ + "wq_a"));
  wq_b_ = device_->Bind(WeightLinear(name_ + "wq_b"));
  wkv_ = device_->Bind(WeightLinear(name_ + "wkv"));
  wo_a_ = device_->Bind(WeightLinear(name_ + "wo_a", false));
  wo_b_ = device_->Bind(WeightLinear(name_ + "wo_b"));
  if (ratio_ != 0) compressor_ = BindCompressor(name_ + "compressor");
  if (ratio_ == 4) {
    index_compressor_ = BindCompressor(name_ + "indexer.compressor");
    index_wq_b_ = device_->Bind(WeightLinear(name_ + "indexer.wq_b"));
    index_weights_ =
        device_->Bind(WeightLinear(name_ + "indexer.weights_proj"));
  }
  MakeCaches(formats);
}

ops::CompressorWeights AttentionLayer::BindCompressor(const std::string& name) {
  return {.wkv = device_->Bind(WeightLinear(name + ".wkv")),
          .wgate = device_->Bind(WeightLinear(name + ".wgate")),
          .ape = device_->Bind(Weight(name + ".ape")),
          .norm = device_->Bind(Weight(name + ".norm.weight"))};
}

void AttentionLayer::Poison(const TensorView& view) {
  const std::vector<uint8_t> bytes(view.bytes(), 0xff);
  device_->ops().CopyIn(view, bytes.data());
}

ops::PagedCache AttentionLayer::MakePages(ops::RowFormat format) {
  ops::PagedCache cache;
  cache.format = format;
  cache.ratio = ratio_;
  cache.rows =
      device_->Zeros(DType::kU8, {kSlots * kPages, ops::kPageTokens / ratio_,
                                  static_cast<int64_t>(format.bytes())});
  Poison(cache.rows);
  return cache;
}

void AttentionLayer::MakeCaches(Formats formats) {
  const ops::Numerics& numerics = device_->ops().numerics();
  const ops::RowFormat kv = {.kind = formats.kv,
                             .head_dim = kHeadDim,
                             .rope_dim = kRope,
                             .group = numerics.kv_group};
  window_.format = kv;
  window_.rows = device_->Zeros(
      DType::kU8, {kSlots, kWindow + kDraft, static_cast<int64_t>(kv.bytes())});
  Poison(window_.rows);
  if (ratio_ == 0) return;
  compressed_ = MakePages(kv);
  const int pooled = ratio_ == 4 ? 8 : ratio_;
  const int64_t width = ratio_ == 4 ? 2 * kHeadDim : kHeadDim;
  const Shape state = {kSlots, pooled + kDraft, 2, width};
  state_.raw = device_->Zeros(DType::kF32, state);
  Poison(state_.raw);
  if (ratio_ != 4) return;
  index_keys_ = MakePages({.kind = formats.index,
                           .head_dim = kHeadDim,
                           .rope_dim = 0,
                           .group = numerics.index_group});
  index_state_.raw = device_->Zeros(DType::kF32, state);
  Poison(index_state_.raw);
}

TensorView AttentionLayer::Input(const std::vector<Piece>& pieces) {
  const std::vector<float> all = GoldenFloats("module.x");
  const auto n_rows = static_cast<int32_t>(all.size() / kDim);
  std::vector<float> x;
  for (const Piece& piece : pieces) {
    for (int32_t i = 0; i < piece.n_tokens; ++i) {
      const int32_t position = piece.start_pos + i;
      const int32_t row = (piece.other ? n_rows - 1 - position : position);
      const auto first = all.begin() + (row % n_rows) * kDim;
      x.insert(x.end(), first, first + kDim);
    }
  }
  const auto n = static_cast<int64_t>(x.size()) / kDim;
  return device_->Put(dtype_, {n, kDim}, x);
}

void AttentionLayer::Project(const ops::BatchView& batch, const TensorView& x) {
  const int64_t n = batch.n_tokens;
  qr_ = device_->Zeros(dtype_, {n, kLora});
  q_ = device_->Zeros(dtype_, {n, kHeads, kHeadDim});
  device_->ops().QueryProject(
      {.x = x,
       .wq_a = wq_a_,
       .q_norm = device_->Bind(Weight(name_ + "q_norm.weight")),
       .wq_b = wq_b_,
       .rope = rope_,
       .positions = batch.positions,
       .qr = qr_,
       .q = q_});
  fresh_ = device_->Zeros(DType::kU8,
                          {n, static_cast<int64_t>(window_.format.bytes())});
  device_->ops().KvProject(
      {.x = x,
       .wkv = wkv_,
       .kv_norm = device_->Bind(Weight(name_ + "kv_norm.weight")),
       .rope = rope_,
       .positions = batch.positions,
       .format = window_.format,
       .fresh = fresh_});
}

void AttentionLayer::Compress(const ops::BatchView& batch,
                              const TensorView& x) {
  ops::KvCompressParams p = {.batch = batch,
                             .x = x,
                             .weights = compressor_,
                             .overlap = ratio_ == 4,
                             .rope = rope_,
                             .state = state_,
                             .cache = compressed_,
                             .raw = {}};
  p.raw = device_->Zeros(DType::kF32, {batch.n_tokens, 2, state_.raw.dim(3)});
  device_->ops().KvCompress(p);
  if (ratio_ != 4) return;
  p.weights = index_compressor_;
  p.hadamard = true;
  p.state = index_state_;
  p.cache = index_keys_;
  device_->ops().KvCompress(p);
}

void AttentionLayer::Select(const ops::BatchView& batch, const TensorView& x) {
  int64_t n_rows = 1;
  for (const ops::Span& span : batch.spans) {
    n_rows = std::max<int64_t>(n_rows, (span.start_pos + span.n_tokens) / 4);
  }
  selection_ = device_->Zeros(DType::kI32, {batch.n_tokens, kTopk});
  scores_ = device_->Zeros(DType::kF32, {batch.n_tokens, n_rows});
  device_->ops().IndexerSelect({.batch = batch,
                                .x = x,
                                .qr = qr_,
                                .wq_b = index_wq_b_,
                                .weights_proj = index_weights_,
                                .n_index_heads = kIndexHeads,
                                .index_dim = kHeadDim,
                                .rope = rope_,
                                .keys = index_keys_,
                                .selection = selection_,
                                .scores = scores_});
}

std::vector<float> AttentionLayer::Attend(const ops::BatchView& batch) {
  const int64_t n = batch.n_tokens;
  const TensorView o = device_->Zeros(dtype_, q_.shape());
  ops::SparseAttentionParams p = {
      .batch = batch,
      .q = q_,
      .sink = device_->Bind(Weight(name_ + "attn_sink")),
      .fresh = fresh_,
      .window = window_,
      .window_size = kWindow,
      .compressed = {},
      .selection = {},
      .o = o};
  if (ratio_ != 0) p.compressed = compressed_;
  if (ratio_ == 4) p.selection = selection_;
  device_->ops().SparseAttention(p);
  device_->ops().RopeTail(
      {.positions = batch.positions, .rope = rope_, .inverse = true, .x = o});
  device_->ops().KvStore({.batch = batch, .fresh = fresh_, .window = window_});
  const TensorView y = device_->Zeros(dtype_, {n, kDim});
  device_->ops().AttentionOut(
      {.o = o.reshaped({n, kHeads * kHeadDim}),
       .wo_a = wo_a_,
       .n_groups = kGroups,
       .wo_b = wo_b_,
       .mid = device_->Zeros(dtype_, {n, wo_a_->n_out()}),
       .y = y});
  return device_->Get(y);
}

std::vector<float> AttentionLayer::Run(const std::vector<Piece>& pieces) {
  const StepBatch batch(*device_, pieces, kSlots, kPages);
  const TensorView x = Input(pieces);
  Project(batch.view(), x);
  if (ratio_ != 0) Compress(batch.view(), x);
  if (ratio_ == 4) Select(batch.view(), x);
  return Attend(batch.view());
}

std::vector<float> AttentionLayer::PagedRows(const ops::PagedCache& cache,
                                             int32_t slot, int64_t n_rows) {
  const std::vector<uint8_t> bytes = device_->GetBytes(cache.rows);
  const int64_t rows_per_page = cache.rows.dim(1);
  std::vector<float> values;
  for (int64_t j = 0; j < n_rows; ++j) {
    const int32_t page =
        PageOf(slot, static_cast<int>(j / rows_per_page), kSlots, kPages);
    const int64_t row = page * rows_per_page + j % rows_per_page;
    const auto decoded = RowValues(
        cache.format, &bytes[static_cast<size_t>(row) * cache.format.bytes()]);
    values.insert(values.end(), decoded.begin(), decoded.end());
  }
  return values;
}

std::vector<Piece> CutUp(const Piece& piece, int32_t n) {
  std::vector<Piece> pieces;
  for (int32_t done = 0; done < piece.n_tokens; done += n) {
    Piece part = piece;
    part.start_pos += done;
    part.n_tokens = std::min(n, piece.n_tokens - done);
    pieces.push_back(part);
  }
  return pieces;
}

}  // namespace belay::conformance
