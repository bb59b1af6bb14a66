// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/trace/recorder.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <utility>

namespace belay::trace {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// By how much the last chosen score beats the first one that was not; infinity
// when nothing had to be left out.
float Margin(const float* scores, int64_t n, int64_t k) {
  std::vector<float> sorted;
  for (int64_t i = 0; i < n; ++i) {
    if (scores[i] > -kInfinity) sorted.push_back(scores[i]);
  }
  if (static_cast<int64_t>(sorted.size()) <= k) return kInfinity;
  std::partial_sort(sorted.begin(), sorted.begin() + k + 1, sorted.end(),
                    std::greater<>());
  return sorted[static_cast<size_t>(k) - 1] - sorted[static_cast<size_t>(k)];
}

}  // namespace

HostTensor HostTensor::Make(DType dtype, const Shape& shape) {
  HostTensor tensor{dtype, shape, {}};
  tensor.bytes.resize(static_cast<size_t>(shape.n_elements()) *
                      DtypeBytes(dtype));
  return tensor;
}

StatusOr<std::unique_ptr<Recorder>> Recorder::Create(
    const spec::ModelConfig& config, ops::Backend& backend, int64_t max_tokens,
    int64_t max_context) {
  std::unique_ptr<Recorder> recorder(new Recorder(config, backend));
  const auto floats = [](int64_t rows, int64_t n) {
    return static_cast<size_t>(rows * n) * sizeof(float);
  };
  BELAY_ASSIGN_OR_RETURN(
      recorder->route_scores_,
      backend.Allocate(floats(max_tokens, config.n_routed_experts)));
  BELAY_ASSIGN_OR_RETURN(
      recorder->index_scores_,
      backend.Allocate(floats(max_tokens, max_context / 4 + 1)));
  return recorder;
}

void Recorder::Begin(int64_t n_tokens, int64_t end_pos, const Forced& forced) {
  n_tokens_ = n_tokens;
  n_index_rows_ = end_pos / 4;
  forced_ = forced;
  const int64_t layers = config_.n_layers;
  const int64_t k = config_.n_activated_experts;
  const DType act = backend_.numerics().act_dtype();
  stages_ = Stages{};
  status_ = absl::OkStatus();
  stages_.hidden = HostTensor::Make(
      act, {layers + 1, n_tokens, config_.hc_mult, config_.dim});
  stages_.experts = HostTensor::Make(DType::kI32, {layers, n_tokens, k});
  stages_.expert_weights = HostTensor::Make(DType::kF32, {layers, n_tokens, k});
  stages_.gate_margin = HostTensor::Make(DType::kF32, {layers, n_tokens});
  const auto n = static_cast<size_t>(layers);
  stages_.selections.resize(n);
  stages_.index_scores.resize(n);
  stages_.index_margin.resize(n);
}

TensorView Recorder::LayerPart(HostTensor& stage, int layer) {
  const TensorView all = stage.view();
  Shape shape;
  for (int i = 1; i < all.shape().rank(); ++i) shape.push_back(all.dim(i));
  return TensorView(all.row<std::byte>(layer), all.dtype(), shape);
}

void Recorder::Hidden(int layer, TensorView h) {
  if (layer == forced_.inject_layer) {
    backend_.CopyIn(h, forced_.inject.data());
  }
  backend_.CopyOut(LayerPart(stages_.hidden, layer).data(), h);
}

bool Recorder::ForceExperts(int layer, TensorView experts) {
  if (!IsMain(layer) || forced_.experts.empty()) return false;
  backend_.CopyIn(experts, forced_.experts.row<std::byte>(layer));
  return true;
}

void Recorder::Wait() {
  const Status finished = backend_.Finish();
  if (status_.ok()) status_ = finished;
}

TensorView Recorder::WantRouteScores(int layer) {
  if (!IsMain(layer)) return {};
  return TensorView(route_scores_->data(), DType::kF32,
                    {n_tokens_, config_.n_routed_experts});
}

void Recorder::Routed(int layer, ConstTensorView experts,
                      ConstTensorView weights) {
  if (!IsMain(layer)) return;
  backend_.CopyOut(LayerPart(stages_.experts, layer).data(), experts);
  backend_.CopyOut(LayerPart(stages_.expert_weights, layer).data(), weights);
  float* margin = LayerPart(stages_.gate_margin, layer).row<float>(0);
  if (config_.is_hash(layer)) {
    std::fill(margin, margin + n_tokens_, kInfinity);
    return;
  }
  const int64_t n = config_.n_routed_experts;
  std::vector<float> scores(static_cast<size_t>(n_tokens_ * n));
  backend_.CopyOut(scores.data(), WantRouteScores(layer));
  Wait();
  for (int64_t t = 0; t < n_tokens_; ++t) {
    margin[t] = Margin(scores.data() + t * n, n, config_.n_activated_experts);
  }
}

TensorView Recorder::WantIndexScores(int layer) {
  if (!IsMain(layer) || n_index_rows_ == 0) return {};
  return TensorView(index_scores_->data(), DType::kF32,
                    {n_tokens_, n_index_rows_});
}

void Recorder::Selected(int layer, TensorView selection) {
  if (!IsMain(layer)) return;
  const auto index = static_cast<size_t>(layer);
  const int64_t k = selection.dim(1);
  HostTensor& chosen = stages_.selections[index];
  chosen = HostTensor::Make(DType::kI32, {n_tokens_, k});
  if (n_index_rows_ > 0) {
    HostTensor& scores = stages_.index_scores[index];
    scores = HostTensor::Make(DType::kF32, {n_tokens_, n_index_rows_});
    backend_.CopyOut(scores.bytes.data(), WantIndexScores(layer));
    Wait();
    HostTensor& margin = stages_.index_margin[index];
    margin = HostTensor::Make(DType::kF32, {n_tokens_});
    for (int64_t t = 0; t < n_tokens_; ++t) {
      margin.data<float>()[t] =
          Margin(scores.data<float>() + t * n_index_rows_, n_index_rows_, k);
    }
  }
  if (!forced_.selections.empty() && !forced_.selections[index].empty()) {
    // Golden rows are as wide as there are rows to choose from, and mark an
    // empty place with -1 or -2.
    const ConstTensorView forced = forced_.selections[index];
    std::fill(chosen.data<int32_t>(), chosen.data<int32_t>() + n_tokens_ * k,
              -1);
    for (int64_t t = 0; t < n_tokens_; ++t) {
      for (int64_t i = 0; i < std::min(k, forced.dim(1)); ++i) {
        chosen.data<int32_t>()[t * k + i] =
            std::max(forced.row<int32_t>(t)[i], -1);
      }
    }
    backend_.CopyIn(selection, chosen.bytes.data());
  }
  backend_.CopyOut(chosen.bytes.data(), selection);
}

}  // namespace belay::trace
