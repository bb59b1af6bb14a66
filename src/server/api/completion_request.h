// SPDX-License-Identifier: Apache-2.0
// The requests that are no chat.
#ifndef BELAY_SERVER_API_COMPLETION_REQUEST_H_
#define BELAY_SERVER_API_COMPLETION_REQUEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "server/api/generation.h"

namespace belay::server {

// Text, or token ids as they are.
using Prompt = std::variant<std::string, std::vector<int32_t>>;

// A request to /v1/completions.
struct CompletionCall {
  Generation generation;
  std::vector<Prompt> prompts;  // at least one; each has generation.n choices
  bool echo = false;            // the answer begins with the prompt
};

// Errors: API-002, API-012.
StatusOr<CompletionCall> ReadCompletionCall(const text::JsonValue& json);

// A request to /infer: {"text", max_tokens?, temperature?}. Errors: API-002.
struct InferCall {
  std::string text;
  Generation generation;
};
StatusOr<InferCall> ReadInferCall(const text::JsonValue& json);

// {"tokens": [...]} of /v1/detokenize. Errors: API-002.
StatusOr<std::vector<int32_t>> ReadTokens(const text::JsonValue& json);

}  // namespace belay::server

#endif  // BELAY_SERVER_API_COMPLETION_REQUEST_H_
