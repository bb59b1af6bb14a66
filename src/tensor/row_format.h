// SPDX-License-Identifier: Apache-2.0
// How one cache row is stored. Operators read and write rows in these formats,
// and the layout in spec counts their bytes: both from this one definition.
#ifndef BELAY_TENSOR_ROW_FORMAT_H_
#define BELAY_TENSOR_ROW_FORMAT_H_

#include <cstddef>
#include <cstdint>

namespace belay {

// Tokens in a cache page; a multiple of both compression ratios (4 and 128).
inline constexpr int kPageTokens = 128;

enum class RowKind : uint8_t {
  // KV row: e4m3 codes of the nope dims, one e8m0 scale per `group` dims, then
  // bf16 rope dims. 448 + 7 + 128 = 583 bytes at head_dim 512. Lossless in the
  // official numerics, since the row was quantised in place before.
  kFp8Rope,
  // Indexer row: packed e2m1 codes (low nibble = even dim), then one e8m0 scale
  // per `group` dims. 64 + 4 = 68 bytes at 128 dims.
  kFp4,
  kBf16,  // dims in bf16 (Ascend A2 / A3)
  kF32,   // dims in float32 (exact numerics)
};

struct RowFormat {
  RowKind kind = RowKind::kF32;
  int head_dim = 0;  // all dims, rope included
  int rope_dim = 0;  // trailing dims kept in bf16; kFp8Rope only
  int group = 0;     // dims a scale

  constexpr size_t bytes() const {
    const auto n = static_cast<size_t>(head_dim);
    const auto rope = static_cast<size_t>(rope_dim);
    switch (kind) {
      case RowKind::kFp8Rope:
        return (n - rope) + (n - rope) / static_cast<size_t>(group) + 2 * rope;
      case RowKind::kFp4:
        return n / 2 + n / static_cast<size_t>(group);
      case RowKind::kBf16:
        return 2 * n;
      case RowKind::kF32:
        return 4 * n;
    }
    return 0;
  }

  friend constexpr bool operator==(const RowFormat&,
                                   const RowFormat&) = default;
};

}  // namespace belay

#endif  // BELAY_TENSOR_ROW_FORMAT_H_
