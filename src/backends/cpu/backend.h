// SPDX-License-Identifier: Apache-2.0
// The class behind cpu::Create. Each operator family has its own .cc file.
#ifndef BELAY_BACKENDS_CPU_BACKEND_H_
#define BELAY_BACKENDS_CPU_BACKEND_H_

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/weights.h"
#include "backends/cpu/workspace.h"
#include "base/thread_pool.h"
#include "ops/backend.h"

namespace belay::cpu {

// One product of ProjectAll.
struct Projection {
  const kernels::WeightView* weight = nullptr;
  TensorView y;  // [n_tokens, n_rows of the weight] bf16 or f32
};

// Columns [begin, begin + n) of row t.
struct RowSlice {
  ConstTensorView x;
  int64_t t;
  int64_t begin;
  int64_t n;
};

// The (token, expert) pairs of one pass, sorted by expert; moe.cc.
struct ExpertPairs;

// Some heads of one token; attention.cc.
struct HeadTask {
  int64_t token = 0;
  int64_t first_head = 0;
  int64_t n_heads = 0;
};

// Queries, weights and scores of the indexer for a group of tokens, and the
// tokens and rows of one task; indexer.cc.
struct IndexQueries;
struct ScoreTask;

class CpuBackend final : public ops::Backend {
 public:
  CpuBackend(const ops::Numerics& numerics, ThreadPool* pool,
             const Topology* topology)
      : numerics_(numerics), pool_(pool), packed_memory_(pool, topology) {}

  // backend.cc
  std::string_view name() const override { return "cpu"; }
  const ops::Numerics& numerics() const override { return numerics_; }
  std::vector<ops::Implementation> Explain() const override;
  std::string PackedLayout() const override;
  StatusOr<std::unique_ptr<ops::DeviceBuffer>> Allocate(size_t bytes) override;
  size_t WorkspaceBytes(const ops::OpLimits& limits) const override;
  Status Plan(const ops::OpLimits& limits,
              std::span<std::byte> workspace) override;
  void CopyIn(TensorView dst, const void* host_src) override;
  void CopyOut(void* host_dst, ConstTensorView src) override;
  void Discard(TensorView memory) override;
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
  // attention.cc
  void SparseAttention(const ops::SparseAttentionParams& p) override;
  // moe.cc
  void Route(const ops::RouteParams& p) override;
  void RoutedExperts(const ops::RoutedExpertsParams& p) override;
  void SharedExpert(const ops::SharedExpertParams& p) override;
  // sample.cc
  void Sample(const ops::SampleParams& p) override;

 private:
  // fn(task, thread) for all tasks; a single task needs no team.
  template <typename Fn>
  void Parallel(int64_t n_tasks, const Fn& fn) const {
    if (n_tasks == 1) {
      fn(size_t{0}, 0);
    } else if (n_tasks > 1) {
      pool_->ParallelFor(static_cast<size_t>(n_tasks), fn);
    }
  }

  // The rounding between two steps of an operator: bf16 in official numerics,
  // none in exact ones.
  void Round(float* x, int64_t n) const;
  float Round(float x) const;
  // Loads columns [begin, begin + n) of row t of a bf16 or f32 tensor.
  static void Load(ConstTensorView x, int64_t t, int64_t begin, int64_t n,
                   float* row);
  // Stores them, rounded to y's dtype.
  static void Store(const float* row, int64_t n, TensorView y, int64_t t,
                    int64_t begin);

  // linear.cc: y_i = x W_i^T. All weights have x's width; the input is
  // quantised first when `quantise` (then for all of them).
  void ProjectAll(ConstTensorView x, bool quantise,
                  const kernels::MatMulKernel& kernel,
                  std::span<const Projection> products) const;
  void Project(const CpuLinear& weight, ConstTensorView x, TensorView y) const;
  // Packs a slice of one token's row, quantised first when `quantise`.
  void PackToken(const kernels::MatMulKernel& kernel, bool quantise,
                 const RowSlice& from, int thread, std::byte* packed) const;
  // y = w * (x * rsqrt(mean x^2 + eps)) on one row, not yet rounded.
  void NormRow(float* x, const float* w, int64_t n, float eps) const;

  // hyper.cc: mixes = (flat(h) fn^T), in shared scratch; [n_tokens, fn rows].
  float* Mixes(ConstTensorView h, ConstTensorView fn) const;

  // attention.cc
  void AttendInF32(const ops::SparseAttentionParams& p, const HeadTask& task,
                   int thread) const;
  void AttendInBf16(const ops::SparseAttentionParams& p, const HeadTask& task,
                    int thread) const;
  // compress.cc
  void FinishBlock(const ops::KvCompressParams& p, const ops::Span& span,
                   int32_t block, const float* norm, int thread) const;
  // indexer.cc
  void PrepareQuery(const ops::IndexerSelectParams& p, int64_t t,
                    const IndexQueries& queries) const;
  void ScoreInF32(const ops::IndexerSelectParams& p,
                  const IndexQueries& queries, const ScoreTask& task,
                  int thread) const;
  void ScoreInBf16(const ops::IndexerSelectParams& p,
                   const IndexQueries& queries, const ScoreTask& task,
                   int thread) const;
  // moe.cc
  void RunExperts(const CpuExperts& experts, ConstTensorView x,
                  const ExpertPairs& pairs, float limit) const;
  void ExpertUpTask(const CpuExperts& experts, const ExpertPairs& pairs,
                    int64_t task, float limit, int thread) const;
  void ExpertDownTask(const CpuExperts& experts, const ExpertPairs& pairs,
                      int64_t task, int thread) const;

  ops::Numerics numerics_;
  ThreadPool* pool_;
  PackedMemory packed_memory_;  // of the weights that it binds
  Workspace workspace_;
};

}  // namespace belay::cpu

#endif  // BELAY_BACKENDS_CPU_BACKEND_H_
