// SPDX-License-Identifier: Apache-2.0
#include "server/api/chat_request.h"

#include <utility>

#include "base/error_ids.h"

namespace belay::server {
namespace {

using text::JsonValue;

Status Unsupported(std::string where, std::string what) {
  return MakeError(kApiUnsupported, {.where = std::move(where),
                                     .what = std::move(what),
                                     .expected = "",
                                     .got = ""});
}

// Things that a text model on one machine cannot give, and that nobody should
// believe to have got.
void RefuseForeign(Fields& fields) {
  for (const char* name : {"audio", "web_search_options"}) {
    if (fields.Take(name) != nullptr) fields.Fail(Unsupported(name, ""));
  }
  for (const char* name : {"functions", "function_call"}) {
    if (fields.Take(name) != nullptr) {
      fields.Fail(Unsupported(name, "use tools and tool_choice"));
    }
  }
  const JsonValue* modalities = fields.Take("modalities");
  if (modalities == nullptr) return;
  for (const JsonValue& item : modalities->items) {
    if (item.text != "text") fields.Fail(Unsupported("modalities", item.text));
  }
}

// How far a client asks the model to think, in all the ways that clients have:
// thinking: {"type": "enabled"} (DeepSeek), chat_template_kwargs: {"thinking":
// true} or {"enable_thinking": true} (vLLM, SGLang), reasoning_effort (OpenAI).
struct ThinkingWish {
  std::optional<bool> on;
  std::string effort;  // "" = none named
};

ThinkingWish ReadThinking(Fields& fields) {
  ThinkingWish wish;
  if (const JsonValue* json = fields.Take("chat_template_kwargs")) {
    Fields kwargs(*json, "chat_template_kwargs");
    for (const char* name : {"enable_thinking", "thinking"}) {
      if (const auto on = kwargs.Bool(name)) wish.on = on;
    }
    wish.effort = kwargs.String("reasoning_effort").value_or("");
    if (!kwargs.ok()) fields.Fail(kwargs.status());
  }
  if (const auto on = fields.Bool("enable_thinking")) wish.on = on;
  if (const JsonValue* json = fields.Take("thinking")) {
    Fields thinking(*json, "thinking");
    const std::string type = thinking.String("type").value_or("enabled");
    if (type != "enabled" && type != "disabled") {
      thinking.Fail("type", "enabled, disabled", type);
    }
    if (!thinking.ok()) fields.Fail(thinking.status());
    wish.on = type == "enabled";
  }
  if (auto effort = fields.String("reasoning_effort")) {
    wish.effort = std::move(*effort);
  }
  return wish;
}

// OpenAI knows more levels than the model: medium is what the model does
// unasked
// ("high"), xhigh its highest. Before 0731 there is no low, either.
std::optional<text::ReasoningEffort> EffortOf(const std::string& name,
                                              text::EncodingRevision revision) {
  using text::ReasoningEffort;
  const bool has_low = revision == text::EncodingRevision::k0731;
  if (name.empty() || name == "none") return ReasoningEffort::kDefault;
  if (name == "minimal" || name == "low") {
    return has_low ? ReasoningEffort::kLow : ReasoningEffort::kHigh;
  }
  if (name == "medium" || name == "high") return ReasoningEffort::kHigh;
  if (name == "xhigh" || name == "max") return ReasoningEffort::kMax;
  return std::nullopt;
}

void ApplyThinking(Fields& fields, const ChatDefaults& defaults,
                   text::ChatRequest& chat) {
  const ThinkingWish wish = ReadThinking(fields);
  const auto effort = EffortOf(wish.effort, defaults.revision);
  if (!effort) {
    return fields.Fail("reasoning_effort",
                       "none, minimal, low, medium, high, xhigh, max",
                       wish.effort);
  }
  // A level is a wish to think, "none" one not to.
  bool on = defaults.thinking;
  if (!wish.effort.empty()) on = wish.effort != "none";
  if (wish.on) on = *wish.on;
  chat.thinking_mode =
      on ? text::ThinkingMode::kThinking : text::ThinkingMode::kChat;
  if (on) chat.effort = *effort;
}

void ReadLogprobs(Fields& fields, Generation& generation) {
  const bool wanted = fields.Bool("logprobs").value_or(false);
  const auto top = fields.Integer("top_logprobs", 0, engine::kMaxTopLogprobs);
  if (wanted) {
    generation.n_top_logprobs = static_cast<int32_t>(top.value_or(0));
  } else if (top.value_or(0) > 0) {
    fields.Fail("top_logprobs", "\"logprobs\": true", "no logprobs");
  }
}

// The message that instructions of the whole conversation belong to.
text::ChatMessage& FirstInstruction(std::vector<text::ChatMessage>& messages) {
  const bool has_one =
      !messages.empty() && (messages[0].role == text::Role::kSystem ||
                            messages[0].role == text::Role::kDeveloper);
  if (!has_one) {
    text::ChatMessage system;
    system.role = text::Role::kSystem;
    messages.insert(messages.begin(), std::move(system));
  }
  return messages[0];
}

void ReadFormat(Fields& fields, ChatCall& call) {
  const JsonValue* json = fields.Take("response_format");
  if (json == nullptr) return;
  Fields format(*json, "response_format");
  const std::string type = format.String("type").value_or("");
  Format& out = call.format;
  out.where = "response_format";
  if (type == "json_object") {
    out.kind = Format::Kind::kJsonObject;
  } else if (type == "json_schema") {
    out.kind = Format::Kind::kJsonSchema;
    const JsonValue* outer = format.Take("json_schema");
    const JsonValue* schema =
        outer == nullptr ? nullptr : outer->Find("schema");
    if (schema == nullptr ||
        !(schema->is_object() || schema->kind == JsonValue::Kind::kBool)) {
      format.Fail("json_schema.schema", "a JSON schema",
                  schema == nullptr ? "nothing" : schema->KindName());
    } else {
      out.schema = *schema;
      // The model was trained to see it in the prompt, too.
      FirstInstruction(call.chat.messages).response_format = *schema;
    }
  } else if (format.ok() && type != "text") {
    format.Fail("type", "text, json_object, json_schema",
                type.empty() ? "nothing" : type);
  }
  if (!format.ok()) fields.Fail(format.status());
}

// The "function" objects of a list of tools that AddTools has accepted.
std::vector<JsonValue> FunctionsOf(const JsonValue& tools) {
  std::vector<JsonValue> functions;
  for (const JsonValue& tool : tools.items) {
    if (const JsonValue* function = tool.Find("function")) {
      functions.push_back(*function);
    }
  }
  return functions;
}

bool HasFunction(const std::vector<JsonValue>& functions,
                 const std::string& name) {
  for (const JsonValue& function : functions) {
    const JsonValue* value = function.Find("name");
    if (value != nullptr && value->is_string() && value->text == name) {
      return true;
    }
  }
  return false;
}

// "none", "auto", "required", or the name of a function in `function`.
std::string ReadToolChoice(Fields& fields, std::string* function) {
  const JsonValue* json = fields.Take("tool_choice");
  if (json == nullptr) return "auto";
  if (json->is_string()) {
    const std::string& name = json->text;
    if (name == "none" || name == "auto" || name == "required") return name;
  }
  if (json->is_object()) {
    Fields choice(*json, "tool_choice");
    const std::string type = choice.String("type").value_or("");
    const JsonValue* inner = choice.Take("function");
    const JsonValue* name = inner == nullptr ? nullptr : inner->Find("name");
    if (type == "function" && name != nullptr && name->is_string()) {
      *function = name->text;
      return "required";
    }
    if (type == "allowed_tools" || type == "custom") {
      fields.Fail(Unsupported("tool_choice.type", type));
      return "auto";
    }
  }
  fields.Fail("tool_choice",
              "none, auto, required or {\"type\": \"function\", \"function\": "
              "{\"name\": ...}}",
              text::DumpJson(*json));
  return "auto";
}

void ReadTools(Fields& fields, ChatCall& call) {
  const JsonValue* tools = fields.Take("tools");
  std::string function;
  const std::string choice = ReadToolChoice(fields, &function);
  const bool parallel = fields.Bool("parallel_tool_calls").value_or(true);
  call.no_calls = choice == "none";
  if (tools == nullptr || (tools->is_array() && tools->items.empty())) {
    if (choice == "required") {
      fields.Fail("tool_choice", "tools to choose from", "no tools");
    }
    return;
  }
  // They are left out of the prompt; only their form is looked at.
  if (choice == "none") {
    std::vector<text::ChatMessage> scratch;
    const Status error = text::AddTools(*tools, &scratch);
    if (!error.ok()) fields.Fail(error);
    return;
  }
  const Status error = text::AddTools(*tools, &call.chat.messages);
  if (!error.ok()) return fields.Fail(error);
  call.has_tools = true;
  if (choice != "required") return;
  call.format.kind = Format::Kind::kToolCall;
  call.format.where = "tool_choice";
  call.format.tools = FunctionsOf(*tools);
  call.format.function = function;
  call.format.parallel = parallel;
  if (!function.empty() && !HasFunction(call.format.tools, function)) {
    fields.Fail("tool_choice", "a function of tools", function);
  }
}

Status ReadMessages(Fields& fields, text::ChatRequest& chat) {
  const JsonValue* messages = fields.Take("messages");
  if (messages == nullptr || !messages->is_array() || messages->items.empty()) {
    fields.Fail("messages", "a list of messages",
                messages == nullptr ? "nothing" : "an empty list");
    return fields.status();
  }
  BELAY_ASSIGN_OR_RETURN(chat.messages, text::MessagesFromJson(*messages));
  return absl::OkStatus();
}

}  // namespace

StatusOr<ChatCall> ReadChatCall(const JsonValue& json,
                                const ChatDefaults& defaults) {
  Fields fields(json);
  BELAY_RETURN_IF_ERROR(fields.status());
  ChatCall call;
  BELAY_RETURN_IF_ERROR(ReadMessages(fields, call.chat));
  call.generation = ReadGeneration(fields);
  ReadLogprobs(fields, call.generation);
  ApplyThinking(fields, defaults, call.chat);
  ReadFormat(fields, call);
  ReadTools(fields, call);
  RefuseForeign(fields);
  BELAY_RETURN_IF_ERROR(fields.status());
  if (text::PromptIsFinished(call.chat)) {
    return MakeError(
        kApiFinishedTurn,
        {.where = "messages", .what = "", .expected = "", .got = ""});
  }
  if (call.chat.thinking_mode == text::ThinkingMode::kThinking) {
    IgnoreInThinking(call.generation, json);
  }
  NoteUnknown(fields, call.generation.notes);
  return call;
}

StatusOr<text::ChatRequest> ReadChatPrompt(const JsonValue& json,
                                           const ChatDefaults& defaults) {
  Fields fields(json);
  BELAY_RETURN_IF_ERROR(fields.status());
  ChatCall call;
  BELAY_RETURN_IF_ERROR(ReadMessages(fields, call.chat));
  ApplyThinking(fields, defaults, call.chat);
  ReadTools(fields, call);
  BELAY_RETURN_IF_ERROR(fields.status());
  return std::move(call.chat);
}

}  // namespace belay::server
