// SPDX-License-Identifier: Apache-2.0
// What a back end is. Shapes, dtypes and alignment are checked when weights are
// bound and plans are made (Bind*, Supports): an operator call cannot fail on
// data. Device faults surface in Finish().
//
// Operators run in call order as far as anyone can observe; Finish() waits for
// all of them. Nothing on the step path allocates (the `ref` back end, whose
// purpose is to be read, is excused).
#ifndef BELAY_OPS_BACKEND_H_
#define BELAY_OPS_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/attention.h"
#include "ops/hyper.h"
#include "ops/linear.h"
#include "ops/moe.h"
#include "ops/numerics.h"
#include "ops/sample.h"

namespace belay::ops {

// Memory that operators of one back end can use. Host memory for ref and cpu.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual void* data() const = 0;
  virtual size_t bytes() const = 0;
};

// The largest sizes that operators will see; decides the workspace.
struct OpLimits {
  int64_t n_tokens = 0;   // flat tokens a step
  int64_t n_context = 0;  // positions of the longest sequence
  int64_t dim = 0;
  int64_t n_heads = 0;  // of this rank
  int64_t head_dim = 0;
  int64_t q_lora_rank = 0;
  int64_t o_mid = 0;  // n_groups * o_lora of this rank
  int64_t n_index_heads = 0;
  int64_t index_dim = 0;
  int64_t index_topk = 0;
  int64_t window_size = 0;
  int64_t n_experts = 0;
  int64_t n_experts_per_token = 0;
  int64_t moe_inter = 0;
  int64_t vocab = 0;  // of this rank
  int hc_mult = 4;
};

// One way to do an operator, for `belay run --explain`.
struct Implementation {
  std::string op;
  std::string name;
  Status applies;  // why not, in words with a catalogue id
};

// A step of a back end's start, in order; for reports.
struct StartStep {
  std::string name;
  double seconds = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;  // "ref", "cpu", "cann"
  virtual const Numerics& numerics() const = 0;
  // For each operator the implementations in order, fastest first; the first
  // that applies is used.
  virtual std::vector<Implementation> Explain() const = 0;
  // How the start went; empty where there is nothing to start.
  virtual std::vector<StartStep> StartSteps() const { return {}; }
  // Memory that Allocate() can still give; 0 = the host's.
  virtual size_t FreeBytes() const { return 0; }
  // The rows that caches shall have in official numerics.
  virtual RowKind KvRows() const { return RowKind::kFp8Rope; }
  virtual RowKind IndexRows() const { return RowKind::kFp4; }

  // --- Memory and plans ---
  virtual StatusOr<std::unique_ptr<DeviceBuffer>> Allocate(size_t bytes) = 0;
  // Bytes of scratch that operators within `limits` need beside their params.
  virtual size_t WorkspaceBytes(const OpLimits& limits) const = 0;
  // Takes the workspace (at least WorkspaceBytes(limits) bytes, outlives the
  // back end's use) and checks that every operator can run within `limits`.
  virtual Status Plan(const OpLimits& limits,
                      std::span<std::byte> workspace) = 0;
  // In call order with the operators. What CopyIn reads is free when it
  // returns; what CopyOut fills is there after the next Finish().
  virtual void CopyIn(TensorView dst, const void* host_src) = 0;
  virtual void CopyOut(void* host_dst, ConstTensorView src) = 0;
  // What `memory` holds is not needed any more: a back end may give it back to
  // the system until it is written again. It reads as anything meanwhile.
  virtual void Discard(TensorView memory) { static_cast<void>(memory); }
  // Waits for everything; the first device fault since the last call.
  virtual Status Finish() = 0;

  // --- Weights, once at load ---
  virtual StatusOr<std::unique_ptr<BoundLinear>> BindLinear(
      const LinearSource& source) = 0;
  virtual StatusOr<std::unique_ptr<BoundExperts>> BindExperts(
      std::span<const ExpertSource> experts, int64_t first_expert) = 0;
  // Names the layout of the weights that BindLinear packs, the kernels' target
  // and a version included; "" when it packs none. Packed bytes are for a back
  // end that says the same.
  virtual std::string PackedLayout() const { return ""; }
  // A small tensor where operators can read it; on the host the view itself.
  virtual StatusOr<ConstTensorView> BindTensor(ConstTensorView host) = 0;

  // --- Operators; contracts at their params ---
  virtual void Embed(const EmbedParams& p) = 0;
  virtual void RmsNorm(const RmsNormParams& p) = 0;
  virtual void Linear(const LinearParams& p) = 0;
  virtual void HcPre(const HcPreParams& p) = 0;
  virtual void HcPost(const HcPostParams& p) = 0;
  virtual void HcHead(const HcHeadParams& p) = 0;
  virtual void GatherRows(const GatherRowsParams& p) = 0;
  virtual void AddBroadcast(const AddBroadcastParams& p) = 0;
  virtual void Logits(const LogitsParams& p) = 0;
  virtual void QueryProject(const QueryProjectParams& p) = 0;
  virtual void KvProject(const KvProjectParams& p) = 0;
  virtual void RopeTail(const RopeTailParams& p) = 0;
  virtual void KvStore(const KvStoreParams& p) = 0;
  virtual void KvCompress(const KvCompressParams& p) = 0;
  virtual void IndexerSelect(const IndexerSelectParams& p) = 0;
  virtual void SparseAttention(const SparseAttentionParams& p) = 0;
  virtual void AttentionOut(const AttentionOutParams& p) = 0;
  virtual void Route(const RouteParams& p) = 0;
  virtual void RoutedExperts(const RoutedExpertsParams& p) = 0;
  virtual void SharedExpert(const SharedExpertParams& p) = 0;
  virtual void Sample(const SampleParams& p) = 0;
};

}  // namespace belay::ops

#endif  // BELAY_OPS_BACKEND_H_
