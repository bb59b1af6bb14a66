// SPDX-License-Identifier: Apache-2.0
// Cache rows: float32 values <-> the bytes of a RowFormat, where a row is, and
// the rotation of a position.
#ifndef BELAY_BACKENDS_CPU_ROWS_H_
#define BELAY_BACKENDS_CPU_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "ops/attention.h"
#include "ops/batch.h"
#include "ops/cache.h"
#include "ops/numerics.h"

namespace belay::cpu {

// Encodes a KV row of format.head_dim values, of which the last `rope_dims` are
// not quantised. Official numerics: act_quant of the others, as codes and
// scales (kFp8Rope) or in place (kBf16, kF32). Exact numerics: the values as
// they are. `row` is scratch afterwards.
void EncodeKvRow(const ops::Numerics& numerics, const ops::RowFormat& format,
                 int64_t rope_dims, float* row, std::byte* out);

// The same for an indexer row after its Hadamard transform: fp4_act_quant, as
// codes and scales (kFp4) or in place.
void EncodeIndexRow(const ops::Numerics& numerics, const ops::RowFormat& format,
                    float* row, std::byte* out);

// The format.head_dim values of a row.
void DecodeRow(const ops::RowFormat& format, const std::byte* in, float* row);

// The same in bf16, which holds the rows of official numerics exactly; needs
// kernels::HasBf16Attention(head_dim). `scratch`: head_dim floats.
void DecodeRowToBf16(const ops::RowFormat& format, const std::byte* in,
                     float* scratch, uint16_t* row);

// The bytes of a row by position in the ring of a slot, and by row id in pages.
std::byte* WindowRow(const ops::WindowCache& window, int32_t slot,
                     int32_t position);
std::byte* PagedRow(const ops::PagedCache& cache, const ops::BatchView& batch,
                    int32_t slot, int64_t row_id);

// The span of a token; a batch has few.
const ops::Span& SpanOf(const ops::BatchView& batch, int64_t token);

// cos and sin of the angles of one position.
struct Rotation {
  static constexpr int64_t kMaxPairs = 256;

  // angle = fl(position * freq), a float32 product; cos and sin are rounded to
  // float32 once.
  Rotation(const ops::RopeTable& rope, int32_t position, bool inverse = false);

  // Rotates the last 2 * n_pairs of `n` values; no rounding at the end.
  void Apply(float* row, int64_t n) const;
  int64_t dims() const { return 2 * n_pairs; }

  int64_t n_pairs;
  float cos[kMaxPairs];
  float sin[kMaxPairs];
};

}  // namespace belay::cpu

#endif  // BELAY_BACKENDS_CPU_ROWS_H_
