// SPDX-License-Identifier: Apache-2.0
#include "kernels/blocks/matmul_blocks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/blocks/blocks_test.h"
#include "kernels/targets_test.h"

namespace belay::kernels {
namespace {

constexpr BlockFormat kFormats[] = {BlockFormat::kQ8_0, BlockFormat::kMxfp4,
                                    BlockFormat::kQ2K,  BlockFormat::kQ3K,
                                    BlockFormat::kQ4K,  BlockFormat::kQ5K,
                                    BlockFormat::kQ6K};

TEST(MatMulBlocksTest, Int8MatchesDouble) {
  for (const BlockFormat format : kFormats) {
    SCOPED_TRACE(std::string(BlockFormatName(format)));
    const size_t block = BlockValues(format) == 32 ? 32 : 128;
    for (const int64_t n_cols : {256, 768}) {
      const TestBlocks w = MakeBlocks(format, 7, n_cols);
      for (const int64_t n_tokens : {1, 2, 3, 4, 5, 11}) {
        std::vector<float> x =
            RandomFloats(static_cast<size_t>(n_tokens * n_cols), 7);
        std::fill_n(x.begin(), 128, 0.0f);  // a block without a scale
        const std::vector<double> quantised = QuantiseInt8(x, block);
        ForEachTarget(
            [&] { Check(Int8MatMul(format), w, quantised, x, n_tokens); });
      }
    }
  }
}

TEST(MatMulBlocksTest, DequantisedMatchesDouble) {
  for (const BlockFormat format : kFormats) {
    SCOPED_TRACE(std::string(BlockFormatName(format)));
    const TestBlocks w = MakeBlocks(format, 7, 512);
    const std::vector<float> x = RandomFloats(3 * 512, 8);
    const std::vector<double> exact(x.begin(), x.end());
    // Now every product rounds: 512 / 32 + 8 of them cancel; the norm's
    // allowance for subtracted parts covers the rest.
    Check(DequantisedMatMul(), w, exact, x, 3);
  }
}

TEST(MatMulBlocksTest, ATokenIsTheSameInEveryCompany) {
  constexpr int64_t kTokens = 9;
  for (const BlockFormat format : kFormats) {
    SCOPED_TRACE(std::string(BlockFormatName(format)));
    const TestBlocks w = MakeBlocks(format, 6, 512);
    const std::vector<float> x = RandomFloats(kTokens * 512, 9);
    ForEachTarget([&] {
      const auto together = Multiply(Int8MatMul(format), w.view, x, kTokens);
      for (int32_t t = 0; t < kTokens; ++t) {
        const auto alone = Multiply(Int8MatMul(format), w.view, x, 1, &t);
        for (size_t r = 0; r < 6; ++r) {
          ASSERT_EQ(alone[r], together[static_cast<size_t>(t) * 6 + r]);
        }
      }
    });
  }
}

}  // namespace
}  // namespace belay::kernels
