// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_OPS_COMMUNICATOR_H_
#define BELAY_OPS_COMMUNICATOR_H_

#include "tensor/view.h"

namespace belay::ops {

// The collective points of the forward pass. Every rank calls the same
// collectives in the same order; the result is the same, bit for bit, on all.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int n_ranks() const = 0;
  // x = sum over ranks, added in f32 in rank order, rounded once to x's dtype
  // (bf16 or f32), in place.
  virtual void AllReduceSum(TensorView x) = 0;
  // out = the ranks' columns side by side: out[r, rank * n + c] = local[r, c].
  virtual void AllGatherColumns(ConstTensorView local,  // [n_rows, n] f32
                                TensorView out) = 0;    // [n_rows, n_ranks * n]
};

// One rank: nothing to exchange. AllGatherColumns copies unless both are the
// same memory.
class SingleRank final : public Communicator {
 public:
  int rank() const override { return 0; }
  int n_ranks() const override { return 1; }
  void AllReduceSum(TensorView) override {}
  void AllGatherColumns(ConstTensorView local, TensorView out) override;
};

}  // namespace belay::ops

#endif  // BELAY_OPS_COMMUNICATOR_H_
