// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/error_ids.h"
#include "base/file.h"
#include "base/random.h"
#include "checkpoint/make_model.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shards.h"
#include "spec/presets.h"

namespace belay::checkpoint {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Every kind of layer, as small as the formats allow.
spec::ModelConfig SmallConfig(spec::ExpertFormat format) {
  spec::ModelConfig c = *spec::PresetConfig("golden-base");
  c.expert_format = format;
  c.dim = 128;
  c.n_heads = 4;
  c.vocab_size = 64;
  c.n_routed_experts = 4;
  return c;
}

// A tensor with its own bytes.
struct Owned {
  DType dtype;
  Shape shape;
  std::vector<std::byte> data;
};

class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              ("belay_checkpoint_" +
               std::to_string(reinterpret_cast<uintptr_t>(this)));
    fs::remove_all(folder_);
    options_.config = SmallConfig(spec::ExpertFormat::kFp4);
    options_.folder = folder_.string();
    options_.seed = 7;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void Make() {
    const auto made = MakeModel(options_);
    ASSERT_TRUE(made.ok()) << made.status();
  }
  std::string Path(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::string OpenId(const CheckpointOptions& options = {}) const {
    return ErrorIdOf(Checkpoint::Open(folder_.string(), options).status());
  }

  // Reads all tensors, lets `edit` change them, and writes them again.
  void Rewrite(const std::function<void(std::map<std::string, Owned>&)>& edit) {
    std::map<std::string, Owned> tensors;
    {
      const auto file = SafetensorsFile::Open(Path(kSingleFileName));
      ASSERT_TRUE(file.ok()) << file.status();
      for (const StoredTensor& t : (*file)->tensors()) {
        const auto* data = static_cast<const std::byte*>(t.view.data());
        tensors[t.name] = {
            t.view.dtype(), t.view.shape(), {data, data + t.view.bytes()}};
      }
    }
    edit(tensors);
    std::vector<NamedView> views;
    for (const auto& [name, t] : tensors) {
      views.push_back({name, ConstTensorView(t.data.data(), t.dtype, t.shape)});
    }
    ASSERT_TRUE(WriteSafetensors(Path(kSingleFileName), views).ok());
  }

  fs::path folder_;
  MakeModelOptions options_;
};

TEST_F(CheckpointTest, OpensWhatMakeModelWrote) {
  for (const auto format :
       {spec::ExpertFormat::kFp4, spec::ExpertFormat::kFp8}) {
    fs::remove_all(folder_);
    options_.config = SmallConfig(format);
    Make();
    const auto checkpoint = Checkpoint::Open(options_.folder, {.strict = true});
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    EXPECT_EQ((*checkpoint)->config(), options_.config);
    EXPECT_EQ((*checkpoint)->n_files(), 1);
    EXPECT_TRUE((*checkpoint)->report().warnings.empty());
    EXPECT_TRUE(VerifyModel(options_).ok()) << VerifyModel(options_);
    options_.seed ^= 1;
    EXPECT_EQ(ErrorIdOf(VerifyModel(options_)), "CKPT-013");
  }
}

TEST_F(CheckpointTest, ShardsHoldTheSameTensors) {
  Make();
  const auto whole = Checkpoint::Open(options_.folder);
  ASSERT_TRUE(whole.ok());
  options_.folder = Path("sharded");
  options_.max_shard_bytes = 200000;
  Make();
  const auto sharded = Checkpoint::Open(options_.folder);
  ASSERT_TRUE(sharded.ok()) << sharded.status();
  EXPECT_GT((*sharded)->n_files(), 3);
  EXPECT_TRUE((*sharded)->report().warnings.empty());
  for (const auto& tensor : (*whole)->tensors()) {
    const auto a = (*whole)->Get(tensor.name);
    const auto b = (*sharded)->Get(tensor.name);
    ASSERT_TRUE(a.ok() && b.ok());
    ASSERT_EQ(a->bytes(), b->bytes());
    EXPECT_EQ(std::memcmp(a->data(), b->data(), a->bytes()), 0) << tensor.name;
  }
}

TEST_F(CheckpointTest, AnyNumberOfThreadsWritesTheSameFile) {
  Make();
  const auto one = ReadFile(Path(kSingleFileName));
  auto pool = ThreadPool::Create(3);
  ASSERT_TRUE(pool.ok());
  options_.folder = Path("again");
  options_.pool = pool->get();
  Make();
  const auto three = ReadFile(Path("again/model.safetensors"));
  ASSERT_TRUE(one.ok() && three.ok());
  EXPECT_TRUE(*one == *three);
}

TEST_F(CheckpointTest, WillNotWriteOverACheckpoint) {
  Make();
  EXPECT_EQ(ErrorIdOf(MakeModel(options_).status()), "ARG-001");
}

TEST_F(CheckpointTest, AStoppedRunLeavesNoFile) {
  options_.progress = [](uint64_t, uint64_t) {
    return MakeError(kSysInterrupted, {});
  };
  EXPECT_EQ(ErrorIdOf(MakeModel(options_).status()), "SYS-004");
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(CheckpointTest, SlicesAreViewsOfTheFile) {
  options_.config = SmallConfig(spec::ExpertFormat::kFp8);
  Make();
  const auto checkpoint = Checkpoint::Open(options_.folder);
  ASSERT_TRUE(checkpoint.ok());
  const Checkpoint& c = **checkpoint;
  const spec::Rank rank{2, 1, 2, 1};
  const auto get = [&](const char* name) { return *c.Get(name); };
  const auto slice = [&](const char* name) { return *c.Slice(name, rank); };

  const ConstTensorView rows = slice("layers.0.attn.wq_b.weight");
  EXPECT_EQ(rows.shape(), (Shape{256, 128}));
  EXPECT_EQ(rows.row<uint8_t>(0),
            get("layers.0.attn.wq_b.weight").row<uint8_t>(256));
  const ConstTensorView columns = slice("layers.0.attn.wo_b.weight");
  EXPECT_EQ(columns.shape(), (Shape{128, 128}));
  EXPECT_EQ(columns.row_bytes_stride(), 256u);
  EXPECT_EQ(columns.row<uint8_t>(3),
            get("layers.0.attn.wo_b.weight").row<uint8_t>(3) + 128);
  EXPECT_EQ(slice("layers.0.attn.wo_b.scale").shape(), (Shape{1, 1}));
  EXPECT_EQ(slice("layers.0.attn.wo_b.scale").row<float>(0),
            get("layers.0.attn.wo_b.scale").row<float>(0) + 1);
  EXPECT_EQ(slice("layers.0.attn.wkv.weight").shape(), (Shape{128, 128}));
  EXPECT_TRUE(slice("layers.0.ffn.experts.1.w1.weight").empty());
  EXPECT_FALSE(slice("layers.0.ffn.experts.2.w1.weight").empty());
  EXPECT_EQ(ErrorIdOf(c.Slice("layers.9.x", rank).status()), "CKPT-007");
  EXPECT_EQ(ErrorIdOf(c.Slice("embed.weight", spec::Rank{3, 0, 1, 0}).status()),
            "CKPT-015");
}

TEST_F(CheckpointTest, NothingThere) {
  EXPECT_EQ(OpenId(), "CKPT-014");
  fs::create_directories(folder_);
  EXPECT_EQ(OpenId(), "CKPT-014");
  ASSERT_TRUE(WriteFileAtomically(Path("config.json"),
                                  spec::ConfigToJson(options_.config))
                  .ok());
  EXPECT_EQ(OpenId(), "CKPT-014");
  ASSERT_TRUE(WriteFileAtomically(Path("config.json"), "{}").ok());
  EXPECT_EQ(OpenId(), "CONF-001");
}

TEST_F(CheckpointTest, MissingWrongAndUnknownTensors) {
  Make();
  Rewrite([](auto& t) { t.erase("layers.1.attn.wkv.scale"); });
  EXPECT_EQ(OpenId(), "CKPT-007");
  const Status status = Checkpoint::Open(options_.folder).status();
  EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr("layers.1.attn.wkv.scale"));

  fs::remove_all(folder_);
  Make();
  Rewrite([](auto& t) { t["norm.weight"].dtype = DType::kF16; });
  EXPECT_EQ(OpenId(), "CKPT-005");
  Rewrite([](auto& t) {
    t["norm.weight"].dtype = DType::kBF16;
    t["norm.weight"].shape = {2, 64};
  });
  EXPECT_EQ(OpenId(), "CKPT-006");
  Rewrite([](auto& t) {
    t["norm.weight"].shape = {128};
    t["layers.0.extra"] = {DType::kF32, {1}, std::vector<std::byte>(4)};
    t["mtp.0.embed.weight"] = {DType::kF32, {2}, std::vector<std::byte>(8)};
  });
  const auto checkpoint = Checkpoint::Open(options_.folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_THAT((*checkpoint)->report().unknown, ElementsAre("layers.0.extra"));
  ASSERT_EQ((*checkpoint)->report().unused.size(), 1u);
  EXPECT_EQ((*checkpoint)->report().unused.begin()->second.bytes, 8u);
  EXPECT_EQ(OpenId({.strict = true}), "CKPT-009");
}

TEST_F(CheckpointTest, ScalesMayBeF32OrE8m0) {
  Make();
  Rewrite([](auto& t) {
    t["layers.0.attn.wkv.scale"] = {
        DType::kF32, {1, 1}, std::vector<std::byte>(4, std::byte{60})};
  });
  EXPECT_EQ(OpenId(), "");
}

TEST_F(CheckpointTest, BadValues) {
  Make();
  const char* const scale = "layers.2.ffn.experts.3.w2.scale";
  Rewrite([&](auto& t) { t[scale].data[5] = std::byte{255}; });
  const Status status = Checkpoint::Open(options_.folder).status();
  EXPECT_EQ(ErrorIdOf(status), "CKPT-008");
  EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr(scale));
  EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr("[1, 1]"));
  auto pool = ThreadPool::Create(2);
  ASSERT_TRUE(pool.ok());
  EXPECT_EQ(
      OpenId({.strict = false, .check_values = true, .pool = pool->get()}),
      "CKPT-008");
  EXPECT_EQ(OpenId({.strict = false, .check_values = false}), "");

  Rewrite([&](auto& t) {
    t[scale].data[5] = std::byte{120};
    const int64_t bad = 4;
    std::memcpy(t["layers.0.ffn.gate.tid2eid"].data.data() + 8, &bad, 8);
  });
  EXPECT_EQ(OpenId(), "CKPT-013");

  options_.config = SmallConfig(spec::ExpertFormat::kFp8);
  for (const float bad : {0.0f, -1.0f, std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    fs::remove_all(folder_);
    Make();
    Rewrite([&](auto& t) { std::memcpy(t[scale].data.data(), &bad, 4); });
    EXPECT_EQ(OpenId(), "CKPT-008") << bad;
  }
}

TEST_F(CheckpointTest, ACheckpointWithoutItsMtpLayerOpensWithoutOne) {
  Make();
  Rewrite([](auto& t) {
    std::erase_if(
        t, [](const auto& item) { return item.first.substr(0, 4) == "mtp."; });
  });
  const auto checkpoint = Checkpoint::Open(options_.folder);
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
  EXPECT_EQ((*checkpoint)->config().n_mtp_layers, 0);
  EXPECT_EQ((*checkpoint)->report().warnings.size(), 1u);
}

class ShardsTest : public CheckpointTest {
 protected:
  void SetUp() override {
    CheckpointTest::SetUp();
    options_.max_shard_bytes = 400000;
    Make();
    const auto text = ReadFile(Path(kIndexFileName));
    ASSERT_TRUE(text.ok());
    index_ = nlohmann::json::parse(*text);
  }
  void WriteIndex() {
    ASSERT_TRUE(WriteFileAtomically(Path(kIndexFileName), index_.dump()).ok());
  }
  nlohmann::json index_;
};

TEST_F(ShardsTest, AMissingShard) {
  fs::remove(Path(index_["weight_map"]["norm.weight"]));
  EXPECT_EQ(OpenId(), "CKPT-011");
}

TEST_F(ShardsTest, IndexAndShardsDisagree) {
  const auto good = index_;
  const std::string other = index_["weight_map"]["mtp.0.norm.weight"];
  ASSERT_NE(index_["weight_map"]["norm.weight"], other);
  index_["weight_map"]["norm.weight"] = other;
  WriteIndex();
  EXPECT_EQ(OpenId(), "CKPT-010");
  index_ = good;
  index_["weight_map"]["no.such.tensor"] = other;
  WriteIndex();
  EXPECT_EQ(OpenId(), "CKPT-010");
  index_ = good;
  index_["weight_map"].erase("norm.weight");
  WriteIndex();
  EXPECT_EQ(OpenId(), "CKPT-010");
  index_ = good;
  index_["metadata"]["total_size"] = 5;
  WriteIndex();
  const auto checkpoint = Checkpoint::Open(options_.folder);
  ASSERT_TRUE(checkpoint.ok());
  EXPECT_THAT((*checkpoint)->report().warnings,
              ElementsAre(HasSubstr("total_size")));
}

TEST_F(ShardsTest, ATensorInTwoShards) {
  const auto shard =
      SafetensorsFile::Open(Path(index_["weight_map"]["norm.weight"]));
  ASSERT_TRUE(shard.ok());
  const NamedView twice[] = {{"norm.weight", *(*shard)->Get("norm.weight")}};
  ASSERT_TRUE(WriteSafetensors(Path("z.safetensors"), twice).ok());
  index_["weight_map"]["extra"] = "z.safetensors";
  WriteIndex();
  EXPECT_EQ(OpenId(), "CKPT-012");
}

TEST_F(ShardsTest, MalformedIndices) {
  for (const char* text :
       {"", "[]", "{}", "{\"weight_map\":[]}", "{\"weight_map\":{\"a\":1}}",
        "{\"weight_map\":{\"a\":\"../b.safetensors\"}}",
        "{\"weight_map\":{\"a\":\"\"}}", "{\"weight_map\":{\"a\":\"..\"}}"}) {
    ASSERT_TRUE(WriteFileAtomically(Path(kIndexFileName), text).ok());
    EXPECT_EQ(OpenId(), "CKPT-010") << text;
  }
  std::string deep = "{\"weight_map\":";
  for (int i = 0; i < 100000; ++i) deep += '[';
  ASSERT_TRUE(WriteFileAtomically(Path(kIndexFileName), deep).ok());
  EXPECT_EQ(OpenId(), "CKPT-010");
}

// Random damage of the file's head gives an id or a checkpoint, never a crash.
TEST_F(CheckpointTest, DamagedFilesNeverCrash) {
  Make();
  const auto good = ReadFile(Path(kSingleFileName));
  ASSERT_TRUE(good.ok());
  int n_refused = 0;
  for (uint64_t round = 0; round < 60; ++round) {
    std::string text = *good;
    const uint64_t bits = RandomBits(3, round);
    if (round % 4 == 0) text.resize(bits % text.size());
    for (uint64_t k = 0; k < 3; ++k) {
      const uint64_t at = RandomBits(4 + k, round) % (20000);
      if (at < text.size()) text[at] = static_cast<char>(bits >> (8 * k));
    }
    std::ofstream(Path(kSingleFileName), std::ios::binary) << text;
    const Status status = Checkpoint::Open(options_.folder).status();
    if (status.ok()) continue;
    ++n_refused;
    EXPECT_THAT(ErrorIdOf(status), HasSubstr("CKPT-")) << status;
  }
  EXPECT_GT(n_refused, 40);
}

// The weights of a random model are about as large as its recipe says.
TEST_F(CheckpointTest, RandomWeightsHaveTheirSize) {
  Make();
  const auto checkpoint = Checkpoint::Open(options_.folder);
  ASSERT_TRUE(checkpoint.ok());
  const auto embed = (*checkpoint)->Get("embed.weight");
  ASSERT_TRUE(embed.ok());
  double sum = 0;
  double squares = 0;
  for (const uint16_t code : embed->as<uint16_t>()) {
    const double x = std::bit_cast<float>(static_cast<uint32_t>(code) << 16);
    sum += x;
    squares += x * x;
  }
  const auto n = static_cast<double>(embed->n_elements());
  EXPECT_NEAR(sum / n, 0, 0.05);
  EXPECT_NEAR(squares / n, 1, 0.05);
}

}  // namespace
}  // namespace belay::checkpoint
