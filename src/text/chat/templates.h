// SPDX-License-Identifier: Apache-2.0
// The fixed sentences of the encoding. The model was trained on them, so every
// byte counts. Sources: the pinned encoder's results for the tools section and
// the first effort text; public copies of the 0731 encoder for the second.
#ifndef BELAY_TEXT_CHAT_TEMPLATES_H_
#define BELAY_TEXT_CHAT_TEMPLATES_H_

#include <string>
#include <string_view>
#include <vector>

#include "text/chat/json.h"
#include "text/chat/request.h"

namespace belay::text {

// "Reasoning Effort: Absolute maximum...", with its blank line.
extern const std::string_view kEffortAbsolute;
// "Reasoning Effort: Beyond maximum...", with its blank line.
extern const std::string_view kEffortBeyond;

// What follows the content of a message that brings tools.
std::string RenderTools(const std::vector<JsonValue>& functions);

// What follows it when the message asks for a response format.
std::string RenderResponseFormat(const JsonValue& schema);

// The block of calls behind an assistant's content, or "" without calls.
std::string RenderToolCalls(const std::vector<ToolCall>& calls);

// The special token of a task.
std::string_view TaskMark(Task task);

}  // namespace belay::text

#endif  // BELAY_TEXT_CHAT_TEMPLATES_H_
