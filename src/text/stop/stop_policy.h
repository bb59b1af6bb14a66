// SPDX-License-Identifier: Apache-2.0
// When a completion ends: EOS ids, the token limit, stop strings.
#ifndef BELAY_TEXT_STOP_STOP_POLICY_H_
#define BELAY_TEXT_STOP_STOP_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/stop/stop_matcher.h"

namespace belay::text {

struct StopOptions {
  // Ids that end the turn: all that generation_config.json names, plus those
  // of the request. Their text is not part of the completion.
  std::vector<int32_t> eos_ids;
  // Such an id counts, but does not end: for benchmarks of a fixed length.
  bool ignore_eos = false;
  size_t max_tokens = 0;  // of the completion, that of EOS included; 0: none
  std::vector<std::string> stop;  // stop strings; not part of the completion
};

enum class StopReason {
  kNone,        // goes on
  kEos,         // an id of eos_ids
  kStopString,  // a string of stop
  kLength,      // max_tokens
};

// "stop" or "length" as finish_reason of the OpenAI API; "" for kNone.
const char* FinishReasonName(StopReason reason);

// One completion. For each token the caller gives its id and the text that it
// made certain (StreamDecoder), and gets the text to pass on.
class StopPolicy {
 public:
  explicit StopPolicy(StopOptions options);

  // The text that may be shown now. After it, reason() says whether the
  // completion has ended with this token; no Token may follow then. The text
  // of an EOS id is ignored unless ignore_eos is set. When one token meets
  // both a stop string and the limit, the reason is the stop string.
  std::string Token(int32_t id, std::string_view text);

  // For an end from outside (the client left): what was held back, `text` (the
  // decoder's own rest) included. The same after any reason but kStopString.
  std::string Finish(std::string_view text = "");

  StopReason reason() const { return reason_; }
  size_t n_tokens() const { return n_tokens_; }
  // The stop string that was met, or null.
  const std::string* stop_string() const { return matcher_.found(); }

 private:
  StopOptions options_;
  StopMatcher matcher_;
  StopReason reason_ = StopReason::kNone;
  size_t n_tokens_ = 0;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_STOP_STOP_POLICY_H_
