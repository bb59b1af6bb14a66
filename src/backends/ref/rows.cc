// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/rows.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "backends/ref/quant.h"
#include "base/error.h"
#include "base/float_formats.h"

namespace belay::ref {
namespace {

using ops::RowFormat;
using ops::RowKind;

void PutBf16(std::span<const float> values, std::byte* out) {
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t bits = Bf16FromF32(values[i]);
    std::memcpy(out + 2 * i, &bits, 2);  // rows of odd length: no alignment
  }
}

void GetBf16(const std::byte* in, std::span<float> values) {
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + 2 * i, 2);
    values[i] = F32FromBf16(bits);
  }
}

// kBf16 or kF32.
void PutPlain(RowKind kind, std::span<const float> values, std::byte* out) {
  if (kind == RowKind::kBf16) {
    PutBf16(values, out);
  } else {
    BELAY_CHECK(kind == RowKind::kF32);
    std::memcpy(out, values.data(), values.size_bytes());
  }
}

// [codes of the nope dims][a scale per group][bf16 rope dims].
void PutFp8Rope(const RowFormat& format, std::span<const float> row,
                std::byte* out) {
  const auto group = static_cast<size_t>(format.group);
  const size_t n_nope = row.size() - static_cast<size_t>(format.rope_dim);
  std::byte* scales = out + n_nope;
  for (size_t i = 0; i < n_nope; i += group) {
    const uint8_t code = Fp8GroupScale(row.subspan(i, group));
    const float scale = F32FromE8m0(code);
    for (size_t k = i; k < i + group; ++k) {
      out[k] = std::byte{E4m3FromF32(row[k] / scale)};
    }
    scales[i / group] = std::byte{code};
  }
  PutBf16(row.subspan(n_nope), scales + n_nope / group);
}

void GetFp8Rope(const RowFormat& format, const std::byte* in,
                std::span<float> row) {
  const auto group = static_cast<size_t>(format.group);
  const size_t n_nope = row.size() - static_cast<size_t>(format.rope_dim);
  const std::byte* scales = in + n_nope;
  for (size_t k = 0; k < n_nope; ++k) {
    row[k] = F32FromE4m3(std::to_integer<uint8_t>(in[k])) *
             F32FromE8m0(std::to_integer<uint8_t>(scales[k / group]));
  }
  GetBf16(scales + n_nope / group, row.subspan(n_nope));
}

// [packed codes, low nibble = even dim][a scale per group].
void PutFp4(const RowFormat& format, std::span<const float> row,
            std::byte* out) {
  const auto group = static_cast<size_t>(format.group);
  std::byte* scales = out + row.size() / 2;
  for (size_t i = 0; i < row.size(); i += group) {
    const uint8_t code = Fp4GroupScale(row.subspan(i, group));
    const float scale = F32FromE8m0(code);
    for (size_t k = i; k < i + group; k += 2) {
      out[k / 2] = std::byte{PackE2m1(E2m1FromF32(row[k] / scale),
                                      E2m1FromF32(row[k + 1] / scale))};
    }
    scales[i / group] = std::byte{code};
  }
}

void GetFp4(const RowFormat& format, const std::byte* in,
            std::span<float> row) {
  const auto group = static_cast<size_t>(format.group);
  const std::byte* scales = in + row.size() / 2;
  for (size_t k = 0; k < row.size(); ++k) {
    const auto byte = std::to_integer<uint8_t>(in[k / 2]);
    const auto code = static_cast<uint8_t>(k % 2 == 0 ? byte & 15u : byte >> 4);
    row[k] = F32FromE2m1(code) *
             F32FromE8m0(std::to_integer<uint8_t>(scales[k / group]));
  }
}

}  // namespace

void EncodeKvRow(const ops::Numerics& numerics, const RowFormat& format,
                 int64_t rope_dims, std::span<const float> row,
                 std::byte* out) {
  if (format.kind == RowKind::kFp8Rope) return PutFp8Rope(format, row, out);
  std::vector<float> values(row.begin(), row.end());
  if (numerics.official()) {
    const std::span<float> all(values);
    ActQuantInPlace(all.first(row.size() - static_cast<size_t>(rope_dims)),
                    numerics.kv_group);
  }
  if (format.kind == RowKind::kFp4) return PutFp4(format, values, out);
  PutPlain(format.kind, values, out);
}

void EncodeIndexRow(const ops::Numerics& numerics, const RowFormat& format,
                    std::span<const float> row, std::byte* out) {
  if (format.kind == RowKind::kFp4) return PutFp4(format, row, out);
  std::vector<float> values(row.begin(), row.end());
  if (numerics.official()) Fp4ActQuantInPlace(values, numerics.index_group);
  if (format.kind == RowKind::kFp8Rope) return PutFp8Rope(format, values, out);
  PutPlain(format.kind, values, out);
}

void DecodeRow(const RowFormat& format, const std::byte* in,
               std::span<float> row) {
  switch (format.kind) {
    case RowKind::kFp8Rope:
      return GetFp8Rope(format, in, row);
    case RowKind::kFp4:
      return GetFp4(format, in, row);
    case RowKind::kBf16:
      return GetBf16(in, row);
    case RowKind::kF32:
      std::memcpy(row.data(), in, row.size_bytes());
      return;
  }
}

void Hadamard(std::span<float> x) {
  const size_t n = x.size();
  for (size_t half = 1; half < n; half *= 2) {
    for (size_t i = 0; i < n; ++i) {
      if ((i & half) != 0) continue;
      const float a = x[i];
      const float b = x[i + half];
      x[i] = a + b;
      x[i + half] = a - b;
    }
  }
  const auto scale =
      static_cast<float>(1.0 / std::sqrt(static_cast<double>(n)));
  for (float& v : x) v *= scale;
}

std::byte* WindowRow(const ops::WindowCache& window, int32_t slot,
                     int32_t position) {
  const int64_t n_ring = window.rows.dim(1);
  return window.rows.row<std::byte>(slot) +
         static_cast<size_t>(position % n_ring) * window.format.bytes();
}

std::byte* PagedRow(const ops::PagedCache& cache, const ops::BatchView& batch,
                    int32_t slot, int64_t row_id) {
  const int64_t rows_per_page = cache.rows.dim(1);
  const int32_t page =
      batch.page_table.row<int32_t>(slot)[row_id / rows_per_page];
  BELAY_CHECK(page >= 0);
  return cache.rows.row<std::byte>(page) +
         static_cast<size_t>(row_id % rows_per_page) * cache.format.bytes();
}

}  // namespace belay::ref
