// SPDX-License-Identifier: Apache-2.0
// A row of the packed cache of A5: 64 rope channels as BF16, then 448 others as
// E4M3, then a power of two as E8M0 for each 64 of these, then nothing up to
// 640 bytes. In a row of 512 numbers the rope channels are the last.
#ifndef BELAY_CANNSIM_CUSTOM_PACKED_ROW_H_
#define BELAY_CANNSIM_CUSTOM_PACKED_ROW_H_

#include <cstdint>
#include <vector>

namespace cannsim {

inline constexpr int64_t kRowDim = 512;
inline constexpr int64_t kRopeDim = 64;
inline constexpr int64_t kPackedBytes = 640;

// scale = 2^ceil(log2(max(max|x|, 1e-4) / 448)). Leaves the last 57 bytes.
void PackRow(const std::vector<double>& row, char* bytes);

// All 512 numbers, rope channels last again.
std::vector<double> UnpackRow(const char* bytes);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_CUSTOM_PACKED_ROW_H_
