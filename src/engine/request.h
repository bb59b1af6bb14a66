// SPDX-License-Identifier: Apache-2.0
// What goes into the engine and what comes out: tokens only, no text.
#ifndef BELAY_ENGINE_REQUEST_H_
#define BELAY_ENGINE_REQUEST_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/constraint.h"
#include "engine/environment.h"

namespace belay::engine {

// An MTP head is trained to guess one token; further ones it guesses from its
// own state, and is right less often.
inline constexpr size_t kMaxDraftTokens = 4;

using RequestId = uint64_t;

inline constexpr int32_t kMaxTopLogprobs = 20;  // as OpenAI's API

// How a token is drawn; the formulas are at ops/sample.h.
struct SamplingParams {
  float temperature = 0.0f;  // 0 = greedy
  int32_t top_k = 0;         // 0 = off
  float top_p = 1.0f;
  float min_p = 0.0f;
  uint64_t seed = 0;
  float presence_penalty = 0.0f;    // [-2, 2], of tokens already generated
  float frequency_penalty = 0.0f;   // [-2, 2], for each time one was generated
  float repetition_penalty = 1.0f;  // > 0, of tokens in prompt or answer
  // {token id, what is added to its logit, [-100, 100]}; a token named twice
  // gets both.
  std::vector<std::pair<int32_t, float>> logit_bias = {};
};

struct Request {
  std::vector<int32_t> prompt = {};  // at least one id
  int32_t max_tokens = 128;          // to generate, >= 1
  SamplingParams sampling = {};
  std::vector<int32_t> stop_ids = {};  // ids that end the answer (they are
                                       // emitted); usually the model's eos
  // Log probabilities of the drawn token and of so many of the likeliest ones,
  // 0 .. kMaxTopLogprobs; -1 = none at all.
  int32_t n_top_logprobs = -1;
  // What the answer may be; null = anything. Such a request is never drafted.
  std::shared_ptr<TokenConstraint> constraint = {};
  // Higher ones are admitted first, and may take the place of running lower
  // ones, which go on later. Each level is worth a head start of some seconds
  // (EngineOptions::priority_seconds), no more: who waits long enough comes
  // first at any priority. Equal ones: first come, first served.
  int32_t priority = 0;
  // When the request ends with kDeadline, in whatever state; {} = never.
  Clock::time_point deadline{};
  // Prefixes are shared only between requests of one salt: give each tenant its
  // own where one must not learn from timing what another has asked.
  uint64_t cache_salt = 0;
  int32_t adapter = -1;  // adapter slot; -1 = the base model
};

enum class FinishReason : uint8_t {
  kNone,       // goes on
  kStop,       // a stop id, or a constraint that is done
  kLength,     // max_tokens or the context's end
  kCancelled,  // by Cancel()
  kError,      // no finite logit (ENG-004), or a constraint that allows nothing
  kDeadline,   // the request's deadline has passed
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
    case FinishReason::kDeadline:
      return "deadline";
  }
  return "";
}

// ln p of a token under the model's own distribution: softmax of the logits
// before temperature, penalties, bias, constraint and cuts.
struct TokenLogprob {
  int32_t token = -1;
  float logprob = 0.0f;
};

// One generated token, or an end without one (token == -1).
struct Event {
  RequestId request = 0;
  int32_t token = -1;
  FinishReason finish = FinishReason::kNone;
  // Of `token`, when the request asked for log probabilities.
  float logprob = 0.0f;
  // The likeliest tokens, likeliest first; valid until the next Step().
  std::span<const TokenLogprob> top = {};
  // Prompt tokens that came from the prefix cache; said in the request's first
  // event, 0 in all others.
  int32_t n_cached_tokens = 0;
};

// ARG-007 names the first value out of range. Token ids of logit_bias are
// checked by Submit(), which knows the vocabulary.
Status CheckSampling(const SamplingParams& sampling);

}  // namespace belay::engine

#endif  // BELAY_ENGINE_REQUEST_H_
