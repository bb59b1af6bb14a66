// SPDX-License-Identifier: Apache-2.0
// The golden checkpoint as a GGUF file against itself: what quantisation
// changes, and no more.
//
// Converting rounds the FP8 linears (attention, indexer, shared expert) to
// Q8_0, at most amax / 254 a weight; FP4 experts are the same numbers in both.
// The bounds are on the mean KL divergence of the next-token distributions over
// 130 positions. Of them the official numerics' own quantisation noise, against
// the exact ones, is 0.031 for this checkpoint (tests/data/goldens); a mutant
// that takes the FP4 nibbles in the wrong order is far beyond.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/convert.h"
#include "checkpoint/gguf/model.h"
#include "golden/mean_kl.h"
#include "support/stepper.h"
#include "support/test_model.h"

namespace belay::test {
namespace {

constexpr char kFolder[] = "tests/data/goldens/tiny_fp4";

class GgufRunTest : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ =
        (std::filesystem::path(::testing::TempDir()) /
         (std::string(
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) +
          ".gguf"))
            .string();
    const auto checkpoint = checkpoint::Checkpoint::Open(kFolder);
    ASSERT_TRUE(checkpoint.ok());
    const checkpoint::gguf::ConvertOptions options = {
        .out = path_,
        .experts = checkpoint::gguf::ExpertType::kMxfp4,
        .mtp = true,
        .add_metadata = {},
        .progress = {}};
    ASSERT_TRUE(ConvertToGguf(**checkpoint, options).ok());
  }
  void TearDown() override { std::filesystem::remove(path_); }

  static Logits Run(const std::string& path, const std::string& backend,
                    bool exact, bool mtp = false) {
    ModelOptions options;
    options.backend = backend;
    options.exact = exact;
    TestModel model(path, options);
    Stepper stepper(model, {});
    const Part part = {.slot = 0,
                       .start_pos = 0,
                       .tokens = RandomTokens(130, model.config().vocab_size,
                                              /*seed=*/3)};
    const Logits logits = stepper.Run({part});
    return mtp ? stepper.RunMtp({part}) : logits;
  }

  std::string path_;
};

TEST_F(GgufRunTest, IsTheCheckpointUpToItsQuantisation) {
  for (const std::string& backend : BackendNames()) {
    SCOPED_TRACE(backend);
    const double exact =
        MeanKl(Run(kFolder, backend, true), Run(path_, backend, true));
    const double official =
        MeanKl(Run(kFolder, backend, false), Run(path_, backend, false));
    const double int8 =
        MeanKl(Run(path_, backend, true), Run(path_, backend, false));
    const double mtp = MeanKl(Run(kFolder, backend, true, true),
                              Run(path_, backend, true, true));
    std::printf(
        "%s: mean KL to the checkpoint: exact %.5f (MTP %.5f), "
        "official %.5f; GGUF exact to official %.5f\n",
        backend.c_str(), exact, mtp, official, int8);
    RecordProperty(backend + "_kl_exact", std::to_string(exact));
    EXPECT_LT(exact, 0.01);
    EXPECT_LT(mtp, 0.01);
    EXPECT_LT(official, 0.06);
    EXPECT_LT(int8, 0.06);
    EXPECT_GT(official, 0.0);  // other numbers were compared
  }
}

// The bounds above would show a wrong reader.
TEST_F(GgufRunTest, SwappedNibblesAreFarBeyond) {
  const auto model = checkpoint::gguf::GgufModel::Open(path_);
  ASSERT_TRUE(model.ok());
  auto text = ReadFile(path_);
  ASSERT_TRUE(text.ok());
  for (const auto& [name, info] : (*model)->files().tensors) {
    if (info->type != checkpoint::gguf::kTypeMxfp4) continue;
    for (uint64_t i = 0; i < info->bytes; ++i) {
      if (i % 17 == 0) continue;
      auto& byte = (*text)[info->offset + i];
      const auto value = static_cast<uint8_t>(byte);
      byte = static_cast<char>(value << 4 | value >> 4);
    }
  }
  const std::string wrong = path_ + ".wrong.gguf";
  ASSERT_TRUE(WriteFileAtomically(wrong, *text).ok());
  EXPECT_GT(MeanKl(Run(kFolder, "ref", true), Run(wrong, "ref", true)), 0.1);
  std::filesystem::remove(wrong);
}

}  // namespace
}  // namespace belay::test
