// SPDX-License-Identifier: Apache-2.0
// The x86 half of attention_bf16.h. Only its .cc files are compiled for
// AVX-512.
#ifndef BELAY_KERNELS_AVX512_ATTENTION_AVX512_H_
#define BELAY_KERNELS_AVX512_ATTENTION_AVX512_H_

#include "kernels/attention_bf16.h"

namespace belay::kernels::avx512 {

void Bf16FromE4m3(const uint8_t* codes, const uint8_t* scales, size_t n,
                  size_t group, uint16_t* row);
void ScoreHeads(const HeadTile& tile, const uint16_t* q, float scale, float* s);
void AddValues(const HeadTile& tile, const uint16_t* p, const float* r,
               float* acc);
void FinishHeads(const float* acc, const float* total, size_t n_heads,
                 size_t n_cols, uint16_t* out);
void PackIndexTile(const float* rows, size_t n_rows, size_t n_cols,
                   uint16_t* tile);
void IndexScores(const IndexScoreParams& p);

}  // namespace belay::kernels::avx512

#endif  // BELAY_KERNELS_AVX512_ATTENTION_AVX512_H_
