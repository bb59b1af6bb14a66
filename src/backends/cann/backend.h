// SPDX-License-Identifier: Apache-2.0
// The class behind cann::Create. Each operator family has its own .cc file.
#ifndef BELAY_BACKENDS_CANN_BACKEND_H_
#define BELAY_BACKENDS_CANN_BACKEND_H_

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cann/cann.h"
#include "backends/cann/device/compute.h"
#include "backends/cann/device/launcher.h"
#include "backends/cann/device/memory.h"
#include "backends/cann/step_index.h"
#include "backends/cann/weights.h"
#include "cann_api/runtime.h"
#include "ops/backend.h"

namespace belay::cann {

// Small tensors that operators need and that never change.
struct Constants {
  Array one;         // [1] f32
  Array counting;    // [n] i32: 0, 1, 2, ...
  Array hadamard;    // [index_dim, index_dim] bf16: +-1
  Array hc_scales;   // [(2 + hc) hc] i32: which of three scales
  Array expert_ids;  // [n_experts + 1] i32: 0, 1, 2, ...
};

// The device in use. Buffers keep it, so that they can be given back after the
// back end itself is gone.
struct Device {
  std::unique_ptr<cann_api::Api> api;
  std::unique_ptr<cann_api::Runtime> runtime;  // ends before the libraries
};

// The candidates of one span's attention (attention.cc).
struct Candidates;

class CannBackend final : public ops::Backend {
 public:
  CannBackend(const ops::Numerics& numerics, const Options& options,
              std::shared_ptr<Device> device);
  ~CannBackend() override;
  Status Init(std::vector<cann_api::TimedStep> steps);

  // Executors that are kept, for tests: decoding makes no new ones.
  size_t n_executors() const { return launcher_.n_executors(); }

  // backend.cc
  std::string_view name() const override { return "cann"; }
  const ops::Numerics& numerics() const override { return numerics_; }
  StatusOr<std::unique_ptr<ops::DeviceBuffer>> Allocate(size_t bytes) override;
  void CopyIn(TensorView dst, const void* host_src) override;
  void CopyOut(void* host_dst, ConstTensorView src) override;
  Status Finish() override;
  StatusOr<std::unique_ptr<ops::BoundLinear>> BindLinear(
      const ops::LinearSource& source) override;
  StatusOr<std::unique_ptr<ops::BoundExperts>> BindExperts(
      std::span<const ops::ExpertSource> experts,
      int64_t first_expert) override;
  StatusOr<ConstTensorView> BindTensor(ConstTensorView host) override;
  size_t FreeBytes() const override;
  RowKind KvRows() const override { return RowKind::kBf16; }
  RowKind IndexRows() const override { return RowKind::kBf16; }
  std::vector<ops::StartStep> StartSteps() const override;
  // explain.cc
  std::vector<ops::Implementation> Explain() const override;
  // plan.cc
  size_t WorkspaceBytes(const ops::OpLimits& limits) const override;
  Status Plan(const ops::OpLimits& limits,
              std::span<std::byte> workspace) override;

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
  // Names the operator at hand, binds the thread; false when the step is lost.
  bool Enter(const char* op);
  void Refuse(const std::string& what, const std::string& expected);
  aclDataType act() const { return numerics_.official() ? kBf16 : kF32; }

  // linear.cc: y = x W^T, x quantised first where the weight wants it.
  void Project(const Array& y, const CannLinear& weight, const Array& x);
  // x as the product with `weight` takes it.
  Array Operand(const Array& x, bool quantise, aclDataType weight);
  // hyper.cc: (flat(h) fn^T) * rsqrt(mean(flat(h)^2) + eps), f32; h32
  // [n, hc * dim] f32.
  Array Mixes(const Array& h32, const Array& fn, double norm_eps);
  void HcPreFused(const ops::HcPreParams& p);
  // project.cc: cos and sin [n, 2 * n_freq] of the positions [n], pairs alike.
  struct Angles {
    Array cos, sin;
  };
  Angles AnglesOf(const Array& positions, const Array& freq, bool inverse);
  // The last dims of x [n, heads, dim] rotated into out; the others copied
  // unless out is x. Rounded once.
  void RotateTail(const Array& out, const Array& x, const Angles& angles);
  // Rows [n, dim] of a cache from values of the activations' dtype, the first
  // `n_quant` dims quantised.
  void EncodeKv(const Array& rows, const Array& values, int64_t n_quant);
  // The memory of rows in a format as numbers [n, head_dim].
  Array RowsOf(const TensorView& bytes, const ops::RowFormat& format);
  // Copies the last rows of every span to a ring [n_slots, n_ring, width].
  void StoreRing(const Array& ring, const Array& rows,
                 std::span<const ops::Span> spans);
  // indexer.cc: rows after their Hadamard transform and fp4_act_quant.
  void EncodeIndex(const Array& rows, const Array& values);
  void SelectRows(const ops::IndexerSelectParams& p, size_t s, const Array& q,
                  const Array& w);
  // compress.cc
  void FinishBlocks(const ops::KvCompressParams& p, size_t s,
                    const Array& pooled, int64_t first_block);
  void CompressSpan(const ops::KvCompressParams& p, size_t s, const Array& raw);
  // attention.cc
  void AttendSpan(const ops::SparseAttentionParams& p, size_t s);
  void AttendTokens(const ops::SparseAttentionParams& p, size_t s,
                    const Candidates& all, int64_t first, int64_t n);
  // moe.cc: silu(min(g, limit)) * clamp(u, +-limit) * weights, rounded;
  // g, u [n, inter] act, weights [n, 1] f32 or empty.
  Array Gated(const Array& g, const Array& u, const Array& weights,
              double limit);

  ops::Numerics numerics_;
  Options options_;
  std::shared_ptr<Device> device_;
  const cann_api::Api* api_;
  cann_api::Runtime* runtime_;
  std::vector<cann_api::TimedStep> steps_;
  WeightMemory weights_;
  Copies copies_;
  Launcher launcher_;
  Compute c_;
  StepIndex index_;
  cann_api::Event fence_;
  Constants constants_;
  ops::OpLimits limits_;
  std::vector<float> host_logits_;  // of one row that is sampled on the host
  Status broken_;                   // a fault that ended the device
};

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_BACKEND_H_
