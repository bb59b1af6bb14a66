// SPDX-License-Identifier: Apache-2.0
// The inner loops of attention and of the indexer over tiles of decoded rows.
// Sums run over lanes in one fixed order for each (query, row), whatever else
// is in the tile.
#ifndef BELAY_KERNELS_ATTENTION_H_
#define BELAY_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>

namespace belay::kernels {

// Rows of float32, `stride` floats apart.
struct RowsView {
  const float* data = nullptr;
  size_t stride = 0;
  size_t n_rows = 0;
  size_t n_cols = 0;
  const float* row(size_t i) const { return data + i * stride; }
};

// out[j] = sum_c q[c] * rows[j][c], float32 with fused multiply-adds.
void DotRows(const float* q, const RowsView& rows, float* out);

// The running softmax of one head.
struct OnlineSoftmax {
  float max = 0.0f;  // start at -infinity
  float sum = 0.0f;
};

// One tile: s[j] -> m' = max(m, s), p = exp(s - m'), l = l r + sum p with r =
// exp(m - m'), acc = acc r + sum_j p_j rows[j]. The value sum takes p rounded
// to bf16 with `round_p`, the running sum never. s: [n_rows] becomes p. exp is
// within 1 ulp.
struct SoftmaxTileParams {
  RowsView rows;
  float* s = nullptr;  // [rows.n_rows], in: scores, out: scratch
  bool round_p = false;
  OnlineSoftmax* state = nullptr;
  float* acc = nullptr;  // [rows.n_cols] in and out
};
void SoftmaxTile(const SoftmaxTileParams& p);

// acc[j] += a bf16 or float32 head's share of the indexer's score:
// round(relu(round(d[j])) * weight). `round` is bf16 when `official`.
void AddIndexScores(const float* d, size_t n, float weight, bool official,
                    float* acc);

}  // namespace belay::kernels

#endif  // BELAY_KERNELS_ATTENTION_H_
