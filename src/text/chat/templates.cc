// SPDX-License-Identifier: Apache-2.0
#include "text/chat/templates.h"

#include "text/chat/tokens.h"

namespace belay::text {
namespace {

constexpr std::string_view kToolsBefore =
    R"(## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a "<｜DSML｜tool_calls>" block like the following:

<｜DSML｜tool_calls>
<｜DSML｜invoke name="$TOOL_NAME">
<｜DSML｜parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</｜DSML｜parameter>
...
</｜DSML｜invoke>
<｜DSML｜invoke name="$TOOL_NAME2">
...
</｜DSML｜invoke>
</｜DSML｜tool_calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by <think>), you MUST output your complete reasoning inside <think>...</think> BEFORE any tool calls or final response.

Otherwise, output directly after </think> with tool calls or final response.

### Available Tool Schemas

)";
constexpr std::string_view kToolsAfter = R"(

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
)";
constexpr std::string_view kResponseFormat =
    R"(## Response Format:

You MUST strictly adhere to the following schema to reply:
)";

void AppendParameter(const std::string& name, const JsonValue& value,
                     std::string* out) {
  out->append(kParameterBegin).append(" name=\"").append(name);
  if (value.is_string()) {
    out->append("\" string=\"true\">").append(value.text);
  } else {
    out->append("\" string=\"false\">").append(DumpJson(value));
  }
  out->append(kParameterEnd).append(">");
}

void AppendCall(const ToolCall& call, std::string* out) {
  out->append(kInvokeBegin).append(" name=\"").append(call.name);
  out->append("\">\n");
  const StatusOr<JsonValue> arguments = ParseJson(call.arguments);
  if (!arguments.ok() || !arguments->is_object()) {
    AppendParameter("arguments", JsonValue::String(call.arguments), out);
  } else {
    const char* separator = "";
    for (const auto& [name, value] : arguments->members) {
      out->append(separator);
      AppendParameter(name, value, out);
      separator = "\n";
    }
  }
  // A call without parameters keeps the empty line in between.
  out->append("\n").append(kInvokeEnd).append(">");
}

}  // namespace

constexpr std::string_view kEffortAbsolute =
    R"(Reasoning Effort: Absolute maximum with no shortcuts permitted.
You MUST be very thorough in your thinking and comprehensively decompose the problem to resolve the root cause, rigorously stress-testing your logic against all potential paths, edge cases, and adversarial scenarios.
Explicitly write out your entire deliberation process, documenting every intermediate step, considered alternative, and rejected hypothesis to ensure absolutely no assumption is left unchecked.

)";
constexpr std::string_view kEffortBeyond =
    R"(Reasoning Effort: Beyond maximum — exhaustive, relentless, and uncompromising.
You MUST reason with the utmost depth and rigor, leaving absolutely nothing to chance: exhaustively decompose the problem into its most fundamental components, trace every causal chain to its root, and resolve the underlying cause rather than any surface symptom.
Do not stop reasoning until you have independently verified the solution from multiple angles and are certain that no assumption remains unchecked and no error remains undiscovered.

)";

std::string RenderTools(const std::vector<JsonValue>& functions) {
  if (functions.empty()) return "";
  std::string out = "\n\n";
  out += kToolsBefore;
  const char* separator = "";
  for (const JsonValue& function : functions) {
    out += separator + DumpJson(function);
    separator = "\n";
  }
  return out.append(kToolsAfter);
}

std::string RenderResponseFormat(const JsonValue& schema) {
  std::string out = "\n\n";
  out += kResponseFormat;
  return out + DumpJson(schema);
}

std::string RenderToolCalls(const std::vector<ToolCall>& calls) {
  if (calls.empty()) return "";
  std::string out = "\n\n";
  out.append(kCallsBegin).append(">\n");
  const char* separator = "";
  for (const ToolCall& call : calls) {
    out += separator;
    AppendCall(call, &out);
    separator = "\n";
  }
  return out.append("\n").append(kCallsEnd).append(">");
}

std::string_view TaskMark(Task task) {
  switch (task) {
    case Task::kAction:
      return "<｜action｜>";
    case Task::kQuery:
      return "<｜query｜>";
    case Task::kAuthority:
      return "<｜authority｜>";
    case Task::kDomain:
      return "<｜domain｜>";
    case Task::kTitle:
      return "<｜title｜>";
    case Task::kReadUrl:
      return "<｜read_url｜>";
  }
  return "";
}

}  // namespace belay::text
