// SPDX-License-Identifier: Apache-2.0
// A conversation as plain data: what RenderChat turns into a prompt.
#ifndef BELAY_TEXT_CHAT_REQUEST_H_
#define BELAY_TEXT_CHAT_REQUEST_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/chat/json.h"

namespace belay::text {

enum class Role {
  kSystem,
  kDeveloper,
  kUser,
  kAssistant,
  kTool,
  kLatestReminder,
};

enum class ThinkingMode { kChat, kThinking };

// What the caller asks for; which of them exist depends on the revision (see
// EncodingRevision). kDefault is the absence of a wish.
enum class ReasoningEffort { kDefault, kLow, kHigh, kMax };

// The short classification tasks that the model was trained on.
enum class Task { kAction, kQuery, kAuthority, kDomain, kTitle, kReadUrl };

// One call of a function by the assistant.
struct ToolCall {
  std::string id;    // "" when none was given
  std::string name;  // of the function
  // The arguments in JSON, as they came. Text that is no JSON object is
  // rendered as one string parameter named "arguments", as the official
  // encoder does with text that is no JSON.
  std::string arguments;
};

// A piece of a user turn. Tool messages become kToolResult blocks.
struct ContentBlock {
  enum class Kind { kText, kToolResult };
  Kind kind = Kind::kText;
  std::string text;
  std::string tool_call_id;  // kToolResult; "" when none was given
};

struct ChatMessage {
  Role role = Role::kUser;
  std::string content;               // all roles but user and tool
  std::vector<ContentBlock> blocks;  // user and tool
  std::string reasoning_content;     // assistant
  std::vector<ToolCall> tool_calls;  // assistant
  std::vector<JsonValue> tools;      // system, developer: "function" objects
  std::optional<JsonValue> response_format;  // system, developer
  std::optional<Task> task;
  bool without_eos = false;  // assistant: the turn goes on in the completion
};

struct ChatRequest {
  // Turns whose prompt text the caller already has: they decide about what is
  // dropped, but are not rendered, and no BOS is.
  std::vector<ChatMessage> context;
  std::vector<ChatMessage> messages;
  ThinkingMode thinking_mode = ThinkingMode::kChat;
  ReasoningEffort effort = ReasoningEffort::kDefault;
  // Leave out the reasoning of turns before the last user message. Has no
  // effect when any message brings tools.
  bool drop_earlier_reasoning = true;
  bool add_bos = true;
};

// "chat", "thinking". Error: CHAT-007.
StatusOr<ThinkingMode> ParseThinkingMode(std::string_view name);

// "low", "high", "max"; "" is kDefault. Error: CHAT-007.
StatusOr<ReasoningEffort> ParseReasoningEffort(std::string_view name);

// Reads a list of messages in the OpenAI form, with the official encoder's
// own fields beside it: tools, response_format, task, wo_eos; "prefix": true
// on the last message means wo_eos, as in DeepSeek's API. Unknown fields are
// ignored. `where` in an error names the place ("messages[2].content").
// Errors: CHAT-002 (a field of the wrong type or missing), CHAT-003 (unknown
// role), CHAT-004 (a message that the encoding cannot express), CHAT-005
// (unknown task), CHAT-006 (a tool or tool call without its parts).
StatusOr<std::vector<ChatMessage>> MessagesFromJson(const JsonValue& list);

// Reads {"messages": [...], "thinking_mode": ..., "kwargs": {context,
// drop_thinking, add_default_bos_token, reasoning_effort}} and, beside it, the
// OpenAI fields "tools", "response_format" and "reasoning_effort" of a whole
// request. A bare list is taken as the messages. Unknown kwargs: CHAT-007.
StatusOr<ChatRequest> ChatRequestFromJson(const JsonValue& json);

// Gives the conversation the tools of an OpenAI request ([{"type": "function",
// "function": {...}}]): to the first message when it is system or developer,
// else to a new empty system message in front of it. Errors: CHAT-002, 006.
Status AddTools(const JsonValue& tools, std::vector<ChatMessage>* messages);

}  // namespace belay::text

#endif  // BELAY_TEXT_CHAT_REQUEST_H_
