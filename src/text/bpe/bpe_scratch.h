// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TEXT_BPE_BPE_SCRATCH_H_
#define BELAY_TEXT_BPE_BPE_SCRATCH_H_

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "text/bpe/bpe.h"

namespace belay::text {

// A piece is a doubly linked list of nodes. Pairs wait in one bucket a rank, so
// that the queue holds ranks, not pairs: in a run of one letter, a million
// pairs have the same rank, and sorting them one by one would not be linear.
struct Bpe::Scratch {
  struct Node {
    int32_t id;
    int32_t prev;  // -1: none
    int32_t next;  // -1: none
    Merged pair;   // what this and the next would become
  };
  struct Bucket {
    uint32_t rank = 0;
    bool sorted = true;  // `at` from n_done on
    size_t n_done = 0;
    std::vector<int32_t> at;  // left nodes of pairs, some no longer true

    void Clear() {
      sorted = true;
      n_done = 0;
      at.clear();
    }
  };

  std::vector<Node> nodes;
  std::vector<Bucket> buckets;  // the first n_buckets are in use
  size_t n_buckets = 0;
  // By rank: the place of its bucket + 1; 0 = none yet. All 0 between pieces.
  std::vector<uint32_t> bucket_of;
  // Ranks that have pairs, the lowest first.
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ranks;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_BPE_BPE_SCRATCH_H_
