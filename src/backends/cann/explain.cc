// SPDX-License-Identifier: Apache-2.0
// For each operator the ways to do it on this machine, fastest first.
#include "backends/cann/backend.h"
#include "base/error_ids.h"

namespace belay::cann {
namespace {

// A fused operator of CANN or of a custom package that does (a part of) one of
// ours. Most are not called yet: that they compute what ours must, with rows
// and scales laid out as they want, has to be shown first.
struct Fused {
  const char* op;
  const char* name;    // aclnn...
  const char* reason;  // beyond that it is not used yet; "" = nothing
  bool used = false;   // where the libraries have it
};

constexpr Fused kFused[] = {
    {"HcPre", "HcPre", "takes 4 streams of 4096 or 7168 only"},
    {"HcPre", "MhcPre",
     "of A5; pre-mixed weights are ignored by some versions"},
    {"HcPre", "HcPreSinkhorn", "", /*used=*/true},
    {"HcPost", "HcPost", "", /*used=*/true},
    {"HcPost", "MhcPost", "of A5"},
    {"KvProject", "KvCompressEpilog", "of A5; writes packed rows"},
    {"KvCompress", "Compressor", "keeps its state in blocks"},
    {"IndexerSelect", "VllmQuantLightningIndexer",
     "quantises to INT8 or E4M3, not to the official FP4"},
    {"SparseAttention", "SparseAttnSharedkv",
     "of A2 and A3; 64 heads and a window of 128 only"},
    {"SparseAttention", "KvQuantSparseAttnSharedkv",
     "of A5; reads packed rows"},
    {"RopeTail", "InplacePartialRotaryMul", ""},
    {"Route", "MoeGatingTopKHash", ""},
    {"Route", "MoeGatingTopK", ""},
    {"RoutedExperts", "SwigluGroupQuant", "of A5; quantises as MX does"},
    {"RoutedExperts", "MoeInitRoutingV3", ""},
    {"Sample", "ApplyTopKTopP", "sorts in another precision"},
};

// In the order of ops/backend.h, with what each is composed of.
struct Composed {
  const char* op;
  const char* parts;
};

constexpr Composed kComposed[] = {
    {"Embed", "GatherV2"},
    {"RmsNorm", "RmsNorm"},
    {"Linear", "act_quant of stock operators, Matmul"},
    {"HcPre", "Matmul, Softmax, 39 divisions by sums"},
    {"HcPost", "Matmul, Mul, Add"},
    {"HcHead", "Matmul, Sigmoid"},
    {"GatherRows", "GatherV2"},
    {"AddBroadcast", "Add"},
    {"Logits", "Matmul"},
    {"QueryProject", "Matmul, RmsNorm, RotaryPositionEmbedding"},
    {"KvProject", "Matmul, RmsNorm, RotaryPositionEmbedding, act_quant"},
    {"RopeTail", "RotaryPositionEmbedding"},
    {"KvStore", "InplaceIndexCopy"},
    {"KvCompress", "Matmul, Softmax, ReduceSum, InplaceIndexCopy"},
    {"IndexerSelect", "Matmul, ReduceSum, Topk"},
    {"SparseAttention", "GatherV2, Matmul, Topk, Exp, Matmul"},
    {"AttentionOut", "Matmul"},
    {"Route", "Matmul, Softplus, Sqrt, Topk"},
    {"RoutedExperts", "Argsort, GatherV2, GroupedMatmulV4, ReduceSum"},
    {"SharedExpert", "Matmul, Silu"},
    {"Sample", "ArgMax; on the host for anything but greedy"},
};

Status WhyNot(const cann_api::Api& api, const std::string& soc,
              const Fused& fused) {
  std::string why;
  std::string expected;
  // HcPreSinkhorn comes with the operator for its rms.
  const bool there =
      api.Has(fused.name) && (std::string_view(fused.name) != "HcPreSinkhorn" ||
                              api.Has("HcPreInvRms"));
  if (there && fused.used) return absl::OkStatus();
  if (there) {
    why = "not used yet";
  } else {
    why = "no aclnn" + std::string(fused.name) + " in the libraries";
    expected = "a package with it for " + (soc.empty() ? "this chip" : soc);
  }
  if (*fused.reason != '\0') why += "; " + std::string(fused.reason);
  return MakeError(kBackUnsupported, {.where = fused.op,
                                      .what = std::move(why),
                                      .expected = std::move(expected),
                                      .got = ""});
}

}  // namespace

std::vector<ops::Implementation> CannBackend::Explain() const {
  std::vector<ops::Implementation> list;
  for (const Composed& composed : kComposed) {
    for (const Fused& fused : kFused) {
      if (std::string_view(fused.op) != composed.op) continue;
      list.push_back({.op = composed.op,
                      .name = "fused aclnn" + std::string(fused.name),
                      .applies = WhyNot(*api_, runtime_->soc(), fused)});
    }
    list.push_back({.op = composed.op,
                    .name = "composed (" + std::string(composed.parts) + ")",
                    .applies = absl::OkStatus()});
  }
  return list;
}

}  // namespace belay::cann
