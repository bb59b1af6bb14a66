// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_ENGINE_SEQUENCE_H_
#define BELAY_ENGINE_SEQUENCE_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/request.h"

namespace belay::engine {

// One request while it waits and runs.
struct Sequence {
  RequestId id = 0;
  SamplingParams sampling;
  std::vector<int32_t> stop_ids;
  std::vector<int32_t> tokens;  // prompt, then generated; reserved to its limit
  int32_t n_prompt = 0;
  int32_t n_limit = 0;   // tokens.size() at which it ends by length
  int32_t n_cached = 0;  // positions whose rows are in the caches
  int32_t draft = -1;    // the guessed next token, -1 = none
  int32_t slot = -1;
  std::vector<int32_t> pages;  // ids; page p holds positions from 128 p
  bool cancelled = false;
  FinishReason finish = FinishReason::kNone;

  int32_t n_tokens() const { return static_cast<int32_t>(tokens.size()); }
  // Tokens whose rows are not in the caches yet; 1 while decoding.
  int32_t n_pending() const { return n_tokens() - n_cached; }
  bool prefilling() const { return n_cached < n_prompt; }
  bool is_stop(int32_t token) const {
    return std::find(stop_ids.begin(), stop_ids.end(), token) != stop_ids.end();
  }

  // Adds a generated token and decides whether it was the last.
  void Append(int32_t token) {
    tokens.push_back(token);
    if (is_stop(token)) {
      finish = FinishReason::kStop;
    } else if (n_tokens() >= n_limit) {
      finish = FinishReason::kLength;
    }
  }
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_SEQUENCE_H_
