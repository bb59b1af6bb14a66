// SPDX-License-Identifier: Apache-2.0
#include "spec/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "base/error_ids.h"
#include "spec/presets.h"

namespace belay::spec {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

ModelConfig Get(std::string_view preset) { return *PresetConfig(preset); }

// A released config with one thing changed.
Json FlashJson() { return Json::parse(ConfigToJson(Get("flash"))); }

Status ParseStatus(const Json& json) {
  return ParseConfig(json.dump(), "config.json").status();
}

std::string IdWith(const char* key, const Json& value) {
  Json json = FlashJson();
  json[key] = value;
  return ErrorIdOf(ParseStatus(json));
}

// inference/config.json of the golden model.
constexpr const char* kInferenceSpelling = R"({
  "dim": 256, "moe_inter_dim": 128, "n_layers": 6, "n_hash_layers": 1,
  "n_mtp_layers": 1, "n_heads": 8, "n_routed_experts": 16,
  "n_shared_experts": 1, "n_activated_experts": 2,
  "score_func": "sqrtsoftplus", "route_scale": 1.5, "swiglu_limit": 10.0,
  "q_lora_rank": 128, "head_dim": 128, "rope_head_dim": 64, "norm_eps": 1e-06,
  "o_groups": 2, "o_lora_rank": 128, "window_size": 16,
  "compress_ratios": [128, 4, 128, 4, 4, 0, 0],
  "compress_rope_theta": 160000.0, "original_seq_len": 65536,
  "rope_theta": 10000.0, "rope_factor": 16, "beta_fast": 32, "beta_slow": 1,
  "index_n_heads": 4, "index_head_dim": 128, "index_topk": 8, "hc_mult": 4,
  "hc_sinkhorn_iters": 20, "hc_eps": 1e-06, "vocab_size": 1024})";

TEST(ConfigTest, BothSpellingsGiveTheSameModel) {
  const auto inference = ParseConfig(kInferenceSpelling, "inference");
  ASSERT_TRUE(inference.ok()) << inference.status();
  EXPECT_EQ(*inference, Get("golden"));
  const auto hf = ParseConfig(ConfigToJson(Get("golden")), "hf");
  ASSERT_TRUE(hf.ok()) << hf.status();
  EXPECT_EQ(*hf, *inference);
}

TEST(ConfigTest, EveryPresetIsValidAndSurvivesJson) {
  for (const Preset& preset : Presets()) {
    const ModelConfig config = preset.make();
    EXPECT_TRUE(CheckConfig(config, preset.name).ok())
        << preset.name << ": " << CheckConfig(config, preset.name);
    const auto again = ParseConfig(ConfigToJson(config), preset.name);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(*again, config) << preset.name;
  }
  EXPECT_EQ(ErrorIdOf(PresetConfig("huge").status()), "ARG-001");
}

TEST(ConfigTest, EveryFieldSurvivesJson) {
  ModelConfig config = Get("golden");
  config.fp4_block = 64;
  config.kv_quant_group = 32;
  config.index_quant_group = 64;
  config.q_head_norm = false;
  config.encoding_revision = "0731";
  config.rope_theta = 12345.5;
  config.hc_eps = 3e-7f;
  config.swiglu_limit = 7.25f;
  config.fp8_block = 64;
  config.bos_id = 7;
  config.eos_id = 9;
  config.beta_fast = 31.5;
  config.max_positions = 4096;
  const auto again = ParseConfig(ConfigToJson(config), "x");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, config);
}

TEST(ConfigTest, WritesNumbersAsTheReleasesDo) {
  const Json json = FlashJson();
  EXPECT_EQ(json["rms_norm_eps"].dump(), "1e-06");
  EXPECT_EQ(json["rope_theta"].dump(), "10000");
  EXPECT_EQ(json["routed_scaling_factor"].dump(), "1.5");
  EXPECT_FALSE(json.contains("belay"));
}

// The 0731 and 0813 releases: a list that goes on for the three stages of the
// draft model, which keep their tensors under mtp.
TEST(ConfigTest, ADraftModelReplacesTheMtpHead) {
  Json json = FlashJson();
  json["dspark_block_size"] = 5;
  json["dspark_target_layer_ids"] = {40, 41, 42};
  json["dspark_markov_rank"] = 256;
  json["dspark_noise_token_id"] = 128799;
  json["compress_ratios"].push_back(0);
  json["compress_ratios"].push_back(0);
  const auto config = ParseConfig(json.dump(), "0731");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->n_mtp_layers, 0);
  EXPECT_EQ(config->draft_block, 5);
  EXPECT_EQ(config->n_draft_stages, 3);
  EXPECT_EQ(config->draft_tap_layers, (std::vector<int>{40, 41, 42}));
  EXPECT_EQ(config->compress_ratios.size(), 43u);
  const auto again = ParseConfig(ConfigToJson(*config), "again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *config);
  json["dspark_target_layer_ids"] = {43};
  EXPECT_EQ(ErrorIdOf(ParseStatus(json)), "CONF-003");
}

// Found by the fuzzer: such a list was kept, and lost when it was written.
TEST(ConfigTest, TapsWithoutADraftModelAreNone) {
  Json json = FlashJson();
  json["dspark_target_layer_ids"] = {3, 4, 5};
  const auto config = ParseConfig(json.dump(), "x");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->draft_tap_layers.empty());
  const auto again = ParseConfig(ConfigToJson(*config), "again");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, *config);
}

TEST(ConfigTest, TheMtpEntriesOfTheRatiosMayBeLeftOut) {
  Json json = FlashJson();
  json["compress_ratios"].erase(43);
  const auto config = ParseConfig(json.dump(), "x");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(*config, Get("flash"));
}

TEST(ConfigTest, ExpertsAreFp4UnlessSaidOtherwise) {
  Json json = FlashJson();
  json.erase("expert_dtype");
  EXPECT_EQ(ParseConfig(json.dump(), "x")->expert_format, ExpertFormat::kFp4);
  json["expert_dtype"] = nullptr;
  EXPECT_EQ(ParseConfig(json.dump(), "x")->expert_format, ExpertFormat::kFp4);
  EXPECT_EQ(IdWith("expert_dtype", "int4"), "CONF-003");
  EXPECT_EQ(IdWith("expert_dtype", 4), "CONF-003");
}

TEST(ConfigTest, NotJson) {
  std::string deep;
  for (int i = 0; i < 1000000; ++i) deep += '[';
  for (const std::string& text :
       {std::string(""), std::string("{"), std::string("NaN"), deep,
        std::string("[]"), std::string("3"), std::string("{\"a\":NaN}"),
        std::string("{\"rope_theta\":1e999}"), std::string("\xff")}) {
    EXPECT_EQ(ErrorIdOf(ParseConfig(text, "x").status()), "CONF-004")
        << text.substr(0, 20);
  }
}

TEST(ConfigTest, AnotherModel) {
  EXPECT_EQ(IdWith("model_type", "llama"), "CONF-002");
  EXPECT_EQ(IdWith("model_type", 4), "CONF-002");
  Json json = FlashJson();
  json.erase("model_type");
  EXPECT_TRUE(ParseStatus(json).ok());
  json["architectures"] = {"DeepseekV41ForCausalLM"};
  EXPECT_EQ(ErrorIdOf(ParseStatus(json)), "CONF-002");
  json.erase("architectures");
  EXPECT_EQ(ErrorIdOf(ParseStatus(json)), "CONF-001");
  // Another model is named before its missing keys are.
  EXPECT_EQ(ErrorIdOf(ParseStatus({{"model_type", "qwen3"}})), "CONF-002");
}

TEST(ConfigTest, MissingKeysAreNamedInTheSpellingOfTheFile) {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_hash_layers", "vocab_size",
        "num_attention_heads", "q_lora_rank", "o_groups", "o_lora_rank",
        "compress_ratios", "index_n_heads", "index_topk", "n_routed_experts",
        "num_experts_per_tok", "moe_intermediate_size",
        "routed_scaling_factor"}) {
    Json json = FlashJson();
    json.erase(key);
    const Status status = ParseStatus(json);
    EXPECT_EQ(ErrorIdOf(status), "CONF-001") << key;
    EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr(key));
  }
  Json json = Json::parse(kInferenceSpelling);
  json.erase("n_layers");
  EXPECT_THAT(ErrorFactsOf(ParseStatus(json)).where, HasSubstr("n_layers"));
}

TEST(ConfigTest, BadValues) {
  EXPECT_EQ(IdWith("hidden_size", "4096"), "CONF-003");
  EXPECT_EQ(IdWith("hidden_size", -4096), "CONF-003");
  EXPECT_EQ(IdWith("hidden_size", 0), "CONF-003");
  EXPECT_EQ(IdWith("hidden_size", 4096.5), "CONF-003");
  EXPECT_EQ(IdWith("hidden_size", nullptr), "CONF-003");
  EXPECT_EQ(IdWith("hidden_size", Json::array({1})), "CONF-003");
  EXPECT_EQ(IdWith("vocab_size", UINT64_MAX), "CONF-003");
  EXPECT_EQ(IdWith("hc_mult", int64_t{1} << 40), "CONF-003");
  EXPECT_EQ(IdWith("rms_norm_eps", 0.0), "CONF-003");
  EXPECT_EQ(IdWith("rms_norm_eps", "1e-6"), "CONF-003");
  EXPECT_EQ(IdWith("rope_theta", -1), "CONF-003");
  EXPECT_EQ(IdWith("rope_theta", 1e300), "CONF-003");
  EXPECT_EQ(IdWith("swiglu_limit", true), "CONF-003");
  EXPECT_EQ(IdWith("n_shared_experts", 2), "CONF-003");
  EXPECT_EQ(IdWith("n_routed_experts", 1 << 16), "CONF-003");
  EXPECT_EQ(IdWith("num_key_value_heads", 8), "CONF-003");
  EXPECT_EQ(IdWith("scoring_func", "softmax"), "CONF-003");
  EXPECT_EQ(IdWith("norm_topk_prob", false), "CONF-003");
  EXPECT_EQ(IdWith("tie_word_embeddings", true), "CONF-003");
  EXPECT_EQ(IdWith("eos_token_id", 129280), "CONF-003");
  EXPECT_EQ(IdWith("num_hash_layers", 44), "CONF-003");
  EXPECT_EQ(IdWith("compress_ratios", "4"), "CONF-003");
  EXPECT_EQ(IdWith("rope_scaling", 3), "CONF-003");
  EXPECT_EQ(IdWith("rope_scaling", {{"type", "linear"}}), "CONF-003");
  EXPECT_EQ(IdWith("rope_scaling", {{"factor", "16"}}), "CONF-003");
  EXPECT_EQ(IdWith("quantization_config", {{"weight_block_size", {128, 64}}}),
            "CONF-003");
  EXPECT_EQ(IdWith("quantization_config", {{"weight_block_size", 128}}),
            "CONF-003");
  EXPECT_EQ(IdWith("belay", 3), "CONF-003");
  EXPECT_EQ(IdWith("belay", {{"encoding_revision", "9"}}), "CONF-003");
  Json ratios = FlashJson()["compress_ratios"];
  ratios[5] = 8;
  EXPECT_EQ(IdWith("compress_ratios", ratios), "CONF-003");
}

TEST(ConfigTest, ValuesThatContradict) {
  EXPECT_EQ(IdWith("dim", 2048), "CONF-005");  // beside hidden_size 4096
  EXPECT_EQ(IdWith("dim", 4096), "");
  EXPECT_EQ(IdWith("compress_ratios", {0, 4}), "CONF-005");
  EXPECT_EQ(IdWith("o_groups", 5), "CONF-005");
  EXPECT_EQ(IdWith("hidden_size", 4000), "CONF-005");
  EXPECT_EQ(IdWith("q_lora_rank", 1000), "CONF-005");
  EXPECT_EQ(IdWith("moe_intermediate_size", 2000), "CONF-005");
  EXPECT_EQ(IdWith("head_dim", 500), "CONF-005");
  EXPECT_EQ(IdWith("qk_rope_head_dim", 63), "CONF-005");
  EXPECT_EQ(IdWith("index_head_dim", 96), "CONF-005");
  EXPECT_EQ(IdWith("index_head_dim", 32), "CONF-005");
  EXPECT_EQ(IdWith("num_experts_per_tok", 200), "");
  EXPECT_EQ(IdWith("n_routed_experts", 4), "CONF-005");
  Json ratios = FlashJson()["compress_ratios"];
  ratios[43] = 4;  // the MTP layer
  EXPECT_EQ(IdWith("compress_ratios", ratios), "CONF-005");
}

TEST(ConfigTest, LayerKinds) {
  const ModelConfig flash = Get("flash");
  EXPECT_EQ(flash.kind(0), LayerKind::kSliding);
  EXPECT_EQ(flash.kind(2), LayerKind::kCsa);
  EXPECT_EQ(flash.kind(41), LayerKind::kHca);
  EXPECT_EQ(flash.kind(42), LayerKind::kCsa);
  EXPECT_EQ(flash.kind(43), LayerKind::kSliding);
  EXPECT_TRUE(flash.is_hash(2));
  EXPECT_FALSE(flash.is_hash(3));
  const ModelConfig pro = Get("pro");
  EXPECT_EQ(pro.kind(0), LayerKind::kHca);
  EXPECT_EQ(pro.kind(60), LayerKind::kCsa);
}

// Bits of a float32 run of the official formula with the released parameters
// (rope.main.freq and rope.compress.freq of the golden ops.safetensors).
constexpr uint32_t kMainFreq[32] = {
    0x3f800000, 0x3f3ff911, 0x3f0ff59a, 0x3ed7e89b, 0x3ea1e89b, 0x3e72d425,
    0x3e361887, 0x3e088d77, 0x3dcccccd, 0x3d99940d, 0x3d6655c2, 0x3d2cba15,
    0x3d0186e3, 0x3cc2434f, 0x3c91ad39, 0x3c5a7bf2, 0x3c23d70a, 0x3bf5b9b0,
    0x3bb8449c, 0x3b8a2e77, 0x3b4f3e38, 0x3b1b690d, 0x3ae91528, 0x3aaec98e,
    0x3a83126f, 0x3a44948c, 0x3a136a16, 0x39dd1727, 0x39a5cb60, 0x3978a815,
    0x393a7753, 0x390bd472};
constexpr uint32_t kCompressFreq[32] = {
    0x3f800000, 0x3f300a3a, 0x3ef21c1f, 0x3ea67d00, 0x3e64f92e, 0x3e1d7475,
    0x3dd88cb6, 0x3d94e963, 0x3d4ccccd, 0x3d0cd4fb, 0x3cc1b018, 0x3c8530ce,
    0x3c372dbf, 0x3bfbed88, 0x3bad3d5d, 0x3b6e4237, 0x3b147ae1, 0x3ab714e0,
    0x3a5ebdb6, 0x3a0530ce, 0x399bb3af, 0x39305978, 0x38be904d, 0x383e9b5e,
    0x37a3d70c, 0x36b443d0, 0x3677eba6, 0x362a7be8, 0x35ea77fd, 0x35a13bdc,
    0x355dbf30, 0x35187c4d};

// The run above took its power from a vectorised powf that is off by one unit
// in the last place now and then (5 and 27 of the main table). Which bits come
// out depends on the library and the device; RopeFrequencies rounds the true
// power, which is in the middle of them.
void ExpectNearBits(const std::vector<float>& freq,
                    const uint32_t (&bits)[32]) {
  ASSERT_EQ(freq.size(), 32u);
  int n_equal = 0;
  for (size_t i = 0; i < 32; ++i) {
    const auto distance =
        static_cast<int64_t>(std::bit_cast<uint32_t>(freq[i])) -
        static_cast<int64_t>(bits[i]);
    EXPECT_LE(std::abs(distance), 2) << i;
    n_equal += distance == 0 ? 1 : 0;
  }
  EXPECT_GE(n_equal, 26);
}

TEST(RopeFrequenciesTest, AreTheOfficialOnes) {
  const ModelConfig flash = Get("flash");
  ExpectNearBits(RopeFrequencies(flash, false), kMainFreq);
  ExpectNearBits(RopeFrequencies(flash, true), kCompressFreq);
}

// Random bytes over a valid config: an error or a config that passes its own
// check, never a crash.
TEST(ConfigTest, DamagedTextNeverCrashes) {
  const std::string good = ConfigToJson(Get("golden"));
  const std::string letters = "\"{}[],:0123456789-.eE \\nulltrue\xff";
  uint64_t state = 1;
  for (int round = 0; round < 3000; ++round) {
    std::string text = good;
    for (int k = 0; k < 3; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text[(state >> 33) % text.size()] =
          letters[(state >> 20) % letters.size()];
    }
    const auto config = ParseConfig(text, "x");
    if (!config.ok()) {
      ASSERT_THAT(ErrorIdOf(config.status()), HasSubstr("CONF-"));
    } else {
      ASSERT_TRUE(CheckConfig(*config, "x").ok());
    }
  }
}

}  // namespace
}  // namespace belay::spec
