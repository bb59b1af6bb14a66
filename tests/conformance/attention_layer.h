// SPDX-License-Identifier: Apache-2.0
// The attention sublayer of a tiny_fp4 layer, made of the operators in the
// order of the model, with its caches: for module vectors and for the promise
// that batches and chunks change nothing.
#ifndef BELAY_TESTS_CONFORMANCE_ATTENTION_LAYER_H_
#define BELAY_TESTS_CONFORMANCE_ATTENTION_LAYER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/device.h"

namespace belay::conformance {

// A piece of a sequence. Token values come from module.x: row = position, or
// from its end when `other` (another sequence).
struct Piece {
  int32_t slot = 0;
  int32_t start_pos = 0;
  int32_t n_tokens = 0;
  bool other = false;
};

// Spans, and the index data of a step on the device.
class StepBatch {
 public:
  StepBatch(Device& device, const std::vector<Piece>& pieces, int n_slots,
            int max_pages);
  const ops::BatchView& view() const { return view_; }

 private:
  std::vector<ops::Span> spans_;
  ops::BatchView view_;
};

class AttentionLayer {
 public:
  static constexpr int kDim = 256;
  static constexpr int kHeads = 8;
  static constexpr int kHeadDim = 128;
  static constexpr int kRope = 64;
  static constexpr int kLora = 128;
  static constexpr int kGroups = 2;
  static constexpr int kWindow = 16;
  static constexpr int kIndexHeads = 4;
  static constexpr int kTopk = 8;
  static constexpr int kDraft = 3;  // tokens that can be taken back
  static constexpr int kSlots = 3;
  static constexpr int kPages = 3;  // of a slot

  // Row formats of the KV and the indexer caches.
  struct Formats {
    ops::RowKind kv;
    ops::RowKind index;
  };
  // kFp8Rope and kFp4 in official numerics, kF32 in exact ones.
  static Formats DefaultFormats(const ops::Backend& backend);

  // Caches begin filled with bytes 0xff, NaN in every format: what an operator
  // must not read shows.
  AttentionLayer(Device* device, int layer, Formats formats);

  // One step: y [sum of n_tokens, kDim] in the order of the pieces.
  std::vector<float> Run(const std::vector<Piece>& pieces);

  int ratio() const { return ratio_; }
  // Of the last step.
  std::vector<float> qr() { return device_->Get(qr_); }
  std::vector<int32_t> selection() { return device_->GetInts(selection_); }
  std::vector<float> scores() { return device_->Get(scores_); }
  // Rows 0 .. n_rows - 1 of a slot, decoded.
  std::vector<float> CompressedRows(int32_t slot, int64_t n_rows) {
    return PagedRows(compressed_, slot, n_rows);
  }
  std::vector<float> IndexRows(int32_t slot, int64_t n_rows) {
    return PagedRows(index_keys_, slot, n_rows);
  }

 private:
  ops::CompressorWeights BindCompressor(const std::string& name);
  void Poison(const TensorView& view);
  ops::PagedCache MakePages(ops::RowFormat format);
  void MakeCaches(Formats formats);
  TensorView Input(const std::vector<Piece>& pieces);
  void Project(const ops::BatchView& batch, const TensorView& x);
  void Compress(const ops::BatchView& batch, const TensorView& x);
  void Select(const ops::BatchView& batch, const TensorView& x);
  std::vector<float> Attend(const ops::BatchView& batch);
  std::vector<float> PagedRows(const ops::PagedCache& cache, int32_t slot,
                               int64_t n_rows);

  Device* device_;
  std::string name_;
  int ratio_ = 0;
  DType dtype_;
  ops::RopeTable rope_;
  const ops::BoundLinear *wq_a_, *wq_b_, *wkv_, *wo_a_, *wo_b_;
  const ops::BoundLinear *index_wq_b_ = nullptr, *index_weights_ = nullptr;
  ops::CompressorWeights compressor_, index_compressor_;
  ops::WindowCache window_;
  ops::PagedCache compressed_, index_keys_;
  ops::CompressorState state_, index_state_;
  TensorView qr_, q_, fresh_, selection_, scores_;
};

// Every piece of `pieces` cut to at most `n` tokens, as steps of one piece.
std::vector<Piece> CutUp(const Piece& piece, int32_t n);

}  // namespace belay::conformance

#endif  // BELAY_TESTS_CONFORMANCE_ATTENTION_LAYER_H_
