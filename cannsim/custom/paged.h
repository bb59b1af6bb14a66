// SPDX-License-Identifier: Apache-2.0
// Sequences whose keys lie in blocks, as the indexer and the sparse attention
// meet them.
#ifndef BELAY_CANNSIM_CUSTOM_PAGED_H_
#define BELAY_CANNSIM_CUSTOM_PAGED_H_

#include <cstdint>
#include <vector>

#include "cannsim/ops/at.h"

namespace cannsim {

// One query token.
struct QueryToken {
  int64_t row = 0;  // of the queries
  int64_t batch = 0;
  int64_t position = 0;  // in its sequence
  int64_t length = 0;    // of the sequence, in tokens that are not compressed
};

// Query tokens by the ends of the sequences among the rows (prefix sums
// without the leading 0) and the lengths of the sequences: the queries are the
// last tokens. 0, or an error when a list leaves its range.
inline int ReadTokens(const std::vector<int64_t>& ends, const Array& lengths,
                      int64_t n_rows, std::vector<QueryToken>* tokens) {
  int64_t row = 0;
  for (size_t b = 0; b < ends.size(); ++b) {
    const int64_t length = AtI(lengths, b);
    if (ends[b] < row || ends[b] > n_rows || ends[b] - row > length) {
      return IndexOutOfRange("end of a sequence", ends[b], n_rows + 1);
    }
    const int64_t first = length - (ends[b] - row);
    for (int64_t i = 0; row < ends[b]; ++i, ++row) {
      tokens->push_back({row, static_cast<int64_t>(b), first + i, length});
    }
  }
  return 0;
}

// Where key `j` of a sequence begins in a cache [blocks, block, ...].
inline int FindKey(const Array& cache, const Array& table, int64_t batch,
                   int64_t j, int64_t* at) {
  const int64_t block_size = cache.dims[1];
  if (j < 0 || j / block_size >= table.dims[1]) {
    return IndexOutOfRange("key", j, table.dims[1] * block_size);
  }
  const int64_t block = AtI(table, batch, j / block_size);
  if (block < 0 || block >= cache.dims[0]) {
    return IndexOutOfRange("block", block, cache.dims[0]);
  }
  *at = Place(cache, block, j % block_size);
  return 0;
}

// What 4-D caches of one key head must be.
inline bool IsPaged(const aclTensor* cache, int64_t dim) {
  return cache->rank() == 4 && cache->dims[2] == 1 && cache->dims[3] == dim &&
         cache->dims[1] >= 16 && cache->dims[1] <= 1024 &&
         cache->dims[1] % 16 == 0;
}

// Fills a plan for the cores: the simulator needs none.
inline aclnnStatus FinishPlan(Phase1& call, const aclTensor* metadata) {
  call.Out(metadata, "metadata");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(metadata->dtype == ACL_INT32 && metadata->dims == Dims{1024},
               "metadata must be INT32 [1024]");
  return call.Finish([](const Arrays& a) {
    Walk1(a.back(), [&](int64_t at) { StoreI(a.back(), at, 0); });
    return 0;
  });
}

}  // namespace cannsim

#endif  // BELAY_CANNSIM_CUSTOM_PAGED_H_
