// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_SPEC_RANK_H_
#define BELAY_SPEC_RANK_H_

#include <cstdint>

namespace belay::spec {

// Which part of a model a process holds. Tensor parallelism splits heads,
// output groups and vocabulary rows; expert parallelism splits the routed
// experts. Everything else is on every rank. {1, 0, 1, 0} is the whole model.
struct Rank {
  int tp = 1;       // tensor-parallel ranks
  int tp_rank = 0;  // in [0, tp)
  int ep = 1;       // expert-parallel ranks
  int ep_rank = 0;  // in [0, ep)
};

}  // namespace belay::spec

#endif  // BELAY_SPEC_RANK_H_
