// SPDX-License-Identifier: Apache-2.0
// What goes into the engine and what comes out: tokens only, no text.
#ifndef BELAY_ENGINE_REQUEST_H_
#define BELAY_ENGINE_REQUEST_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace belay::engine {

using RequestId = uint64_t;

struct SamplingParams {
  float temperature = 0.0f;  // 0 = greedy
  int32_t top_k = 0;         // 0 = off
  float top_p = 1.0f;
  float min_p = 0.0f;
  uint64_t seed = 0;
};

struct Request {
  std::vector<int32_t> prompt;  // at least one id
  int32_t max_tokens = 128;     // to generate, >= 1
  SamplingParams sampling;
  std::vector<int32_t> stop_ids;  // ids that end the answer (they are emitted);
                                  // usually the model's eos
};

enum class FinishReason : uint8_t {
  kNone,       // goes on
  kStop,       // a stop id
  kLength,     // max_tokens or the context's end
  kCancelled,  // by Cancel()
  kError,      // no finite logit (ENG-004)
};

constexpr std::string_view FinishReasonName(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "cancelled";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

// One generated token, or an end without one (token == -1).
struct Event {
  RequestId request = 0;
  int32_t token = -1;
  FinishReason finish = FinishReason::kNone;
};

// ARG-007 names the first value out of range.
Status CheckSampling(const SamplingParams& sampling);

}  // namespace belay::engine

#endif  // BELAY_ENGINE_REQUEST_H_
