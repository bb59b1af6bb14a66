// SPDX-License-Identifier: Apache-2.0
// Sampling on the host, for rows that ask for more than the largest logit.
#ifndef BELAY_BACKENDS_CANN_HOST_SAMPLE_H_
#define BELAY_BACKENDS_CANN_HOST_SAMPLE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "ops/sample.h"

namespace belay::cann {

// What ops/sample.h says of one row.
struct HostSampled {
  int32_t id = -1;
  float logprob = 0;  // with n_top >= 0 and id >= 0
  std::vector<int32_t> top_ids;
  std::vector<float> top_logprobs;
};

// True when the row is the first of the largest logits and nothing else.
bool IsPlainGreedy(const ops::SampleRow& row);

HostSampled SampleOnHost(const ops::SampleRow& row,
                         std::span<const float> logits);

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_HOST_SAMPLE_H_
