// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention_bf16.h"

#include "base/error.h"
#include "kernels/avx512/attention_avx512.h"
#include "kernels/matmul_bf16.h"

namespace belay::kernels {

#if defined(__x86_64__)

bool HasBf16Attention(int64_t n_cols) {
  return n_cols % 64 == 0 && HasBf16MatMul();
}

void Bf16FromE4m3(const uint8_t* codes, const uint8_t* scales, size_t n,
                  size_t group, uint16_t* row) {
  avx512::Bf16FromE4m3(codes, scales, n, group, row);
}

void ScoreHeads(const HeadTile& tile, const uint16_t* q, float scale,
                float* s) {
  avx512::ScoreHeads(tile, q, scale, s);
}

void AddValues(const HeadTile& tile, const uint16_t* p, const float* r,
               float* acc) {
  avx512::AddValues(tile, p, r, acc);
}

void FinishHeads(const float* acc, const float* total, size_t n_heads,
                 size_t n_cols, uint16_t* out) {
  avx512::FinishHeads(acc, total, n_heads, n_cols, out);
}

void PackIndexTile(const float* rows, size_t n_rows, size_t n_cols,
                   uint16_t* tile) {
  avx512::PackIndexTile(rows, n_rows, n_cols, tile);
}

void IndexScores(const IndexScoreParams& p) { avx512::IndexScores(p); }

#else

bool HasBf16Attention(int64_t) { return false; }
void Bf16FromE4m3(const uint8_t*, const uint8_t*, size_t, size_t, uint16_t*) {
  BELAY_CHECK(false);
}
void ScoreHeads(const HeadTile&, const uint16_t*, float, float*) {
  BELAY_CHECK(false);
}
void AddValues(const HeadTile&, const uint16_t*, const float*, float*) {
  BELAY_CHECK(false);
}
void FinishHeads(const float*, const float*, size_t, size_t, uint16_t*) {
  BELAY_CHECK(false);
}
void PackIndexTile(const float*, size_t, size_t, uint16_t*) {
  BELAY_CHECK(false);
}
void IndexScores(const IndexScoreParams&) { BELAY_CHECK(false); }

#endif

}  // namespace belay::kernels
