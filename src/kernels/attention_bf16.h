// SPDX-License-Identifier: Apache-2.0
// Attention and the indexer on rows in bf16, with the bf16 dot product of
// AVX-512: what kernels/attention.h does, for all heads of a token at a time.
// For (query, row) pairs the order of the sums is fixed, whatever else is in
// the tile. Call nothing unless HasBf16Attention().
#ifndef BELAY_KERNELS_ATTENTION_BF16_H_
#define BELAY_KERNELS_ATTENTION_BF16_H_

#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"

namespace belay::kernels {

// Rows of a tile at most, and the stride of scores and weights.
inline constexpr size_t kTileRows = 64;

// Whether this CPU can, for rows of so many columns: multiples of 64.
bool HasBf16Attention(int64_t n_cols);

// bf16 values of an act_quant row: code * scale, exact. n is a multiple of 64
// and so is `group`, the codes that share a scale.
void Bf16FromE4m3(const uint8_t* codes, const uint8_t* scales, size_t n,
                  size_t group, uint16_t* row);

// The rows that all heads of a token meet at a time.
struct HeadTile {
  const uint16_t* rows = nullptr;  // [n_rows, n_cols] bf16
  size_t n_rows = 0;               // 1 to kTileRows
  size_t n_cols = 0;
  size_t n_heads = 0;
};

// s[h][j] = (q[h] . rows[j]) * scale, the sum in float32. q: [n_heads, n_cols]
// bf16; s: [n_heads, kTileRows].
void ScoreHeads(const HeadTile& tile, const uint16_t* q, float scale, float* s);

// acc[h] = acc[h] * r[h] + sum_j p[h][j] * rows[j]. p: [n_heads, kTileRows]
// bf16, zeros from n_rows on; acc: [n_heads, n_cols], its columns in an order
// of its own.
void AddValues(const HeadTile& tile, const uint16_t* p, const float* r,
               float* acc);

// acc[h] / total[h], columns in order, to out: [n_heads, n_cols] bf16.
void FinishHeads(const float* acc, const float* total, size_t n_heads,
                 size_t n_cols, uint16_t* out);

// One tile of one head's softmax, without the values: s[j] -> p[j] as bf16 and
// zeros beyond, and r, as in SoftmaxTile with round_p. s: [kTileRows], changed.
float SoftmaxWeights(float* s, size_t n_rows, OnlineSoftmax* state,
                     uint16_t* p);

// Rows as the indexer reads them: pairs of columns of 64 rows. rows: [n_rows,
// n_cols] float32 that are exact in bf16; tile: kTileRows * n_cols bf16.
void PackIndexTile(const float* rows, size_t n_rows, size_t n_cols,
                   uint16_t* tile);

// The official index scores of a token for the rows of a tile: scores[j] =
// bf16(sum_h bf16(relu(bf16(q[h] . rows[j])) * weights[h])), heads in order.
struct IndexScoreParams {
  const uint16_t* tile = nullptr;  // from PackIndexTile
  size_t n_cols = 0;
  const uint16_t* q = nullptr;     // [n_heads, n_cols] bf16
  const float* weights = nullptr;  // [n_heads]
  size_t n_heads = 0;
  float* scores = nullptr;  // [kTileRows] out
};
void IndexScores(const IndexScoreParams& p);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_ATTENTION_BF16_H_
