// SPDX-License-Identifier: Apache-2.0
// What each back end checks of a weight before it binds it: LinearSource's own
// rules (ops/linear.h), not arithmetic.
#ifndef BELAY_OPS_LINEAR_SOURCE_H_
#define BELAY_OPS_LINEAR_SOURCE_H_

#include <cstdint>
#include <string>

#include "base/error.h"
#include "ops/linear.h"
#include "ops/numerics.h"
#include "tensor/shape.h"

namespace belay::ops {

// CKPT-006 for a tensor whose shape is not `expected`.
Status WrongShape(const std::string& where, const std::string& expected,
                  const Shape& got);

// [n_out, n_in] that the weight stands for, in values. Errors: CKPT-005, a
// dtype that no weight has (U8 with a format, else F32, BF16, F16, F8_E4M3 or
// I8), a shape that is no matrix or holds no whole blocks.
StatusOr<Shape> CheckWeight(const LinearSource& source);

// The scale of an FP8 or FP4 weight [n_out, n_in]: its dtype, and one value a
// block. block_n and block_k >= 1.
Status CheckScale(const LinearSource& source, const Shape& weight);

// Where the input is quantised in blocks of `act_block`, they must fill n_in
// and nest with the weight's along K. Not of interest in exact numerics or
// without quantise_input; the caller knows.
Status CheckActBlocks(const Numerics& numerics, const LinearSource& source,
                      int64_t n_in);

}  // namespace belay::ops

#endif  // BELAY_OPS_LINEAR_SOURCE_H_
