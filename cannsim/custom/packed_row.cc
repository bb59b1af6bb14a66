// SPDX-License-Identifier: Apache-2.0
#include "cannsim/custom/packed_row.h"

#include <algorithm>
#include <cmath>

#include "cannsim/ops/v4/scale.h"

namespace cannsim {
namespace {

constexpr int64_t kTile = 64;
constexpr int64_t kNopeDim = kRowDim - kRopeDim;
constexpr int64_t kNopeAt = 2 * kRopeDim;  // bytes
constexpr int64_t kScalesAt = kNopeAt + kNopeDim;

Array Bytes(aclDataType dtype, char* base) {
  Array array;
  array.dtype = dtype;
  array.base = base;
  return array;
}

}  // namespace

void PackRow(const std::vector<double>& row, char* bytes) {
  const Array rope = Bytes(ACL_BF16, bytes);
  const Array nope = Bytes(ACL_FLOAT8_E4M3FN, bytes + kNopeAt);
  const Array scales = Bytes(ACL_FLOAT8_E8M0, bytes + kScalesAt);
  for (int64_t i = 0; i < kRopeDim; ++i) {
    StoreF(rope, i, row[static_cast<size_t>(kNopeDim + i)]);
  }
  for (int64_t tile = 0; tile < kNopeDim / kTile; ++tile) {
    const double* first = row.data() + tile * kTile;
    const double peak = std::max(PeakOf(first, kTile), kSmallestPeak);
    const double scale = std::ldexp(1.0, CeilLog2(peak / kE4m3Largest));
    StoreF(scales, tile, scale);
    for (int64_t i = 0; i < kTile; ++i) {
      StoreF(nope, tile * kTile + i, first[i] / scale);
    }
  }
}

std::vector<double> UnpackRow(const char* bytes) {
  // LoadF only reads.
  char* base = const_cast<char*>(bytes);
  const Array rope = Bytes(ACL_BF16, base);
  const Array nope = Bytes(ACL_FLOAT8_E4M3FN, base + kNopeAt);
  const Array scales = Bytes(ACL_FLOAT8_E8M0, base + kScalesAt);
  std::vector<double> row;
  for (int64_t i = 0; i < kNopeDim; ++i) {
    row.push_back(LoadF(nope, i) * LoadF(scales, i / kTile));
  }
  for (int64_t i = 0; i < kRopeDim; ++i) row.push_back(LoadF(rope, i));
  return row;
}

}  // namespace cannsim
