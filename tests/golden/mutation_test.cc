// SPDX-License-Identifier: Apache-2.0
// The golden test must be able to fail: models that are wrong on purpose, each
// in one rule, must leave the limit of exact numerics. Most are off by more
// than 1; 19 sinkhorn iterations and a norm epsilon of 1e-5 by 1.1e-4, where a
// right model stays below 3e-6.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "apps/belay/trace/trace.h"
#include "support/compare.h"
#include "support/golden_set.h"
#include "support/test_model.h"
#include "support/value.h"
#include "support/wrapped_backend.h"

namespace belay::test {
namespace {

// Uses rows of comb as output streams, not columns.
class TransposedComb final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void HcPost(const ops::HcPostParams& p) override {
    const int64_t hc = p.comb.dim(1);
    std::vector<float> flipped(static_cast<size_t>(p.comb.n_elements()));
    for (int64_t t = 0; t < p.comb.n_rows(); ++t) {
      for (int64_t i = 0; i < hc * hc; ++i) {
        flipped[static_cast<size_t>(t * hc * hc + i % hc * hc + i / hc)] =
            p.comb.row<float>(t)[i];
      }
    }
    ops::HcPostParams wrong = p;
    wrong.comb = ConstTensorView(flipped.data(), DType::kF32, p.comb.shape());
    inner().HcPost(wrong);
  }
};

// Reads the high nibble of an FP4 byte first.
class SwappedNibbles final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  StatusOr<std::unique_ptr<ops::BoundExperts>> BindExperts(
      std::span<const ops::ExpertSource> experts, int64_t first) override {
    std::vector<ops::ExpertSource> wrong(experts.begin(), experts.end());
    for (ops::ExpertSource& e : wrong) {
      for (ops::LinearSource* linear : {&e.w1, &e.w2, &e.w3}) {
        if (linear->weight.dtype() == DType::kI8)
          linear->weight = Swap(*linear);
      }
    }
    return inner().BindExperts(wrong, first);
  }

 private:
  ConstTensorView Swap(const ops::LinearSource& linear) {
    const auto bytes = linear.weight.as<uint8_t>();
    auto& copy = copies_.emplace_back(bytes.begin(), bytes.end());
    for (uint8_t& b : copy) b = static_cast<uint8_t>(b << 4 | b >> 4);
    return ConstTensorView(copy.data(), DType::kI8, linear.weight.shape());
  }
  std::vector<std::vector<uint8_t>> copies_;
};

// Sees a compressed row one token late: never in the token that ends it.
class LateRows final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void IndexerSelect(const ops::IndexerSelectParams& p) override {
    inner().IndexerSelect(p);
    for (int64_t t = 0; t < p.selection.n_rows(); ++t) {
      const int32_t next = *p.batch.positions.row<int32_t>(t) + 1;
      if (next % 4 != 0) continue;
      for (int64_t i = 0; i < p.selection.dim(1); ++i) {
        int32_t& row = p.selection.row<int32_t>(t)[i];
        if (row == next / 4 - 1) row = -1;
      }
    }
  }
};

class NoSink final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void SparseAttention(const ops::SparseAttentionParams& p) override {
    const std::vector<float> none(static_cast<size_t>(p.sink.n_elements()),
                                  -std::numeric_limits<float>::infinity());
    ops::SparseAttentionParams wrong = p;
    wrong.sink = ConstTensorView(none.data(), DType::kF32, p.sink.shape());
    inner().SparseAttention(wrong);
  }
};

// Attends to the window only.
class NoCompressedRows final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void SparseAttention(const ops::SparseAttentionParams& p) override {
    ops::SparseAttentionParams wrong = p;
    if (p.selection.empty()) wrong.compressed = {};  // HCA layers
    inner().SparseAttention(wrong);
  }
};

class NoInverseRope final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void RopeTail(const ops::RopeTailParams&) override {}
};

// Pools without the position embedding.
class NoApe final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void KvCompress(const ops::KvCompressParams& p) override {
    const std::vector<float> zeros(
        static_cast<size_t>(p.weights.ape.n_elements()));
    ops::KvCompressParams wrong = p;
    wrong.weights.ape =
        ConstTensorView(zeros.data(), DType::kF32, p.weights.ape.shape());
    inner().KvCompress(wrong);
  }
};

// Selects experts by score without the bias.
class NoBias final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void Route(const ops::RouteParams& p) override {
    const std::vector<float> zeros(static_cast<size_t>(p.bias.n_elements()));
    ops::RouteParams wrong = p;
    if (!p.bias.empty()) {
      wrong.bias = ConstTensorView(zeros.data(), DType::kF32, p.bias.shape());
    }
    inner().Route(wrong);
  }
};

// The MTP block sees the hidden state only.
class NoMtpEmbedding final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void AddBroadcast(const ops::AddBroadcastParams& p) override {
    const std::vector<float> zeros(static_cast<size_t>(p.e.n_elements()));
    ops::AddBroadcastParams wrong = p;
    wrong.e = ConstTensorView(zeros.data(), p.e.dtype(), p.e.shape());
    inner().AddBroadcast(wrong);
  }
};

// Rotates the indexer's queries but not its keys.
class NoHadamardKeys final : public WrappedBackend {
 public:
  using WrappedBackend::WrappedBackend;
  void KvCompress(const ops::KvCompressParams& p) override {
    ops::KvCompressParams wrong = p;
    wrong.hadamard = false;
    inner().KvCompress(wrong);
  }
};

struct Mutation {
  std::string name;
  std::function<void(spec::ModelConfig&)> config;
  std::function<std::unique_ptr<ops::Backend>(std::unique_ptr<ops::Backend>)>
      backend;
};

void PrintTo(const Mutation& mutation, std::ostream* out) {
  *out << mutation.name;
}

template <typename Wrapper>
Mutation Operator(std::string name) {
  return {std::move(name), nullptr, [](std::unique_ptr<ops::Backend> inner) {
            return std::make_unique<Wrapper>(std::move(inner));
          }};
}

Mutation Number(std::string name,
                std::function<void(spec::ModelConfig&)> config) {
  return {std::move(name), std::move(config), nullptr};
}

// The largest |dlogit| of any tensor over the 130-token prompt and 3 steps.
double Distance(const Mutation& mutation) {
  ModelOptions options;
  options.backend = BackendNames().back();
  options.exact = true;
  options.edit_config = mutation.config;
  options.wrap_backend = mutation.backend;
  TestModel model(GoldenFolder() + "/tiny_fp4", options);
  const GoldenFile golden("tiny_fp4", "exact");
  trace::TraceOptions trace_options;
  trace_options.prompt = golden.Ids("p130.ids");
  trace_options.feed = golden.Ids("p130.greedy_tokens");
  trace_options.n_decode = 3;
  trace_options.feed.resize(4);
  trace::Tensors trace =
      Value(trace::RunTrace(model.parts<trace::TraceParts>(), trace_options));
  double distance = 0;
  for (const std::string name :
       {"logits_all", "mtp_logits", "decode_logits", "mtp_decode_logits"}) {
    const ConstTensorView all = golden.Get("p130." + name);
    const ConstTensorView got = trace.at(name).view();
    const ConstTensorView expected =
        ConstTensorView(all.data(), all.dtype(), got.shape());
    distance = std::max(distance, CompareLogits(expected, got).max_abs);
  }
  std::printf("  %s: max |dlogit| %.3g\n", mutation.name.c_str(), distance);
  return distance;
}

class MutationTest : public ::testing::TestWithParam<Mutation> {};

TEST_P(MutationTest, LeavesTheLimit) { EXPECT_GT(Distance(GetParam()), 1e-4); }

INSTANTIATE_TEST_SUITE_P(
    All, MutationTest,
    ::testing::Values(
        Operator<TransposedComb>("TransposedComb"),
        Operator<SwappedNibbles>("SwappedNibbles"),
        Operator<LateRows>("LateRows"), Operator<NoSink>("NoSink"),
        Operator<NoCompressedRows>("NoCompressedRows"),
        Operator<NoInverseRope>("NoInverseRope"), Operator<NoApe>("NoApe"),
        Operator<NoBias>("NoBias"), Operator<NoMtpEmbedding>("NoMtpEmbedding"),
        Operator<NoHadamardKeys>("NoHadamardKeysOnly"),
        Number("RopeTheta",
               [](spec::ModelConfig& c) { c.rope_theta = 160000; }),
        Number("CompressRopeTheta",
               [](spec::ModelConfig& c) { c.compress_rope_theta = 10000; }),
        Number("NoYarn", [](spec::ModelConfig& c) { c.rope_factor = 1; }),
        Number("ShortWindow", [](spec::ModelConfig& c) { --c.window_size; }),
        Number("ShortTopk", [](spec::ModelConfig& c) { --c.index_topk; }),
        Number("RouteScale", [](spec::ModelConfig& c) { c.route_scale = 1; }),
        Number("NoQueryHeadNorm",
               [](spec::ModelConfig& c) { c.q_head_norm = false; }),
        Number("Sinkhorn19",
               [](spec::ModelConfig& c) { c.hc_sinkhorn_iters = 19; }),
        Number("NormEps", [](spec::ModelConfig& c) { c.norm_eps = 1e-5f; })),
    [](const auto& test) { return test.param.name; });

TEST(NoMutationTest, StaysWithin) {
  EXPECT_LE(Distance(Operator<WrappedBackend>("Nothing")), 1e-4);
}

}  // namespace
}  // namespace belay::test
