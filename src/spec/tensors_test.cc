// SPDX-License-Identifier: Apache-2.0
#include "spec/tensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "base/error_ids.h"
#include "spec/presets.h"

namespace belay::spec {
namespace {

using ::testing::HasSubstr;

ModelConfig Get(std::string_view preset) { return *PresetConfig(preset); }

std::map<std::string, const ExpectedTensor*> ByName(
    const std::vector<ExpectedTensor>& tensors) {
  std::map<std::string, const ExpectedTensor*> map;
  for (const ExpectedTensor& tensor : tensors) {
    EXPECT_TRUE(map.emplace(tensor.name, &tensor).second) << tensor.name;
  }
  return map;
}

std::map<DType, int64_t> CountByDtype(const std::vector<ExpectedTensor>& all) {
  std::map<DType, int64_t> counts;
  for (const ExpectedTensor& tensor : all) ++counts[tensor.dtype];
  return counts;
}

// The published totals of the release.
TEST(TensorsTest, FlashHasThePublishedTensorsAndBytes) {
  const auto tensors = ExpectedTensors(Get("flash"));
  EXPECT_EQ(tensors.size(), 69187u);
  uint64_t bytes = 0;
  for (const ExpectedTensor& tensor : tensors) bytes += tensor.bytes();
  EXPECT_EQ(bytes, 159609485896u);
  const auto counts = CountByDtype(tensors);
  EXPECT_EQ(counts.at(DType::kI8), 33792);
  EXPECT_EQ(counts.at(DType::kF8E8M0), 34167);
  EXPECT_EQ(counts.at(DType::kF8E4M3), 375);
  EXPECT_EQ(counts.at(DType::kBF16), 433);
  EXPECT_EQ(counts.at(DType::kF32), 417);
  EXPECT_EQ(counts.at(DType::kI64), 3);
}

// 31 layers of ratio 128, 30 of ratio 4, the MTP layer, 6 globals.
TEST(TensorsTest, ProHasThePublishedTensors) {
  const ModelConfig pro = Get("pro");
  std::map<int64_t, int64_t> per_layer;
  int64_t total = 0;
  for (const ExpectedTensor& tensor : ExpectedTensors(pro)) {
    ++per_layer[tensor.layer];
    ++total;
  }
  EXPECT_EQ(total, 145116);
  EXPECT_EQ(per_layer[-1], 6);
  EXPECT_EQ(per_layer[61], 2343);
  int64_t n_hca = 0;
  for (int64_t i = 0; i < 61; ++i) {
    const bool hca = pro.kind(i) == LayerKind::kHca;
    n_hca += hca ? 1 : 0;
    EXPECT_EQ(per_layer[i], hca ? 2337 : 2344) << i;
  }
  EXPECT_EQ(n_hca, 31);
}

TEST(TensorsTest, ParametersRoundToThePublishedFigures) {
  const ParameterCounts flash = CountParameters(Get("flash"));
  EXPECT_EQ(std::lround(static_cast<double>(flash.total) / 1e9), 284);
  EXPECT_NEAR(static_cast<double>(flash.total) / 1e9, 284.3, 0.05);
  EXPECT_EQ(std::lround(static_cast<double>(flash.active) / 1e9), 13);
  const ParameterCounts pro = CountParameters(Get("pro"));
  EXPECT_EQ(std::lround(static_cast<double>(pro.total) / 1e11), 16);
  EXPECT_NEAR(static_cast<double>(pro.total) / 1e9, 1573, 0.5);
  EXPECT_EQ(std::lround(static_cast<double>(pro.active) / 1e9), 49);
  // One sliding layer and two square projections.
  EXPECT_NEAR(static_cast<double>(flash.mtp) / 1e9, 6.6, 0.1);
  EXPECT_LT(flash.mtp_active, flash.mtp / 10);
  EXPECT_EQ(CountParameters(Get("tiny")).mtp, 0);
}

TEST(TensorsTest, ShapesOfOneLayerOfEachKind) {
  const auto tensors = ExpectedTensors(Get("flash"));
  const auto table = ByName(tensors);
  const auto shape = [&](const std::string& name) {
    const auto it = table.find(name);
    return it == table.end() ? std::string("none")
                             : it->second->shape.ToString();
  };
  EXPECT_EQ(shape("embed.weight"), "[129280, 4096]");
  EXPECT_EQ(shape("hc_head_fn"), "[4, 16384]");
  EXPECT_EQ(shape("hc_head_scale"), "[1]");
  EXPECT_EQ(shape("layers.0.hc_attn_fn"), "[24, 16384]");
  EXPECT_EQ(shape("layers.0.hc_ffn_scale"), "[3]");
  EXPECT_EQ(shape("layers.0.attn.wq_a.scale"), "[8, 32]");
  EXPECT_EQ(shape("layers.0.attn.wq_b.weight"), "[32768, 1024]");
  EXPECT_EQ(shape("layers.0.attn.wkv.weight"), "[512, 4096]");
  EXPECT_EQ(shape("layers.0.attn.wo_a.weight"), "[8192, 4096]");
  EXPECT_EQ(shape("layers.0.attn.wo_b.weight"), "[4096, 8192]");
  EXPECT_EQ(shape("layers.0.attn.compressor.ape"), "none");
  EXPECT_EQ(shape("layers.0.ffn.gate.tid2eid"), "[129280, 6]");
  EXPECT_EQ(shape("layers.0.ffn.gate.bias"), "none");
  EXPECT_EQ(shape("layers.3.ffn.gate.tid2eid"), "none");
  EXPECT_EQ(shape("layers.3.ffn.gate.bias"), "[256]");
  EXPECT_EQ(shape("layers.3.attn.compressor.ape"), "[128, 512]");
  EXPECT_EQ(shape("layers.3.attn.compressor.wkv.weight"), "[512, 4096]");
  EXPECT_EQ(shape("layers.3.attn.indexer.wq_b.weight"), "none");
  EXPECT_EQ(shape("layers.2.attn.compressor.ape"), "[4, 1024]");
  EXPECT_EQ(shape("layers.2.attn.compressor.norm.weight"), "[512]");
  EXPECT_EQ(shape("layers.2.attn.indexer.wq_b.weight"), "[8192, 1024]");
  EXPECT_EQ(shape("layers.2.attn.indexer.weights_proj.weight"), "[64, 4096]");
  EXPECT_EQ(shape("layers.2.attn.indexer.compressor.ape"), "[4, 256]");
  EXPECT_EQ(shape("layers.2.attn.indexer.compressor.norm.weight"), "[128]");
  EXPECT_EQ(shape("layers.9.ffn.experts.255.w1.weight"), "[2048, 2048]");
  EXPECT_EQ(shape("layers.9.ffn.experts.255.w1.scale"), "[2048, 128]");
  EXPECT_EQ(shape("layers.9.ffn.experts.255.w2.weight"), "[4096, 1024]");
  EXPECT_EQ(shape("layers.9.ffn.experts.256.w1.weight"), "none");
  EXPECT_EQ(shape("layers.9.ffn.shared_experts.w2.scale"), "[32, 16]");
  EXPECT_EQ(shape("mtp.0.e_proj.weight"), "[4096, 4096]");
  EXPECT_EQ(shape("mtp.0.ffn.gate.bias"), "[256]");
  EXPECT_EQ(shape("mtp.0.hc_head_base"), "[4]");
  EXPECT_EQ(shape("mtp.0.norm.weight"), "[4096]");
  EXPECT_EQ(shape("mtp.1.norm.weight"), "none");
}

TEST(TensorsTest, BaseCheckpointsTakeEitherScale) {
  for (const char* preset : {"flash", "flash-base"}) {
    const auto tensors = ExpectedTensors(Get(preset));
    const auto table = ByName(tensors);
    const ExpectedTensor& scale = *table.at("layers.0.attn.wq_a.scale");
    EXPECT_TRUE(scale.accepts(DType::kF32));
    EXPECT_TRUE(scale.accepts(DType::kF8E8M0));
    EXPECT_FALSE(scale.accepts(DType::kBF16));
  }
  const auto base = ExpectedTensors(Get("flash-base"));
  const auto table = ByName(base);
  const ExpectedTensor& expert = *table.at("layers.5.ffn.experts.7.w1.weight");
  EXPECT_EQ(expert.dtype, DType::kF8E4M3);
  EXPECT_EQ(expert.shape, (Shape{2048, 4096}));
  EXPECT_EQ(table.at("layers.5.ffn.experts.7.w1.scale")->shape,
            (Shape{16, 32}));
}

// Every element of every tensor is on exactly one rank, or on all.
TEST(TensorsTest, RanksTogetherHoldTheModelOnce) {
  const ModelConfig config = Get("small");
  constexpr int kTp = 4;
  constexpr int kEp = 2;
  int64_t n_split = 0;
  for (const ExpectedTensor& tensor : ExpectedTensors(config)) {
    int64_t elements = 0;
    std::set<int64_t> begins;
    for (int r = 0; r < kTp * kEp; ++r) {
      const auto slice = SliceOf(tensor, Rank{kTp, r % kTp, kEp, r / kTp});
      ASSERT_TRUE(slice.ok()) << slice.status();
      if (slice->present) elements += slice->shape.n_elements();
      if (slice->dim >= 0) begins.insert(slice->begin);
    }
    const int64_t whole = tensor.shape.n_elements();
    switch (tensor.shard) {
      case Shard::kReplicate:
        EXPECT_EQ(elements, whole * kTp * kEp) << tensor.name;
        break;
      case Shard::kExpert:
        EXPECT_EQ(elements, whole * kTp) << tensor.name;
        break;
      case Shard::kRows:
      case Shard::kColumns:
        EXPECT_EQ(elements, whole * kEp) << tensor.name;
        EXPECT_EQ(begins.size(), 4u) << tensor.name;
        ++n_split;
    }
  }
  // Per layer: attn_sink, and weight and scale of wq_b, wo_a, wo_b.
  EXPECT_EQ(n_split, 2 + 12 * 7);
}

TEST(TensorsTest, SlicesOfAWeightAndItsScaleBelongTogether) {
  const auto tensors = ExpectedTensors(Get("flash"));
  const auto table = ByName(tensors);
  const Rank rank{4, 3, 1, 0};
  const auto slice = [&](const char* name) {
    return *SliceOf(*table.at(name), rank);
  };
  EXPECT_EQ(slice("layers.0.attn.wq_b.weight").shape, (Shape{8192, 1024}));
  EXPECT_EQ(slice("layers.0.attn.wq_b.weight").begin, 24576);
  EXPECT_EQ(slice("layers.0.attn.wq_b.scale").shape, (Shape{64, 8}));
  EXPECT_EQ(slice("layers.0.attn.wq_b.scale").begin, 192);
  EXPECT_EQ(slice("layers.0.attn.wo_b.weight").shape, (Shape{4096, 2048}));
  EXPECT_EQ(slice("layers.0.attn.wo_b.weight").dim, 1);
  EXPECT_EQ(slice("layers.0.attn.wo_b.scale").shape, (Shape{32, 16}));
  EXPECT_EQ(slice("layers.0.attn.wo_b.scale").begin, 48);
  EXPECT_EQ(slice("layers.0.attn.attn_sink").shape, (Shape{16}));
  EXPECT_EQ(slice("layers.2.attn.indexer.wq_b.weight").dim, -1);
}

TEST(TensorsTest, RefusesRanksThatDoNotDivide) {
  const ModelConfig golden = Get("golden");
  EXPECT_TRUE(CheckRank(golden, Rank{2, 1, 2, 1}).ok());
  const Status heads = CheckRank(golden, Rank{3, 0, 1, 0});
  EXPECT_EQ(ErrorIdOf(heads), "CKPT-015");
  EXPECT_EQ(ErrorIdOf(CheckRank(golden, Rank{1, 0, 3, 0})), "CKPT-015");
  EXPECT_EQ(ErrorIdOf(CheckRank(golden, Rank{2, 2, 1, 0})), "CKPT-015");
  EXPECT_EQ(ErrorIdOf(CheckRank(golden, Rank{0, 0, 1, 0})), "CKPT-015");
  // Two groups over two ranks, but 64 columns of wo_b share a 128-block.
  ModelConfig narrow = golden;
  narrow.o_lora_rank = 64;
  const Status block = CheckRank(narrow, Rank{2, 0, 1, 0});
  EXPECT_EQ(ErrorIdOf(block), "CKPT-015");
  EXPECT_THAT(ErrorFactsOf(block).what, HasSubstr("scale block"));
}

// The stages of the 0731 release, as the header says.
TEST(TensorsTest, KnowsTheTensorsOfADraftModel) {
  ModelConfig config = Get("flash");
  const auto sliding = [&] {
    int64_t n = 0;
    for (const ExpectedTensor& tensor : ExpectedTensors(config)) {
      n += tensor.layer == 43 && tensor.family != Family::kMtpInput ? 1 : 0;
    }
    return n;
  }();
  const int64_t block = sliding - 4;  // without norm and hc_head
  EXPECT_EQ(block, 1565);
  // main_proj with its scale and main_norm; norm, hc_head, two Markov matrices
  // and the confidence head.
  EXPECT_EQ(69187 - 1575 + (block + 3) + block + (block + 7), 72317);

  config.n_mtp_layers = 0;
  config.compress_ratios.pop_back();
  config.draft_block = 5;
  config.n_draft_stages = 3;
  for (const char* name :
       {"mtp.0.main_proj.weight", "mtp.0.main_proj.scale",
        "mtp.0.main_norm.weight", "mtp.0.attn.wq_a.weight",
        "mtp.1.ffn.experts.255.w3.scale", "mtp.2.markov_head.markov_w1.weight",
        "mtp.2.confidence_head.proj.weight", "mtp.2.hc_head_fn"}) {
    EXPECT_EQ(UnusedFamilyOf(config, name), "DSpark draft model") << name;
  }
}

TEST(TensorsTest, KnowsWhatTheOfficialConverterDrops) {
  const ModelConfig flash = Get("flash");
  EXPECT_TRUE(UnusedFamilyOf(flash, "mtp.0.embed.weight").has_value());
  EXPECT_TRUE(UnusedFamilyOf(flash, "mtp.0.emb.tok_emb.weight").has_value());
  EXPECT_TRUE(UnusedFamilyOf(flash, "mtp.0.head.weight").has_value());
  EXPECT_TRUE(UnusedFamilyOf(flash, "mtp.1.attn_norm.weight").has_value());
  EXPECT_FALSE(UnusedFamilyOf(flash, "mtp.0.attn.extra.weight").has_value());
  EXPECT_FALSE(UnusedFamilyOf(flash, "layers.0.extra.weight").has_value());
  EXPECT_FALSE(UnusedFamilyOf(flash, "head.weight.extra").has_value());
  EXPECT_FALSE(UnusedFamilyOf(flash, "mtp.x").has_value());
  EXPECT_FALSE(UnusedFamilyOf(flash, "mtp.").has_value());
  EXPECT_FALSE(UnusedFamilyOf(flash, "mtp.99999999999999999999.a").has_value());
}

}  // namespace
}  // namespace belay::spec
