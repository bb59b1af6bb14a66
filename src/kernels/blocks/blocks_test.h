// SPDX-License-Identifier: Apache-2.0
// Weights in blocks for the tests of kernels/blocks, and the check of a
// product.
#ifndef BELAY_KERNELS_BLOCKS_BLOCKS_TEST_H_
#define BELAY_KERNELS_BLOCKS_BLOCKS_TEST_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "base/float_formats.h"
#include "kernels/matmul.h"

namespace belay::kernels {

struct TestBlocks {
  WeightView view;
  std::vector<std::byte> codes;
  std::vector<double> values;  // [n_rows, n_cols]
};

inline void PutHalf(std::byte* at, float value) {
  const uint16_t bits = F16FromF32(value);
  std::memcpy(at, &bits, sizeof(bits));
}

// Any codes; scales that a model could have.
inline TestBlocks MakeBlocks(BlockFormat format, int64_t n_rows,
                             int64_t n_cols) {
  std::mt19937 rng(static_cast<uint32_t>(n_rows * 1000 + n_cols));
  const int64_t values = BlockValues(format);
  const size_t bytes = BlockBytes(format);
  const size_t row_bytes = static_cast<size_t>(n_cols / values) * bytes;
  TestBlocks w;
  // Rows that begin anywhere.
  w.view = {.kind = WeightKind::kBlocks,
            .format = format,
            .row_bytes_stride = row_bytes + 3,
            .n_rows = n_rows,
            .n_cols = n_cols};
  w.codes.resize(static_cast<size_t>(n_rows) * w.view.row_bytes_stride);
  for (std::byte& b : w.codes) b = static_cast<std::byte>(rng());
  w.view.codes = w.codes.data();
  w.values.resize(static_cast<size_t>(n_rows * n_cols));
  for (int64_t r = 0; r < n_rows; ++r) {
    std::byte* block =
        w.codes.data() + static_cast<size_t>(r) * w.view.row_bytes_stride;
    for (int64_t c = 0; c < n_cols; c += values, block += bytes) {
      const float d = 0.01f * static_cast<float>(1 + rng() % 10);
      switch (format) {
        case BlockFormat::kMxfp4:
          block[0] = static_cast<std::byte>(115 + rng() % 10);
          break;
        case BlockFormat::kQ2K:
          PutHalf(block + 80, d);
          PutHalf(block + 82, 0.5f * d);
          break;
        case BlockFormat::kQ3K:
          PutHalf(block + 108, d);
          break;
        case BlockFormat::kQ6K:
          PutHalf(block + 208, d);
          break;
        default:
          PutHalf(block, d);
          if (values == 256) PutHalf(block + 2, 0.5f * d);
      }
    }
    DecodeBlocks(format, w.view.row(r), n_cols, &w.values[r * n_cols]);
  }
  return w;
}

inline std::vector<float> Multiply(const MatMulKernel& kernel,
                                   const WeightView& view,
                                   const std::vector<float>& x,
                                   int64_t n_tokens,
                                   const int32_t* index = nullptr) {
  const auto n_cols = static_cast<size_t>(view.n_cols);
  const size_t row_bytes = kernel.packed_bytes(view.n_cols);
  EXPECT_LE(row_bytes, F32MatMul().packed_bytes(view.n_cols));
  const size_t n_packed = x.size() / n_cols;
  std::vector<std::byte> packed(n_packed * row_bytes);
  for (size_t t = 0; t < n_packed; ++t) {
    // In two pieces, as an expert's hidden values come.
    const int64_t cut = view.n_cols > 128 ? 128 : view.n_cols;
    const float* row = x.data() + t * n_cols;
    std::byte* to = packed.data() + t * row_bytes;
    kernel.pack(row, 0, cut, view.n_cols, to);
    if (cut == view.n_cols) continue;
    kernel.pack(row + cut, cut, view.n_cols - cut, view.n_cols, to);
  }
  std::vector<std::byte> panel(PanelBytes(view.n_cols) + 64);
  std::vector<float> y(static_cast<size_t>(n_tokens * view.n_rows), NAN);
  MatMulArgs args;
  args.weight = &view;
  args.row_end = view.n_rows;
  args.x = packed.data();
  args.x_row_bytes = row_bytes;
  args.x_index = index;
  args.n_tokens = n_tokens;
  args.y = y.data();
  args.y_stride = view.n_rows;
  args.panel =
      panel.data() + (64 - reinterpret_cast<uintptr_t>(panel.data()) % 64) % 64;
  kernel.run(args);
  return y;
}

// What the contract says that x becomes.
inline std::vector<double> QuantiseInt8(const std::vector<float>& x,
                                        size_t block) {
  std::vector<double> y;
  for (size_t i = 0; i < x.size(); i += block) {
    float amax = 0.0f;
    for (size_t j = i; j < i + block; ++j) {
      amax = std::max(amax, std::abs(x[j]));
    }
    const float inverse = amax == 0.0f ? 0.0f : 127.0f / amax;
    for (size_t j = i; j < i + block; ++j) {
      y.push_back(std::nearbyint(x[j] * inverse) *
                  static_cast<double>(amax / 127.0f));
    }
  }
  return y;
}

// |error| <= (blocks + 8) eps * sum |x| |w| with the parts of w that are
// subtracted counted apart: only the scaling and the sums over blocks round.
// d and dmin of the tests are within 2:1, min <= 63 (15 for Q2_K): |parts| is
// below |w| + 2 * dmin * min.
inline void Check(const MatMulKernel& kernel, const TestBlocks& w,
                  const std::vector<double>& x,
                  const std::vector<float>& packed, int64_t n_tokens) {
  const int64_t n_rows = w.view.n_rows;
  const int64_t n_cols = w.view.n_cols;
  const std::vector<float> y = Multiply(kernel, w.view, packed, n_tokens);
  for (int64_t i = 0; i < n_tokens * n_rows; ++i) {
    const double* row = x.data() + i / n_rows * n_cols;
    const double* weights = w.values.data() + i % n_rows * n_cols;
    double sum = 0.0;
    double norm = 0.0;
    for (int64_t k = 0; k < n_cols; ++k) {
      sum += row[k] * weights[k];
      norm += std::abs(row[k]) * (std::abs(weights[k]) + 6.3);
    }
    const double bound =
        (static_cast<double>(n_cols) / 32 + 8) * 0x1p-24 * norm + 1e-30;
    ASSERT_NEAR(y[static_cast<size_t>(i)], sum, bound)
        << "token " << i / n_rows << ", row " << i % n_rows;
  }
}

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_BLOCKS_BLOCKS_TEST_H_
