// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/pack/pack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "apps/belay/shell/cli.h"
#include "base/error_ids.h"
#include "base/file.h"
#include "checkpoint/safetensors.h"
#include "kernels/matmul_bf16.h"
#include "kernels/simd_target.h"

namespace belay::apps {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Ran {
  int code;
  std::string out;
  std::string err;
};

Ran Belay(const std::vector<std::string>& args) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunBelay(args, {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

// A CPU without such kernels has nothing to pack, and says so.
class PackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    packs_ = kernels::Avx512Bf16Allowed();
    const Ran ran = Belay({"pack", "data/demo", "--out", packed()});
    EXPECT_EQ(ran.code, packs_ ? 0 : 3) << ran.err;
    if (!packs_) {
      EXPECT_THAT(ran.err, HasSubstr(kBackUnavailable.id));
    }
  }
  void TearDown() override {
    fs::remove_all(folder_);
    EXPECT_TRUE(kernels::UseSimdTarget("").ok());
  }

  std::string packed() const { return folder_ + "/packed"; }
  std::string file() const { return PackPath(packed()); }

  // The logits of a prompt and of decoding after it, as bytes.
  std::string Logits(const std::string& model) const {
    const std::string out = folder_ + "/trace.safetensors";
    const Ran ran =
        Belay({"trace", "--model", model, "--tokens", "0,2546,880,413,81,3",
               "--decode", "3", "--out", out});
    EXPECT_EQ(ran.code, 0) << ran.err;
    if (ran.code != 0) return "";
    return ReadFile(out).value();
  }

  std::string RunId(const std::vector<std::string>& more) const {
    std::vector<std::string> args = {"run",          "--model", packed(),
                                     "--tokens",     "5,7",     "--json",
                                     "--max-tokens", "1"};
    args.insert(args.end(), more.begin(), more.end());
    const Ran ran = Belay(args);
    if (ran.code == 0) return "";
    return nlohmann::json::parse(ran.out)["error"]["id"];
  }

  std::string folder_;
  bool packs_ = false;
};

TEST_F(PackTest, GivesTheSameLogitsBitForBit) {
  if (!packs_) return;
  const std::string plain = Logits("data/demo");
  ASSERT_FALSE(plain.empty());
  EXPECT_TRUE(Logits(packed()) == plain);
  // Text works too: the tokenizer came along.
  const Ran ran = Belay(
      {"run", "--model", packed(), "--prompt", "Hello!", "--max-tokens", "4"});
  EXPECT_EQ(ran.code, 0) << ran.err;
}

TEST_F(PackTest, InspectChecksEveryByte) {
  if (!packs_) return;
  const Ran good = Belay({"inspect", packed(), "--json"});
  ASSERT_EQ(good.code, 0) << good.err;
  const auto json = nlohmann::json::parse(good.out);
  EXPECT_GT(json["tensors"], 100);
  EXPECT_THAT(std::string(json["layout"]), HasSubstr("cpu "));

  std::string text = ReadFile(file()).value();
  text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
  ASSERT_TRUE(WriteFileAtomically(file(), text).ok());
  EXPECT_THAT(Belay({"inspect", packed()}).err, HasSubstr(kPackDamaged.id));
  EXPECT_EQ(RunId({"--strict"}), kPackDamaged.id);
}

TEST_F(PackTest, RefusesWhatItIsNotFor) {
  if (!packs_) return;
  EXPECT_EQ(RunId({}), "");
  EXPECT_EQ(RunId({"--strict"}), "");
  EXPECT_EQ(RunId({"--backend", "ref"}), kPackNeedsCpu.id);
  EXPECT_EQ(RunId({"--numerics", "exact"}), kPackNeedsCpu.id);
  EXPECT_EQ(RunId({"--simd-target", "AVX2"}), kPackOtherLayout.id);
  EXPECT_EQ(RunId({}), "") << "the target is forgotten";
}

TEST_F(PackTest, RefusesAnotherLayoutAndDamage) {
  if (!packs_) return;
  std::string text = ReadFile(file()).value();
  ASSERT_TRUE(
      WriteFileAtomically(file(), text.substr(0, text.size() - 9)).ok());
  EXPECT_EQ(RunId({}), kPackDamaged.id);

  const auto config = checkpoint::Checkpoint::Open("data/demo");
  ASSERT_TRUE(config.ok());
  auto writer = checkpoint::PackWriter::Create(file(), "cpu of yesterday",
                                               (*config)->config(), 1);
  ASSERT_TRUE(writer.ok() && (*writer)->Finish().ok());
  EXPECT_EQ(RunId({}), kPackOtherLayout.id);
}

TEST_F(PackTest, DoesNotWriteIntoTheCheckpoint) {
  const std::string copy = folder_ + "/copy";
  fs::copy("data/demo", copy);
  const Ran ran = Belay({"pack", copy, "--out", copy + "/"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("--out"));
  EXPECT_FALSE(IsPacked(copy));
}

}  // namespace
}  // namespace belay::apps
