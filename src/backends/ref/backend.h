// SPDX-License-Identifier: Apache-2.0
// The class behind ref::Create. Each operator family has its own .cc file.
#ifndef BELAY_BACKENDS_REF_BACKEND_H_
#define BELAY_BACKENDS_REF_BACKEND_H_

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "backends/ref/matrix.h"
#include "backends/ref/weights.h"
#include "base/float_formats.h"
#include "ops/backend.h"

namespace belay::ref {

class RefBackend final : public ops::Backend {
 public:
  explicit RefBackend(const ops::Numerics& numerics) : numerics_(numerics) {}

  // backend.cc
  std::string_view name() const override { return "ref"; }
  const ops::Numerics& numerics() const override { return numerics_; }
  std::vector<ops::Implementation> Explain() const override;
  StatusOr<std::unique_ptr<ops::DeviceBuffer>> Allocate(size_t bytes) override;
  size_t WorkspaceBytes(const ops::OpLimits& limits) const override;
  Status Plan(const ops::OpLimits& limits,
              std::span<std::byte> workspace) override;
  void CopyIn(TensorView dst, const void* host_src) override;
  void CopyOut(void* host_dst, ConstTensorView src) override;
  Status Finish() override { return absl::OkStatus(); }
  StatusOr<std::unique_ptr<ops::BoundLinear>> BindLinear(
      const ops::LinearSource& source) override;
  StatusOr<std::unique_ptr<ops::BoundExperts>> BindExperts(
      std::span<const ops::ExpertSource> experts,
      int64_t first_expert) override;
  StatusOr<ConstTensorView> BindTensor(ConstTensorView host) override {
    return host;
  }

  // linear.cc
  void Linear(const ops::LinearParams& p) override;
  void RmsNorm(const ops::RmsNormParams& p) override;
  void Logits(const ops::LogitsParams& p) override;
  void AttentionOut(const ops::AttentionOutParams& p) override;
  // hyper.cc
  void Embed(const ops::EmbedParams& p) override;
  void HcPre(const ops::HcPreParams& p) override;
  void HcPost(const ops::HcPostParams& p) override;
  void HcHead(const ops::HcHeadParams& p) override;
  void GatherRows(const ops::GatherRowsParams& p) override;
  void AddBroadcast(const ops::AddBroadcastParams& p) override;
  // project.cc
  void QueryProject(const ops::QueryProjectParams& p) override;
  void KvProject(const ops::KvProjectParams& p) override;
  void RopeTail(const ops::RopeTailParams& p) override;
  void KvStore(const ops::KvStoreParams& p) override;
  // compress.cc
  void KvCompress(const ops::KvCompressParams& p) override;
  // indexer.cc
  void IndexerSelect(const ops::IndexerSelectParams& p) override;
  // sparse_attention.cc
  void SparseAttention(const ops::SparseAttentionParams& p) override;
  // moe.cc
  void Route(const ops::RouteParams& p) override;
  void RoutedExperts(const ops::RoutedExpertsParams& p) override;
  void SharedExpert(const ops::SharedExpertParams& p) override;
  // sample.cc
  void Sample(const ops::SampleParams& p) override;

 private:
  // The rounding between two steps of an operator: bf16 in official numerics,
  // none in exact ones.
  float Round(float x) const {
    return numerics_.official() ? RoundToBf16(x) : x;
  }
  void Round(std::span<float> x) const {
    for (float& v : x) v = Round(v);
  }
  void Round(Matrix& x) const {
    for (int64_t i = 0; i < x.n_rows(); ++i) Round(x.row(i));
  }

  // A finished block of KvCompress, from the rows that it pools to the encoded
  // row (compress.cc).
  void FinishBlock(const ops::KvCompressParams& p, std::span<float> pooled,
                   int64_t block, std::byte* out) const;
  // Index scores of one token over the keys; -inf is not among them
  // (indexer.cc).
  std::vector<float> IndexScores(const Matrix& q, std::span<const float> w,
                                 const Matrix& keys, int64_t n_visible) const;
  // One head of one token (sparse_attention.cc). `rows` are the candidates in
  // order, `valid` says which take part.
  void Attend(std::span<const float> q, float sink, const Matrix& rows,
              const std::vector<bool>& valid, std::span<float> o) const;

  // One expert on the rows of x (moe.cc).
  Matrix Expert(const RefExpert& expert, const Matrix& x,
                std::span<const float> weights, float limit) const;

  ops::Numerics numerics_;
};

}  // namespace belay::ref

#endif  // BELAY_BACKENDS_REF_BACKEND_H_
