// SPDX-License-Identifier: Apache-2.0
#include "text/stop/stop_policy.h"

#include <algorithm>
#include <utility>

namespace belay::text {

const char* FinishReasonName(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return "";
    case StopReason::kEos:
    case StopReason::kStopString:
      return "stop";
    case StopReason::kLength:
      return "length";
  }
  return "";
}

StopPolicy::StopPolicy(StopOptions options)
    : options_(std::move(options)), matcher_(options_.stop) {}

std::string StopPolicy::Token(int32_t id, std::string_view text) {
  ++n_tokens_;
  const auto& eos = options_.eos_ids;
  const bool is_eos = std::find(eos.begin(), eos.end(), id) != eos.end();
  if (is_eos && !options_.ignore_eos) {
    reason_ = StopReason::kEos;
    return "";
  }
  std::string out = matcher_.Feed(text);
  if (matcher_.found() != nullptr) {
    reason_ = StopReason::kStopString;
  } else if (options_.max_tokens > 0 && n_tokens_ >= options_.max_tokens) {
    reason_ = StopReason::kLength;
  }
  return out;
}

std::string StopPolicy::Finish(std::string_view text) {
  if (matcher_.found() != nullptr) return "";
  std::string out = matcher_.Feed(text);
  if (matcher_.found() != nullptr) {
    reason_ = StopReason::kStopString;
    return out;
  }
  return out + matcher_.Finish();
}

}  // namespace belay::text
