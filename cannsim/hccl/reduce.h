// SPDX-License-Identifier: Apache-2.0
// Element types of collectives, and reductions: over the ranks in order, in
// double precision with one rounding at the end (integers: wrapping).
#ifndef BELAY_CANNSIM_HCCL_REDUCE_H_
#define BELAY_CANNSIM_HCCL_REDUCE_H_

#include <cstddef>
#include <cstdint>

#include "hccl/hccl_types.h"

namespace cannsim::hccl {

// Bytes of one element; 0 for no type that elements can have.
size_t BytesOf(HcclDataType dtype);
const char* NameOf(HcclDataType dtype);
const char* NameOf(HcclReduceOp op);

// Whether values of this type can be reduced (8-bit scales and HiFloat8 can
// only be moved).
bool CanReduce(HcclDataType dtype);

// out[i] = op over r of parts[r * count + i], for `n_parts` parts of `count`
// elements each, which lie one behind another.
void Reduce(HcclDataType dtype, HcclReduceOp op, const char* parts,
            uint32_t n_parts, uint64_t count, char* out);

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_REDUCE_H_
