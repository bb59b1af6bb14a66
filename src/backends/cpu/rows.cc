// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/rows.h"

#include <cmath>
#include <cstring>

#include "kernels/attention_bf16.h"
#include "kernels/quantize.h"
#include "kernels/vector.h"

namespace belay::cpu {
namespace {

uint8_t* Bytes(std::byte* p) { return reinterpret_cast<uint8_t*>(p); }
const uint8_t* Bytes(const std::byte* p) {
  return reinterpret_cast<const uint8_t*>(p);
}

// A row as bf16 or float32. Rows are packed bytes, hence memcpy where the
// address need not be a multiple of the element.
void StorePlain(ops::RowKind kind, const float* row, size_t n, std::byte* out) {
  if (kind == ops::RowKind::kBf16) {
    kernels::F32ToBf16(row, n, reinterpret_cast<uint16_t*>(out));
  } else {
    std::memcpy(out, row, n * sizeof(float));
  }
}

}  // namespace

void EncodeKvRow(const ops::Numerics& numerics, const ops::RowFormat& format,
                 int64_t rope_dims, float* row, std::byte* out) {
  const auto dim = static_cast<size_t>(format.head_dim);
  if (format.kind == ops::RowKind::kFp8Rope) {
    const auto group = static_cast<size_t>(format.group);
    const auto rope = static_cast<size_t>(format.rope_dim);
    const size_t nope = dim - rope;
    uint8_t* codes = Bytes(out);
    uint8_t* scales = codes + nope;
    kernels::EncodeE4m3(row, nope, group, codes, scales);
    // After 448 + 7 bytes the bf16 dims sit at an odd address.
    uint16_t tail[2 * Rotation::kMaxPairs];
    kernels::F32ToBf16(row + nope, rope, tail);
    std::memcpy(scales + nope / group, tail, rope * sizeof(uint16_t));
    return;
  }
  if (numerics.official()) {
    kernels::QuantizeE4m3(row, dim - static_cast<size_t>(rope_dims),
                          static_cast<size_t>(numerics.kv_group), row);
  }
  StorePlain(format.kind, row, dim, out);
}

void EncodeIndexRow(const ops::Numerics& numerics, const ops::RowFormat& format,
                    float* row, std::byte* out) {
  const auto dim = static_cast<size_t>(format.head_dim);
  if (format.kind == ops::RowKind::kFp4) {
    kernels::EncodeE2m1(row, dim, static_cast<size_t>(format.group), Bytes(out),
                        Bytes(out) + dim / 2);
    return;
  }
  if (numerics.official()) {
    kernels::QuantizeE2m1(row, dim, static_cast<size_t>(numerics.index_group),
                          row);
  }
  StorePlain(format.kind, row, dim, out);
}

void DecodeRow(const ops::RowFormat& format, const std::byte* in, float* row) {
  const auto dim = static_cast<size_t>(format.head_dim);
  const auto group = static_cast<size_t>(format.group);
  switch (format.kind) {
    case ops::RowKind::kFp8Rope: {
      const auto rope = static_cast<size_t>(format.rope_dim);
      const size_t nope = dim - rope;
      const uint8_t* codes = Bytes(in);
      kernels::DecodeE4m3(codes, codes + nope, nope, group, row);
      uint16_t tail[2 * Rotation::kMaxPairs];
      std::memcpy(tail, codes + nope + nope / group, rope * sizeof(uint16_t));
      kernels::Bf16ToF32(tail, rope, row + nope);
      return;
    }
    case ops::RowKind::kFp4:
      kernels::DecodeE2m1(Bytes(in), Bytes(in) + dim / 2, dim, group, row);
      return;
    case ops::RowKind::kBf16:
      kernels::Bf16ToF32(reinterpret_cast<const uint16_t*>(in), dim, row);
      return;
    case ops::RowKind::kF32:
      std::memcpy(row, in, dim * sizeof(float));
      return;
  }
}

void DecodeRowToBf16(const ops::RowFormat& format, const std::byte* in,
                     float* scratch, uint16_t* row) {
  const auto dim = static_cast<size_t>(format.head_dim);
  if (format.kind == ops::RowKind::kBf16) {
    std::memcpy(row, in, dim * sizeof(uint16_t));
    return;
  }
  if (format.kind == ops::RowKind::kFp8Rope) {
    const auto group = static_cast<size_t>(format.group);
    const auto rope = static_cast<size_t>(format.rope_dim);
    const size_t nope = dim - rope;
    if (nope % 64 == 0 && group % 64 == 0) {
      const uint8_t* codes = Bytes(in);
      kernels::Bf16FromE4m3(codes, codes + nope, nope, group, row);
      std::memcpy(row + nope, codes + nope + nope / group,
                  rope * sizeof(uint16_t));
      return;
    }
  }
  DecodeRow(format, in, scratch);
  kernels::F32ToBf16(scratch, dim, row);
}

std::byte* WindowRow(const ops::WindowCache& window, int32_t slot,
                     int32_t position) {
  const auto n_ring = static_cast<int32_t>(window.rows.dim(1));
  return window.rows.row<std::byte>(slot) +
         static_cast<size_t>(position % n_ring) * window.format.bytes();
}

std::byte* PagedRow(const ops::PagedCache& cache, const ops::BatchView& batch,
                    int32_t slot, int64_t row_id) {
  const int64_t rows_per_page = cache.rows.dim(1);
  const int32_t page =
      batch.page_table.row<int32_t>(slot)[row_id / rows_per_page];
  return cache.rows.row<std::byte>(page) +
         static_cast<size_t>(row_id % rows_per_page) * cache.format.bytes();
}

const ops::Span& SpanOf(const ops::BatchView& batch, int64_t token) {
  for (const ops::Span& span : batch.spans) {
    if (token >= span.first_token && token < span.first_token + span.n_tokens) {
      return span;
    }
  }
  BELAY_CHECK(false);  // spans cover every token
  return batch.spans.front();
}

Rotation::Rotation(const ops::RopeTable& rope, int32_t position, bool inverse)
    : n_pairs(rope.freq.dim(0)) {
  BELAY_CHECK(n_pairs <= kMaxPairs);
  const auto freq = rope.freq.as<float>();
  for (int64_t i = 0; i < n_pairs; ++i) {
    const float angle =
        static_cast<float>(position) * freq[static_cast<size_t>(i)];
    cos[i] = static_cast<float>(std::cos(static_cast<double>(angle)));
    const auto s = static_cast<float>(std::sin(static_cast<double>(angle)));
    sin[i] = inverse ? -s : s;
  }
}

void Rotation::Apply(float* row, int64_t n) const {
  kernels::RotatePairs(cos, sin, static_cast<size_t>(n_pairs),
                       row + (n - 2 * n_pairs));
}

}  // namespace belay::cpu
