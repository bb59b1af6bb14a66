// SPDX-License-Identifier: Apache-2.0
#include "engine/sequence.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error_ids.h"

namespace belay::engine {
namespace {

// Where `token` is, or belongs, in a list sorted by token.
auto PlaceOf(std::vector<ops::SeenToken>& seen, int32_t token) {
  return std::lower_bound(
      seen.begin(), seen.end(), token,
      [](const ops::SeenToken& s, int32_t id) { return s.token < id; });
}

void Count(std::vector<ops::SeenToken>& seen, int32_t token, int32_t n) {
  const auto place = PlaceOf(seen, token);
  if (place != seen.end() && place->token == token) {
    place->n_generated += n;
  } else {
    seen.insert(place, {token, n});
  }
}

Status CheckToken(const char* where, int32_t token, int64_t vocab) {
  if (token >= 0 && token < vocab) return absl::OkStatus();
  return MakeError(kArgTokenOutOfRange,
                   {.where = where,
                    .what = "",
                    .expected = "0 .. " + std::to_string(vocab - 1),
                    .got = std::to_string(token)});
}

Status Check(const Request& request, int64_t vocab, int64_t max_context) {
  BELAY_RETURN_IF_ERROR(CheckSampling(request.sampling));
  if (request.n_top_logprobs < -1 || request.n_top_logprobs > kMaxTopLogprobs) {
    return MakeError(kArgBadSampling,
                     {.where = "top log probabilities",
                      .what = "",
                      .expected = "0 .. " + std::to_string(kMaxTopLogprobs),
                      .got = std::to_string(request.n_top_logprobs)});
  }
  if (request.adapter != -1) {
    return MakeError(kEngNoAdapter, {.where = "adapter",
                                     .what = "",
                                     .expected = "none",
                                     .got = std::to_string(request.adapter)});
  }
  if (request.prompt.empty()) {
    return MakeError(kArgEmptyPrompt, ErrorFacts{});
  }
  for (const int32_t token : request.prompt) {
    BELAY_RETURN_IF_ERROR(CheckToken("prompt", token, vocab));
  }
  for (const auto& [token, bias] : request.sampling.logit_bias) {
    BELAY_RETURN_IF_ERROR(CheckToken("logit bias", token, vocab));
  }
  const auto n_prompt = static_cast<int64_t>(request.prompt.size());
  if (n_prompt < max_context) return absl::OkStatus();
  return MakeError(kEngContextTooLong,
                   {.where = "prompt",
                    .what = "",
                    .expected = "< " + std::to_string(max_context) + " tokens",
                    .got = std::to_string(n_prompt)});
}

}  // namespace

void Sequence::Append(int32_t token) {
  tokens.push_back(token);
  if (penalised()) Count(seen, token, 1);
  if (constraint != nullptr) constraint->Accept(token);
  if (std::find(stop_ids.begin(), stop_ids.end(), token) != stop_ids.end() ||
      (constraint != nullptr && constraint->Done())) {
    finish = FinishReason::kStop;
  } else if (n_tokens() >= n_limit) {
    finish = FinishReason::kLength;
  }
}

StatusOr<std::unique_ptr<Sequence>> MakeSequence(Request request, int64_t vocab,
                                                 int64_t max_context) {
  BELAY_RETURN_IF_ERROR(Check(request, vocab, max_context));
  auto s = std::make_unique<Sequence>();
  const auto n_prompt = static_cast<int64_t>(request.prompt.size());
  s->sampling = std::move(request.sampling);
  s->stop_ids = std::move(request.stop_ids);
  s->n_top_logprobs = request.n_top_logprobs;
  s->constraint = std::move(request.constraint);
  s->priority = request.priority;
  s->deadline = request.deadline;
  s->key = {request.cache_salt, request.adapter};
  s->n_prompt = static_cast<int32_t>(n_prompt);
  s->n_limit = static_cast<int32_t>(std::min<int64_t>(
      max_context, n_prompt + std::max(request.max_tokens, 1)));
  s->tokens = std::move(request.prompt);
  const auto n_limit = static_cast<size_t>(s->n_limit);
  s->tokens.reserve(n_limit + 1);
  const size_t n_pages = n_limit / kPageTokens + 2;
  s->pages.reserve(n_pages);
  s->in_tree.reserve(n_pages);
  s->drafts.reserve(kMaxDraftTokens);
  if (!s->penalised()) return s;
  s->seen.reserve(std::min(static_cast<size_t>(vocab), n_limit + 1));
  std::vector<int32_t> sorted = s->tokens;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  for (const int32_t token : sorted) s->seen.push_back({token, 0});
  return s;
}

}  // namespace belay::engine
