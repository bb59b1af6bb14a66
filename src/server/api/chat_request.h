// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_SERVER_API_CHAT_REQUEST_H_
#define BELAY_SERVER_API_CHAT_REQUEST_H_

#include <optional>
#include <string>

#include "base/error.h"
#include "server/api/generation.h"
#include "text/chat/render.h"
#include "text/chat/request.h"

namespace belay::server {

// What the answer must look like beyond free text.
struct Format {
  enum class Kind : uint8_t {
    kFree,
    kJsonObject,  // any JSON object
    kJsonSchema,  // JSON of `schema`
    kToolCall,    // calls of functions, one at least
  };
  Kind kind = Kind::kFree;
  text::JsonValue schema;  // kJsonSchema
  std::string where;       // the field that asks for it
  // kToolCall: the function that must be called; "" = any of `tools`.
  std::string function;
  std::vector<text::JsonValue> tools;  // "function" objects
  bool parallel = true;                // more than one call is allowed
};

// A request to /v1/chat/completions.
struct ChatCall {
  Generation generation;
  text::ChatRequest chat;
  Format format;
  bool has_tools = false;
  bool no_calls = false;  // tool_choice "none": the answer must not call
};

struct ChatDefaults {
  bool thinking = false;  // for requests that do not say
  text::EncodingRevision revision = text::EncodingRevision::kInitial;
};

// Reads the request. Errors: API-002 (a field), API-012 (something that cannot
// be done), API-017 (the conversation ends with a finished answer), CHAT-*
// (messages and tools).
StatusOr<ChatCall> ReadChatCall(const text::JsonValue& json,
                                const ChatDefaults& defaults);

// Only messages, tools and thinking, for /v1/tokenize.
StatusOr<text::ChatRequest> ReadChatPrompt(const text::JsonValue& json,
                                           const ChatDefaults& defaults);

}  // namespace belay::server

#endif  // BELAY_SERVER_API_CHAT_REQUEST_H_
