// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_OPS_NUMERICS_H_
#define BELAY_OPS_NUMERICS_H_

#include <cstdint>

#include "tensor/dtype.h"

namespace belay::ops {

// Which roundings an operator makes between its steps.
enum class NumericsMode : uint8_t {
  // DeepSeek's own: bf16 activations, FP8 activations into FP8 / FP4 weights,
  // FP8 KV rows, FP4 indexer rows (inference/model.py and kernel.py, current
  // revision).
  kOfficial,
  // No activation or cache quantisation and no rounding to bf16: float32
  // between operators. For tests against an exact oracle.
  kExact,
};

// The numbers behind the rules. What later releases may change is a value here.
struct Numerics {
  NumericsMode mode = NumericsMode::kOfficial;
  int act_block = 128;      // act_quant block along K of an FP8 or FP4 linear
  int kv_group = 64;        // act_quant group of the KV rows' nope part
  int index_group = 32;     // fp4_act_quant group of the indexer's q and k
  int attention_tile = 64;  // candidates a step of the online softmax
  float norm_eps = 1e-6f;
  // Inputs of FP8 and FP4 weights become int8 in blocks of 32 instead of FP8,
  // and FP8 weights int8 with them: faster, and a departure from the official
  // numerics. Back ends that cannot do it refuse (Create).
  bool int8_activations = false;

  bool official() const { return mode == NumericsMode::kOfficial; }
  // dtype of the activations between operators.
  DType act_dtype() const { return official() ? DType::kBF16 : DType::kF32; }
};

}  // namespace belay::ops

#endif  // BELAY_OPS_NUMERICS_H_
