// SPDX-License-Identifier: Apache-2.0
// Files hold packed weights (belay pack), so that the layout may only change
// together with its name. When this test fails, change kPackLayout and the sums
// here.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/pack.h"

namespace belay::kernels {
namespace {

uint64_t Fnv(const std::vector<std::byte>& bytes) {
  uint64_t sum = 0xcbf29ce484222325u;
  for (const std::byte b : bytes) {
    sum = (sum ^ static_cast<uint64_t>(b)) * 0x100000001b3u;
  }
  return sum;
}

// 70 rows of 384 columns whose bytes are all different from their neighbours'.
uint64_t SumOf(WeightKind kind) {
  constexpr int64_t kRows = 70;
  constexpr int64_t kCols = 384;
  WeightView w;
  w.kind = kind;
  w.n_rows = kRows;
  w.n_cols = kCols;
  w.row_bytes_stride = WeightRowBytes(kind, kCols);
  std::vector<std::byte> codes(kRows * w.row_bytes_stride);
  for (size_t i = 0; i < codes.size(); ++i) {
    codes[i] = static_cast<std::byte>(i * 167 + i / 251);
  }
  w.codes = codes.data();
  std::vector<uint8_t> scales(kRows * kCols / 32);
  std::vector<float> wide(kRows * kCols / 128);
  for (size_t i = 0; i < scales.size(); ++i) {
    scales[i] = static_cast<uint8_t>(100 + i % 41);
  }
  if (kind == WeightKind::kFp4) {
    w.scale_code = scales.data();
    w.block_cols = 32;
    w.scale_stride = kCols / 32;
  } else if (kind == WeightKind::kFp8) {
    w.scale = wide.data();
    w.block_rows = 128;
    w.scale_stride = kCols / 128;
  }
  EXPECT_TRUE(CanPackWeight(w));
  std::vector<std::byte> packed(PackedWeightBytes(w));
  PackWeightRows(w, 0, kRows, packed.data());
  return Fnv(packed);
}

TEST(PackLayoutTest, ItsNameStandsForItsBytes) {
  const std::string sums = std::to_string(SumOf(WeightKind::kBf16)) + " " +
                           std::to_string(SumOf(WeightKind::kFp8)) + " " +
                           std::to_string(SumOf(WeightKind::kFp4));
  EXPECT_EQ(std::string(kPackLayout) + ": " + sums,
            "tiles64x128-1: 8951592413085882060 18402489862237051565 "
            "4830009479516715565");
}

}  // namespace
}  // namespace belay::kernels
