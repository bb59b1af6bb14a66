// SPDX-License-Identifier: Apache-2.0
// The reference back end: scalar code that says what every operator of ops/
// means. It is the oracle of the conformance suite and is read beside the
// formulas of the operator headers; speed and memory come second.
//
// Arithmetic: sums of products (matmuls, means, softmax sums) are accumulated
// in double and rounded to float32 once; elementwise steps are float32; bf16,
// FP8 and FP4 roundings happen exactly where the official code rounds. A
// token's result never depends on what else is in the batch or on how a
// sequence is cut into spans.
#ifndef BELAY_BACKENDS_REF_REF_H_
#define BELAY_BACKENDS_REF_REF_H_

#include <memory>

#include "base/error.h"
#include "ops/backend.h"
#include "ops/numerics.h"

namespace belay::ref {

// A back end on host memory for one thread. Errors: BACK-002 when `numerics`
// holds a block or tile size < 1.
StatusOr<std::unique_ptr<ops::Backend>> Create(const ops::Numerics& numerics);

}  // namespace belay::ref

#endif  // BELAY_BACKENDS_REF_REF_H_
