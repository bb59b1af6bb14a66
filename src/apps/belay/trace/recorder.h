// SPDX-License-Identifier: Apache-2.0
// The test hooks at work: keeps what passes by, puts in what was asked for.
#ifndef BELAY_APPS_BELAY_TRACE_RECORDER_H_
#define BELAY_APPS_BELAY_TRACE_RECORDER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "model/hooks.h"
#include "ops/backend.h"
#include "spec/config.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/view.h"

namespace belay::trace {

// A named result on the host.
struct HostTensor {
  DType dtype = DType::kF32;
  Shape shape;
  std::vector<std::byte> bytes;

  static HostTensor Make(DType dtype, const Shape& shape);
  TensorView view() { return {bytes.data(), dtype, shape}; }
  template <typename T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
};

using Tensors = std::map<std::string, HostTensor>;

// What is forced in one pass. Empty views force nothing.
struct Forced {
  ConstTensorView experts;                  // [n_layers, n_tokens, k] i32
  std::vector<ConstTensorView> selections;  // [n_layers] of [n_tokens, w] i32
  ConstTensorView inject;                   // [n_tokens, hc, dim] act dtype
  int inject_layer = -1;                    // before this layer
};

// What one pass over `n_tokens` tokens showed, main layers only.
struct Stages {
  HostTensor hidden;          // [n_layers + 1, n_tokens, hc, dim] act dtype
  HostTensor experts;         // [n_layers, n_tokens, k] i32
  HostTensor expert_weights;  // [n_layers, n_tokens, k] f32
  HostTensor gate_margin;     // [n_layers, n_tokens] f32, inf in hash layers
  std::vector<HostTensor> selections;    // [n_layers] of [n_tokens, topk] i32
  std::vector<HostTensor> index_scores;  // [n_layers] of [n_tokens, n_rows] f32
  std::vector<HostTensor> index_margin;  // [n_layers] of [n_tokens] f32
};

class Recorder final : public model::Hooks {
 public:
  // `max_tokens` of a pass, `max_context` positions.
  static StatusOr<std::unique_ptr<Recorder>> Create(
      const spec::ModelConfig& config, ops::Backend& backend,
      int64_t max_tokens, int64_t max_context);

  // Starts the recording of a pass of `n_tokens` tokens that ends at position
  // `end_pos` (exclusive).
  void Begin(int64_t n_tokens, int64_t end_pos, const Forced& forced);
  Stages& stages() { return stages_; }
  // What went wrong while the pass ran, since it waits in between.
  const Status& status() const { return status_; }

  void Hidden(int layer, TensorView h) override;
  bool ForceExperts(int layer, TensorView experts) override;
  TensorView WantRouteScores(int layer) override;
  void Routed(int layer, ConstTensorView experts,
              ConstTensorView weights) override;
  TensorView WantIndexScores(int layer) override;
  void Selected(int layer, TensorView selection) override;

 private:
  Recorder(const spec::ModelConfig& config, ops::Backend& backend)
      : config_(config), backend_(backend) {}
  bool IsMain(int layer) const { return layer < config_.n_layers; }
  void Wait();
  // [n_tokens, ..] part of a stage tensor [n_layers.., n_tokens, ..].
  TensorView LayerPart(HostTensor& stage, int layer);

  const spec::ModelConfig& config_;
  ops::Backend& backend_;
  std::unique_ptr<ops::DeviceBuffer> route_scores_;
  std::unique_ptr<ops::DeviceBuffer> index_scores_;
  int64_t n_tokens_ = 0;
  int64_t n_index_rows_ = 0;
  Forced forced_;
  Stages stages_;
  Status status_;
};

}  // namespace belay::trace

#endif  // BELAY_APPS_BELAY_TRACE_RECORDER_H_
