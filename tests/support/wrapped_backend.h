// SPDX-License-Identifier: Apache-2.0
// A back end that passes everything on: the base of back ends that do one thing
// wrong on purpose.
#ifndef BELAY_TESTS_SUPPORT_WRAPPED_BACKEND_H_
#define BELAY_TESTS_SUPPORT_WRAPPED_BACKEND_H_

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ops/backend.h"

namespace belay::test {

class WrappedBackend : public ops::Backend {
 public:
  explicit WrappedBackend(std::unique_ptr<ops::Backend> inner)
      : inner_(std::move(inner)) {}

  std::string_view name() const override { return inner_->name(); }
  const ops::Numerics& numerics() const override { return inner_->numerics(); }
  std::vector<ops::Implementation> Explain() const override {
    return inner_->Explain();
  }
  RowKind KvRows() const override { return inner_->KvRows(); }
  RowKind IndexRows() const override { return inner_->IndexRows(); }
  StatusOr<std::unique_ptr<ops::DeviceBuffer>> Allocate(size_t bytes) override {
    return inner_->Allocate(bytes);
  }
  size_t WorkspaceBytes(const ops::OpLimits& limits) const override {
    return inner_->WorkspaceBytes(limits);
  }
  Status Plan(const ops::OpLimits& limits,
              std::span<std::byte> workspace) override {
    return inner_->Plan(limits, workspace);
  }
  void CopyIn(TensorView dst, const void* src) override {
    inner_->CopyIn(dst, src);
  }
  void CopyOut(void* dst, ConstTensorView src) override {
    inner_->CopyOut(dst, src);
  }
  void Discard(TensorView memory) override { inner_->Discard(memory); }
  Status Finish() override { return inner_->Finish(); }
  StatusOr<std::unique_ptr<ops::BoundLinear>> BindLinear(
      const ops::LinearSource& source) override {
    return inner_->BindLinear(source);
  }
  StatusOr<std::unique_ptr<ops::BoundExperts>> BindExperts(
      std::span<const ops::ExpertSource> experts,
      int64_t first_expert) override {
    return inner_->BindExperts(experts, first_expert);
  }
  StatusOr<ConstTensorView> BindTensor(ConstTensorView host) override {
    return inner_->BindTensor(host);
  }

#define BELAY_PASS_ON(Op) \
  void Op(const ops::Op##Params& p) override { inner_->Op(p); }
  BELAY_PASS_ON(Embed)
  BELAY_PASS_ON(RmsNorm)
  BELAY_PASS_ON(Linear)
  BELAY_PASS_ON(HcPre)
  BELAY_PASS_ON(HcPost)
  BELAY_PASS_ON(HcHead)
  BELAY_PASS_ON(GatherRows)
  BELAY_PASS_ON(AddBroadcast)
  BELAY_PASS_ON(Logits)
  BELAY_PASS_ON(QueryProject)
  BELAY_PASS_ON(KvProject)
  BELAY_PASS_ON(RopeTail)
  BELAY_PASS_ON(KvStore)
  BELAY_PASS_ON(KvCompress)
  BELAY_PASS_ON(IndexerSelect)
  BELAY_PASS_ON(SparseAttention)
  BELAY_PASS_ON(AttentionOut)
  BELAY_PASS_ON(Route)
  BELAY_PASS_ON(RoutedExperts)
  BELAY_PASS_ON(SharedExpert)
  BELAY_PASS_ON(Sample)
#undef BELAY_PASS_ON

 protected:
  ops::Backend& inner() { return *inner_; }

 private:
  const std::unique_ptr<ops::Backend> inner_;
};

}  // namespace belay::test

#endif  // BELAY_TESTS_SUPPORT_WRAPPED_BACKEND_H_
