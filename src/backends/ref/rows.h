// SPDX-License-Identifier: Apache-2.0
// Cache rows: float32 values <-> the bytes of a RowFormat, and where a row is.
#ifndef BELAY_BACKENDS_REF_ROWS_H_
#define BELAY_BACKENDS_REF_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/batch.h"
#include "ops/cache.h"
#include "ops/numerics.h"

namespace belay::ref {

// Encodes a KV row (`rope_dims` trailing dims are not quantised). Official
// numerics: act_quant of the nope dims, as codes and scales (kFp8Rope) or in
// place (kBf16, kF32). Exact numerics: the values as they are, so that the
// format should be kF32.
void EncodeKvRow(const ops::Numerics& numerics, const ops::RowFormat& format,
                 int64_t rope_dims, std::span<const float> row, std::byte* out);

// The same for an indexer row after its Hadamard transform: fp4_act_quant, as
// codes and scales (kFp4) or in place.
void EncodeIndexRow(const ops::Numerics& numerics, const ops::RowFormat& format,
                    std::span<const float> row, std::byte* out);

// The values of a row, row.size() = format.head_dim.
void DecodeRow(const ops::RowFormat& format, const std::byte* in,
               std::span<float> row);

// x = H x / sqrt(n), natural-order Walsh-Hadamard, n a power of two; float32
// scale fl(n^-0.5), not yet rounded.
void Hadamard(std::span<float> x);

// The bytes of a row by position in a ring, and by row id in pages.
std::byte* WindowRow(const ops::WindowCache& window, int32_t slot,
                     int32_t position);
std::byte* PagedRow(const ops::PagedCache& cache, const ops::BatchView& batch,
                    int32_t slot, int64_t row_id);

}  // namespace belay::ref

#endif  // BELAY_BACKENDS_REF_ROWS_H_
