// SPDX-License-Identifier: Apache-2.0
#include "text/chat/request.h"

#include <array>
#include <utility>

#include "base/error_ids.h"

namespace belay::text {
namespace {

template <typename T, size_t n>
using Names = std::array<std::pair<std::string_view, T>, n>;

constexpr Names<Role, 6> kRoles = {
    {{"system", Role::kSystem},
     {"developer", Role::kDeveloper},
     {"user", Role::kUser},
     {"assistant", Role::kAssistant},
     {"tool", Role::kTool},
     {"latest_reminder", Role::kLatestReminder}}};
constexpr Names<Task, 6> kTasks = {{{"action", Task::kAction},
                                    {"query", Task::kQuery},
                                    {"authority", Task::kAuthority},
                                    {"domain", Task::kDomain},
                                    {"title", Task::kTitle},
                                    {"read_url", Task::kReadUrl}}};
constexpr Names<ThinkingMode, 2> kModes = {
    {{"chat", ThinkingMode::kChat}, {"thinking", ThinkingMode::kThinking}}};
constexpr Names<ReasoningEffort, 4> kEfforts = {
    {{"", ReasoningEffort::kDefault},
     {"low", ReasoningEffort::kLow},
     {"high", ReasoningEffort::kHigh},
     {"max", ReasoningEffort::kMax}}};

template <typename T, size_t n>
std::optional<T> Lookup(const Names<T, n>& names, std::string_view name) {
  for (const auto& [text, value] : names) {
    if (text == name) return value;
  }
  return std::nullopt;
}

template <typename T, size_t n>
std::string List(const Names<T, n>& names) {
  std::string list;
  for (const auto& [text, value] : names) {
    if (text.empty()) continue;
    list += (list.empty() ? "" : ", ") + std::string(text);
  }
  return list;
}

Status WrongType(const std::string& where, const char* expected,
                 const JsonValue* got) {
  return MakeError(kChatBadField,
                   {.where = where,
                    .what = "",
                    .expected = expected,
                    .got = got == nullptr ? "nothing" : got->KindName()});
}

std::string Item(const std::string& list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

// One message while it is read: its JSON and its place.
struct Source {
  const JsonValue& json;
  std::string where;

  std::string Place(std::string_view field) const {
    return where + "." + std::string(field);
  }
};

// A string, with null and absence as "".
StatusOr<std::string> OptionalText(const Source& from, std::string_view field) {
  const JsonValue* value = from.json.Find(field);
  if (value == nullptr || value->is_null()) return std::string();
  if (value->is_string()) return value->text;
  return WrongType(from.Place(field), "a string", value);
}

StatusOr<bool> OptionalBool(const Source& from, std::string_view field,
                            bool fallback) {
  const JsonValue* value = from.json.Find(field);
  if (value == nullptr || value->is_null()) return fallback;
  if (value->kind == JsonValue::Kind::kBool) return value->boolean;
  return WrongType(from.Place(field), "true or false", value);
}

// The text of one part of a content list.
StatusOr<std::string> PartText(const Source& from, bool is_tool_result) {
  const JsonValue* type = from.json.Find("type");
  if (type != nullptr && type->is_string() && type->text == "text") {
    const JsonValue* text = from.json.Find("text");
    if (text == nullptr) return std::string();
    if (text->is_string()) return text->text;
    return WrongType(from.Place("text"), "a string", text);
  }
  const std::string name =
      type == nullptr || !type->is_string() ? "None" : type->text;
  // The reference tells the model of what a tool returned and it cannot see;
  // what a user sends and it cannot see is refused.
  if (is_tool_result) return "[Unsupported " + name + "]";
  return MakeError(kChatBadMessage, {.where = from.Place("type"),
                                     .what = "the model reads text only",
                                     .expected = "text",
                                     .got = name});
}

StatusOr<std::vector<std::string>> Parts(const Source& from,
                                         bool is_tool_result) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < from.json.items.size(); ++i) {
    const Source part{from.json.items[i], Item(from.where, i)};
    if (!part.json.is_object()) {
      return WrongType(part.where, "an object with a type", &part.json);
    }
    BELAY_ASSIGN_OR_RETURN(std::string text, PartText(part, is_tool_result));
    parts.push_back(std::move(text));
  }
  return parts;
}

std::string JoinBlocks(const std::vector<std::string>& parts) {
  std::string joined;
  const char* separator = "";
  for (const std::string& part : parts) {
    joined += separator + part;
    separator = "\n\n";
  }
  return joined;
}

// What null means differs by role: nothing for system and assistant; for tool
// and latest_reminder the reference prints Python's None.
Status ReadContent(const Source& from, ChatMessage* message) {
  const JsonValue* content = from.json.Find("content");
  const std::string where = from.Place("content");
  const bool is_tool = message->role == Role::kTool;
  const bool is_user = message->role == Role::kUser;
  std::vector<std::string> parts;
  if (content == nullptr) {
    const bool is_reminder = message->role == Role::kLatestReminder;
    parts.push_back(is_reminder ? "None" : "");
  } else if (content->is_string()) {
    parts.push_back(content->text);
  } else if (content->is_array()) {
    BELAY_ASSIGN_OR_RETURN(parts, Parts({*content, where}, is_tool));
  } else if (content->is_null() && !is_user) {
    const bool prints = is_tool || message->role == Role::kLatestReminder;
    parts.push_back(prints ? "None" : "");
  } else {
    return WrongType(where, "a string or a list of text parts", content);
  }
  if (is_user) {
    for (std::string& part : parts) {
      message->blocks.push_back(
          {ContentBlock::Kind::kText, std::move(part), ""});
    }
  } else if (is_tool) {
    BELAY_ASSIGN_OR_RETURN(std::string id, OptionalText(from, "tool_call_id"));
    message->blocks.push_back(
        {ContentBlock::Kind::kToolResult, JoinBlocks(parts), std::move(id)});
  } else {
    message->content = JoinBlocks(parts);
  }
  return absl::OkStatus();
}

// The "function" object of a tool or a call.
StatusOr<const JsonValue*> FunctionOf(const Source& from) {
  const JsonValue* function = from.json.Find("function");
  if (function != nullptr && function->is_object()) return function;
  return MakeError(kChatBadTool,
                   {.where = from.where,
                    .what = "",
                    .expected = "{\"type\": \"function\", \"function\": {...}}",
                    .got = from.json.is_object() ? "no function object"
                                                 : from.json.KindName()});
}

StatusOr<ToolCall> ReadCall(const Source& from) {
  BELAY_ASSIGN_OR_RETURN(const JsonValue* function, FunctionOf(from));
  const Source inner{*function, from.Place("function")};
  ToolCall call;
  BELAY_ASSIGN_OR_RETURN(call.id, OptionalText(from, "id"));
  if (call.id.empty()) {
    BELAY_ASSIGN_OR_RETURN(call.id, OptionalText(inner, "id"));
  }
  const JsonValue* name = function->Find("name");
  if (name == nullptr || !name->is_string()) {
    return WrongType(inner.Place("name"), "a string", name);
  }
  call.name = name->text;
  const JsonValue* arguments = function->Find("arguments");
  if (arguments == nullptr) {
    return WrongType(inner.Place("arguments"), "a string of JSON", nullptr);
  }
  // An object is what the string would hold; null is a call without any.
  if (arguments->is_string()) {
    call.arguments = arguments->text;
  } else {
    call.arguments = arguments->is_null() ? "{}" : DumpJson(*arguments);
  }
  return call;
}

Status ReadCalls(const Source& from, std::vector<ToolCall>* calls) {
  const JsonValue* list = from.json.Find("tool_calls");
  if (list == nullptr || !list->Truthy()) return absl::OkStatus();
  const std::string where = from.Place("tool_calls");
  if (!list->is_array()) return WrongType(where, "a list", list);
  for (size_t i = 0; i < list->items.size(); ++i) {
    BELAY_ASSIGN_OR_RETURN(ToolCall call,
                           ReadCall({list->items[i], Item(where, i)}));
    calls->push_back(std::move(call));
  }
  return absl::OkStatus();
}

Status ReadTools(const JsonValue& list, const std::string& where,
                 std::vector<JsonValue>* tools) {
  if (!list.Truthy()) return absl::OkStatus();
  if (!list.is_array()) return WrongType(where, "a list", &list);
  for (size_t i = 0; i < list.items.size(); ++i) {
    BELAY_ASSIGN_OR_RETURN(const JsonValue* function,
                           FunctionOf({list.items[i], Item(where, i)}));
    tools->push_back(*function);
  }
  return absl::OkStatus();
}

Status ReadTask(const Source& from, std::optional<Task>* task) {
  const JsonValue* value = from.json.Find("task");
  if (value == nullptr || value->is_null()) return absl::OkStatus();
  *task = value->is_string() ? Lookup(kTasks, value->text) : std::nullopt;
  if (task->has_value()) return absl::OkStatus();
  return MakeError(kChatUnknownTask, {.where = from.Place("task"),
                                      .what = "",
                                      .expected = List(kTasks),
                                      .got = DumpJson(*value)});
}

StatusOr<Role> ReadRole(const Source& from) {
  const JsonValue* role = from.json.Find("role");
  if (role == nullptr || !role->is_string()) {
    return WrongType(from.Place("role"), "a string", role);
  }
  if (const auto known = Lookup(kRoles, role->text)) return *known;
  return MakeError(kChatUnknownRole, {.where = from.Place("role"),
                                      .what = "",
                                      .expected = List(kRoles),
                                      .got = role->text});
}

StatusOr<ChatMessage> ReadMessage(const Source& from, bool is_last) {
  if (!from.json.is_object()) {
    return WrongType(from.where, "an object", &from.json);
  }
  ChatMessage message;
  BELAY_ASSIGN_OR_RETURN(message.role, ReadRole(from));
  BELAY_RETURN_IF_ERROR(ReadContent(from, &message));
  BELAY_RETURN_IF_ERROR(ReadTask(from, &message.task));
  BELAY_ASSIGN_OR_RETURN(message.reasoning_content,
                         OptionalText(from, "reasoning_content"));
  BELAY_ASSIGN_OR_RETURN(message.without_eos,
                         OptionalBool(from, "wo_eos", false));
  BELAY_ASSIGN_OR_RETURN(const bool is_prefix,
                         OptionalBool(from, "prefix", false));
  if (is_prefix && !(is_last && message.role == Role::kAssistant)) {
    return MakeError(
        kChatBadMessage,
        {.where = from.Place("prefix"),
         .what = "only the last assistant message can be continued",
         .expected = "",
         .got = ""});
  }
  message.without_eos |= is_prefix;
  BELAY_RETURN_IF_ERROR(ReadCalls(from, &message.tool_calls));
  // A user turn is rebuilt from its blocks; tools on it are lost in the
  // reference, too.
  const JsonValue* tools = from.json.Find("tools");
  const bool is_user_turn =
      message.role == Role::kUser || message.role == Role::kTool;
  if (tools != nullptr && !is_user_turn) {
    BELAY_RETURN_IF_ERROR(
        ReadTools(*tools, from.Place("tools"), &message.tools));
  }
  const JsonValue* format = from.json.Find("response_format");
  if (format != nullptr && format->Truthy()) message.response_format = *format;
  return message;
}

StatusOr<std::vector<ChatMessage>> ReadMessages(const JsonValue& list,
                                                const std::string& where) {
  if (!list.is_array()) return WrongType(where, "a list of messages", &list);
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < list.items.size(); ++i) {
    BELAY_ASSIGN_OR_RETURN(ChatMessage message,
                           ReadMessage({list.items[i], Item(where, i)},
                                       i + 1 == list.items.size()));
    messages.push_back(std::move(message));
  }
  return messages;
}

Status ReadEffort(const Source& from, ReasoningEffort* effort) {
  BELAY_ASSIGN_OR_RETURN(const std::string name,
                         OptionalText(from, "reasoning_effort"));
  if (name.empty()) return absl::OkStatus();
  BELAY_ASSIGN_OR_RETURN(*effort, ParseReasoningEffort(name));
  return absl::OkStatus();
}

Status ReadKwargs(const Source& from, ChatRequest* request) {
  if (!from.json.is_object()) {
    return WrongType(from.where, "an object", &from.json);
  }
  for (const auto& [key, value] : from.json.members) {
    if (key == "context" || key == "drop_thinking" ||
        key == "add_default_bos_token" || key == "reasoning_effort") {
      continue;
    }
    return MakeError(kChatBadOption,
                     {.where = from.where,
                      .what = "",
                      .expected = "context, drop_thinking, "
                                  "add_default_bos_token, reasoning_effort",
                      .got = key});
  }
  const JsonValue* context = from.json.Find("context");
  if (context != nullptr && context->Truthy()) {
    BELAY_ASSIGN_OR_RETURN(request->context,
                           ReadMessages(*context, from.Place("context")));
  }
  BELAY_ASSIGN_OR_RETURN(request->drop_earlier_reasoning,
                         OptionalBool(from, "drop_thinking", true));
  BELAY_ASSIGN_OR_RETURN(request->add_bos,
                         OptionalBool(from, "add_default_bos_token", true));
  return ReadEffort(from, &request->effort);
}

// The message that carries what belongs to the whole conversation.
ChatMessage& InstructionMessage(std::vector<ChatMessage>* messages) {
  const bool has_one =
      !messages->empty() && (messages->front().role == Role::kSystem ||
                             messages->front().role == Role::kDeveloper);
  if (!has_one) {
    ChatMessage system;
    system.role = Role::kSystem;
    messages->insert(messages->begin(), system);
  }
  return messages->front();
}

Status BadName(const char* where, std::string expected, std::string_view got) {
  return MakeError(kChatBadOption, {.where = where,
                                    .what = "",
                                    .expected = std::move(expected),
                                    .got = std::string(got)});
}

}  // namespace

StatusOr<ThinkingMode> ParseThinkingMode(std::string_view name) {
  if (const auto mode = Lookup(kModes, name)) return *mode;
  return BadName("thinking_mode", List(kModes), name);
}

StatusOr<ReasoningEffort> ParseReasoningEffort(std::string_view name) {
  if (const auto effort = Lookup(kEfforts, name)) return *effort;
  return BadName("reasoning_effort", List(kEfforts), name);
}

StatusOr<std::vector<ChatMessage>> MessagesFromJson(const JsonValue& list) {
  return ReadMessages(list, "messages");
}

Status AddTools(const JsonValue& tools, std::vector<ChatMessage>* messages) {
  std::vector<JsonValue> functions;
  BELAY_RETURN_IF_ERROR(ReadTools(tools, "tools", &functions));
  if (functions.empty()) return absl::OkStatus();
  std::vector<JsonValue>& own = InstructionMessage(messages).tools;
  own.insert(own.end(), functions.begin(), functions.end());
  return absl::OkStatus();
}

StatusOr<ChatRequest> ChatRequestFromJson(const JsonValue& json) {
  ChatRequest request;
  if (json.is_array()) {
    BELAY_ASSIGN_OR_RETURN(request.messages, MessagesFromJson(json));
    return request;
  }
  if (!json.is_object()) {
    return WrongType("request", "an object or a list of messages", &json);
  }
  const JsonValue* messages = json.Find("messages");
  if (messages == nullptr) {
    return WrongType("messages", "a list of messages", nullptr);
  }
  BELAY_ASSIGN_OR_RETURN(request.messages, MessagesFromJson(*messages));
  const Source from{json, "request"};
  BELAY_ASSIGN_OR_RETURN(const std::string mode,
                         OptionalText(from, "thinking_mode"));
  if (!mode.empty()) {
    BELAY_ASSIGN_OR_RETURN(request.thinking_mode, ParseThinkingMode(mode));
  }
  BELAY_RETURN_IF_ERROR(ReadEffort(from, &request.effort));
  if (const JsonValue* kwargs = json.Find("kwargs")) {
    BELAY_RETURN_IF_ERROR(ReadKwargs({*kwargs, "kwargs"}, &request));
  }
  if (const JsonValue* tools = json.Find("tools")) {
    BELAY_RETURN_IF_ERROR(AddTools(*tools, &request.messages));
  }
  const JsonValue* format = json.Find("response_format");
  if (format != nullptr && format->Truthy()) {
    InstructionMessage(&request.messages).response_format = *format;
  }
  return request;
}

}  // namespace belay::text
