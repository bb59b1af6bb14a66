// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/gguf/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/file.h"
#include "base/float_formats.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/config.h"
#include "checkpoint/gguf/convert.h"
#include "checkpoint/gguf/names.h"

namespace belay::checkpoint::gguf {
namespace {

using ::testing::HasSubstr;

constexpr char kFolder[] = "tests/data/goldens/tiny_fp4";

class GgufModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ =
        (std::filesystem::path(::testing::TempDir()) /
         (std::string(
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) +
          ".gguf"))
            .string();
    auto opened = Checkpoint::Open(kFolder);
    ASSERT_TRUE(opened.ok()) << opened.status();
    checkpoint_ = std::move(opened).value();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  ConvertOptions Options(ExpertType experts, bool mtp) const {
    return {.out = path_,
            .experts = experts,
            .mtp = mtp,
            .add_metadata = {},
            .progress = {}};
  }

  // The bytes of the converted checkpoint with MTP blocks.
  std::string Converted() {
    const auto made =
        ConvertToGguf(*checkpoint_, Options(ExpertType::kMxfp4, true));
    EXPECT_TRUE(made.ok()) << made.status();
    auto text = ReadFile(path_);
    EXPECT_TRUE(text.ok());
    return std::move(text).value();
  }

  Status OpenText(const std::string& text) const {
    // Not through the atomic writer, whose fsync would be most of the test.
    std::ofstream(path_, std::ios::binary) << text;
    return GgufModel::Open(path_).status();
  }

  // What the metadata alone give.
  static Status ConfigOf(const std::string& text) {
    auto file = GgufFile::FromBytes(
        std::as_bytes(std::span(text.data(), text.size())), "f.gguf");
    EXPECT_TRUE(file.ok());
    GgufSet set;
    set.files.push_back(std::move(file).value());
    for (const TensorInfo& t : set.files.front()->tensors()) {
      set.tensors.emplace(t.name, &t);
    }
    return ConfigFromMetadata(set, "f.gguf").status();
  }

  std::string path_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

// Values [rows, cols] of a weight of the official checkpoint.
std::vector<double> Official(const Checkpoint& c, const std::string& name) {
  const ConstTensorView w = *c.Get(name);
  std::vector<double> values;
  if (w.dtype() == DType::kF32) {
    const auto all = w.as<float>();
    return {all.begin(), all.end()};
  }
  if (w.dtype() == DType::kBF16) {
    for (const uint16_t v : w.as<uint16_t>()) values.push_back(F32FromBf16(v));
    return values;
  }
  const ConstTensorView s = *c.Get(
      name.substr(0, name.size() - std::string(".weight").size()) + ".scale");
  const bool fp4 = w.dtype() == DType::kI8;
  for (int64_t r = 0; r < w.dim(0); ++r) {
    for (int64_t k = 0; k < w.dim(1) * (fp4 ? 2 : 1); ++k) {
      const auto byte = w.row<uint8_t>(r)[fp4 ? k / 2 : k];
      const float code = fp4 ? F32FromE2m1(k % 2 == 0 ? byte & 15u : byte >> 4)
                             : F32FromE4m3(byte);
      const int64_t block = fp4 ? 32 : 128;
      values.push_back(
          code * F32FromE8m0(s.row<uint8_t>(fp4 ? r : r / 128)[k / block]));
    }
  }
  return values;
}

std::vector<double> Stored(const StoredView& stored) {
  const ConstTensorView& view = stored.view;
  const bool blocks = stored.format != BlockFormat::kNone;
  const int64_t n_cols =
      !blocks ? view.row_elements()
              : view.dim(1) / static_cast<int64_t>(BlockBytes(stored.format)) *
                    BlockValues(stored.format);
  std::vector<double> values;
  for (int64_t r = 0; r < view.n_rows(); ++r) {
    std::vector<double> row(static_cast<size_t>(n_cols));
    if (blocks) {
      DecodeBlocks(stored.format, view.row<std::byte>(r), n_cols, row.data());
    } else if (view.dtype() == DType::kF32) {
      std::copy_n(view.row<float>(r), n_cols, row.begin());
    } else {
      std::transform(view.row<uint16_t>(r), view.row<uint16_t>(r) + n_cols,
                     row.begin(), F32FromBf16);
    }
    values.insert(values.end(), row.begin(), row.end());
  }
  return values;
}

// Nothing but Q8_0 changes a value, and Q8_0 by at most half a step of the
// largest in its 32, and the rounding of the scale to float16: 2^-11 of it.
void ExpectClose(const std::vector<double>& official,
                 const std::vector<double>& stored, bool is_q8_0) {
  ASSERT_EQ(official.size(), stored.size());
  for (size_t begin = 0; begin < official.size(); begin += 32) {
    const size_t end = std::min(official.size(), begin + 32);
    double amax = 0.0;
    for (size_t i = begin; i < end; ++i) {
      amax = std::max(amax, std::abs(official[i]));
    }
    const double bound =
        is_q8_0 ? amax * (0.5 / 127 * 1.001 + 0x1p-11) + 0x1p-24 : 0.0;
    for (size_t i = begin; i < end; ++i) {
      ASSERT_NEAR(official[i], stored[i], bound) << i;
    }
  }
}

TEST_F(GgufModelTest, RoundTripKeepsEveryTensor) {
  for (const bool mtp : {false, true}) {
    for (const ExpertType experts : {ExpertType::kMxfp4, ExpertType::kQ8_0}) {
      const ConvertOptions options = Options(experts, mtp);
      const auto made = ConvertToGguf(*checkpoint_, options);
      ASSERT_TRUE(made.ok()) << made.status();
      EXPECT_EQ(VerifyGguf(*checkpoint_, options), absl::OkStatus());
      const auto model = GgufModel::Open(path_, /*strict=*/true);
      ASSERT_TRUE(model.ok()) << model.status();
      EXPECT_EQ((*model)->config().n_mtp_layers, mtp ? 1 : 0);
      for (const auto& t : checkpoint_->tensors()) {
        if (t.role == spec::Role::kScale) continue;
        if (!mtp && t.layer >= (*model)->config().n_layers) continue;
        SCOPED_TRACE(t.name);
        const StoredView stored = (*model)->Find(t.name);
        ASSERT_FALSE(stored.empty());
        if (t.role == spec::Role::kTable) {
          const auto ids = checkpoint_->Get(t.name)->as<int64_t>();
          const auto got = stored.view.as<int64_t>();
          ASSERT_TRUE(
              std::equal(ids.begin(), ids.end(), got.begin(), got.end()));
          continue;
        }
        if (t.dtype == DType::kI8) {
          EXPECT_EQ(stored.format, experts == ExpertType::kMxfp4
                                       ? BlockFormat::kMxfp4
                                       : BlockFormat::kQ8_0);
        }
        ExpectClose(Official(*checkpoint_, t.name), Stored(stored),
                    stored.format == BlockFormat::kQ8_0);
      }
    }
  }
}

// Renames one key or tensor in place.
std::string Renamed(std::string text, const std::string& name) {
  const size_t at = text.find(name);
  EXPECT_NE(at, std::string::npos) << name;
  text[at + name.size() - 1] = '!';
  return text;
}

TEST_F(GgufModelTest, MissingKeysAreNamed) {
  const std::string good = Converted();
  ASSERT_EQ(OpenText(good), absl::OkStatus());
  for (const char* key : {"general.architecture",
                          "deepseek4.block_count",
                          "deepseek4.embedding_length",
                          "deepseek4.attention.head_count_kv",
                          "deepseek4.attention.key_length",
                          "deepseek4.attention.q_lora_rank",
                          "deepseek4.attention.output_group_count",
                          "deepseek4.attention.sliding_window",
                          "deepseek4.attention.compress_ratios",
                          "deepseek4.attention.compress_rope_freq_base",
                          "deepseek4.attention.indexer.top_k",
                          "deepseek4.rope.dimension_count",
                          "deepseek4.expert_used_count",
                          "deepseek4.expert_feed_forward_length",
                          "deepseek4.expert_weights_scale",
                          "deepseek4.expert_weights_norm",
                          "deepseek4.expert_gating_func",
                          "deepseek4.swiglu_clamp_exp",
                          "deepseek4.hash_layer_count",
                          "deepseek4.hyper_connection.count"}) {
    const Status status = ConfigOf(Renamed(good, key));
    EXPECT_EQ(ErrorIdOf(status), "CONF-001") << key << ": " << status;
    EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr(key));
  }
}

TEST_F(GgufModelTest, MissingAndWrongTensorsAreNamed) {
  const std::string good = Converted();
  for (const char* name :
       {"token_embd.weight", "output_hc_fn.weight", "blk.0.attn_kv.weight",
        "blk.1.indexer_compressor_ape.weight", "blk.2.ffn_down_exps.weight",
        "blk.0.ffn_gate_tid2eid.weight", "blk.6.nextn.hnorm.weight"}) {
    const Status status = OpenText(Renamed(good, name));
    EXPECT_EQ(ErrorIdOf(status), "CKPT-007") << name << ": " << status;
    EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr(name));
  }
  // A bias may be absent: ds4 leaves out those that are zero.
  EXPECT_EQ(OpenText(Renamed(good, "blk.3.exp_probs_b.bias")),
            absl::OkStatus());

  std::string text = good;
  text.replace(text.find("deepseek4", text.find("general.architecture")), 9,
               "deepseek2");
  EXPECT_EQ(ErrorIdOf(OpenText(text)), "GGUF-003");

  // Another type of the same size a row, known by name only: IQ4_NL is 18
  // bytes a block; the type field stands behind name, n_dims and dims.
  text = good;
  const std::string name = "blk.2.ffn_down_exps.weight";
  const size_t type = text.find(name) + name.size() + 4 + 3 * 8;
  text[type] = 20;
  const Status status = OpenText(text);
  EXPECT_EQ(ErrorIdOf(status), "GGUF-004") << status;
  EXPECT_EQ(ErrorFactsOf(status).got, "IQ4_NL");
}

TEST_F(GgufModelTest, ExpertIdsAreChecked) {
  std::string text = Converted();
  const auto model = GgufModel::Open(path_);
  ASSERT_TRUE(model.ok());
  const uint64_t at =
      (*model)->files().tensors.at("blk.0.ffn_gate_tid2eid.weight")->offset;
  text[at] = 100;
  EXPECT_EQ(ErrorIdOf(OpenText(text)), "CKPT-013");
}

TEST_F(GgufModelTest, MtpRatioMayBeLeftOut) {
  // Seven entries with the MTP block counted and without: one is kept for
  // each block that is there.
  Converted();
  const auto with = GgufModel::Open(path_);
  ASSERT_TRUE(with.ok());
  EXPECT_EQ((*with)->config().compress_ratios.size(), 7u);
  const auto made =
      ConvertToGguf(*checkpoint_, Options(ExpertType::kMxfp4, false));
  ASSERT_TRUE(made.ok());
  const auto without = GgufModel::Open(path_);
  ASSERT_TRUE(without.ok()) << without.status();
  EXPECT_EQ((*without)->config().compress_ratios.size(), 6u);
}

TEST_F(GgufModelTest, EveryTensorHasAPlace) {
  for (const auto& t : checkpoint_->tensors()) {
    const auto places = PlacesOf(checkpoint_->config(), t.name);
    EXPECT_EQ(places.empty(), t.role == spec::Role::kScale) << t.name;
  }
}

TEST_F(GgufModelTest, SpellingsOfOthers) {
  const auto has = [&](const char* official, const std::string& name) {
    const auto places = PlacesOf(checkpoint_->config(), official);
    return std::any_of(places.begin(), places.end(),
                       [&](const Place& p) { return p.name == name; });
  };
  EXPECT_TRUE(has("layers.2.attn.wkv.weight", "blk.2.attn_kv_latent.weight"));
  EXPECT_TRUE(has("hc_head_fn", "hc_head_fn.weight"));
  EXPECT_TRUE(has("mtp.0.attn.wkv.weight", "blk.6.attn_kv.weight"));
  EXPECT_TRUE(has("mtp.0.attn.wkv.weight", "mtp.0.attn_kv.weight"));
  EXPECT_TRUE(has("mtp.0.e_proj.weight", "blk.6.nextn.eh_proj.weight"));
  EXPECT_TRUE(has("mtp.0.e_proj.weight", "mtp.0.e_proj.weight"));
  EXPECT_TRUE(has("mtp.0.hc_head_fn", "mtp.0.hc_head_fn.weight"));
}

}  // namespace
}  // namespace belay::checkpoint::gguf
