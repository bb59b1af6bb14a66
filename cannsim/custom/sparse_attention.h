// SPDX-License-Identifier: Apache-2.0
// Attention over a sliding window and compressed rows, keys and values being
// the same rows.
#ifndef BELAY_CANNSIM_CUSTOM_SPARSE_ATTENTION_H_
#define BELAY_CANNSIM_CUSTOM_SPARSE_ATTENTION_H_

#include <cstdint>

#include "cannsim/custom/paged.h"

namespace cannsim {

struct SharedKvTensors {
  const aclTensor* q;
  const aclTensor* ori_kv;
  const aclTensor* cmp_kv;
  const aclTensor* cmp_index;
  const aclTensor* ori_table;
  const aclTensor* cmp_table;
  const aclTensor* cu_seqlens_q;
  const aclTensor* lengths;  // sequsedKv
  const aclTensor* sinks;
  const aclTensor* metadata;
  const aclTensor* out;
};

struct SharedKvOptions {
  double scale = 1;
  int64_t ratio = 1;
  int64_t window = 0;  // positions before the query's own
  bool packed = false;
};

// What the back ends of the two operators have in common but is not a tensor.
struct SharedKvModes {
  int64_t ori_mask;
  int64_t cmp_mask;
  int64_t left;
  int64_t right;
  const char* layout_q;
  const char* layout_kv;
  bool return_lse;
};

// Checks what both operators ask for, names the tensors and finishes. The
// caller has checked dtypes, heads and K.
aclnnStatus FinishSharedKv(Phase1& call, const SharedKvTensors& t,
                           const SharedKvModes& modes,
                           const SharedKvOptions& options);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_CUSTOM_SPARSE_ATTENTION_H_
