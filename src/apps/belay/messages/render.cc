// SPDX-License-Identifier: Apache-2.0
// belay render: the exact prompt of a conversation.
#include "text/chat/render.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/belay/commands.h"
#include "apps/belay/shell/lines.h"
#include "base/error_ids.h"

namespace belay::apps {
namespace {

using nlohmann::ordered_json;
using text::ChatRequest;
using text::EncodingRevision;
using text::JsonValue;

struct RenderArgs {
  std::string messages;
  std::string tools;
  std::string thinking;  // "", "off", "on"
  std::string effort;
  std::string encoding;  // "": by the checkpoint, else initial
  std::string checkpoint;
  bool jsonl = false;
};

StatusOr<EncodingRevision> RevisionOf(const RenderArgs& args) {
  if (!args.encoding.empty()) {
    return text::ParseEncodingRevision(args.encoding);
  }
  if (args.checkpoint.empty()) return EncodingRevision::kInitial;
  return text::RevisionOfCheckpoint(args.checkpoint)
      .value_or(EncodingRevision::kInitial);
}

// What the command line says holds where the request says nothing, and, for a
// single request, before what it says.
Status ApplyOptions(const RenderArgs& args, const JsonValue& json,
                    ChatRequest* request) {
  const bool names_mode = args.jsonl && json.Find("thinking_mode") != nullptr;
  if (!args.thinking.empty() && !names_mode) {
    request->thinking_mode = args.thinking == "on"
                                 ? text::ThinkingMode::kThinking
                                 : text::ThinkingMode::kChat;
  }
  const bool names_effort =
      args.jsonl && request->effort != text::ReasoningEffort::kDefault;
  if (args.effort.empty() || names_effort) return absl::OkStatus();
  BELAY_ASSIGN_OR_RETURN(request->effort,
                         text::ParseReasoningEffort(args.effort));
  return absl::OkStatus();
}

StatusOr<std::string> Render(const RenderArgs& args, const JsonValue& json,
                             const JsonValue* tools) {
  BELAY_ASSIGN_OR_RETURN(EncodingRevision revision, RevisionOf(args));
  const JsonValue* encoding = json.Find("encoding");
  if (args.jsonl && encoding != nullptr && encoding->is_string()) {
    BELAY_ASSIGN_OR_RETURN(revision,
                           text::ParseEncodingRevision(encoding->text));
  }
  BELAY_ASSIGN_OR_RETURN(ChatRequest request, text::ChatRequestFromJson(json));
  BELAY_RETURN_IF_ERROR(ApplyOptions(args, json, &request));
  if (tools != nullptr) {
    BELAY_RETURN_IF_ERROR(text::AddTools(*tools, &request.messages));
  }
  return text::RenderChat(request, revision);
}

StatusOr<JsonValue> ReadJson(const Context& context, const std::string& path) {
  BELAY_ASSIGN_OR_RETURN(const std::string content,
                         ReadFileOrInput(context, path));
  StatusOr<JsonValue> json = text::ParseJson(content);
  if (!json.ok()) return WithContext(json.status(), path);
  return json;
}

StatusOr<ExitCode> RunRender(const RenderArgs& args, const Context& context) {
  if (args.jsonl != args.messages.empty()) {
    return MakeError(kArgUsage,
                     {.where = "belay render",
                      .what = context.T("either --messages or --jsonl",
                                        "请给出 --messages 或 --jsonl"),
                      .expected = "",
                      .got = ""});
  }
  JsonValue tools;
  if (!args.tools.empty()) {
    BELAY_ASSIGN_OR_RETURN(tools, ReadJson(context, args.tools));
  }
  if (args.jsonl) {
    return RunLines(
        context, [&](const std::string& line) -> StatusOr<ordered_json> {
          BELAY_ASSIGN_OR_RETURN(const JsonValue json, text::ParseJson(line));
          BELAY_ASSIGN_OR_RETURN(const std::string prompt,
                                 Render(args, json, &tools));
          return ordered_json{{"prompt", prompt}};
        });
  }
  BELAY_ASSIGN_OR_RETURN(const JsonValue json,
                         ReadJson(context, args.messages));
  BELAY_ASSIGN_OR_RETURN(const std::string prompt, Render(args, json, &tools));
  if (context.json) {
    PrintJson(context, {{"prompt", prompt}});
  } else {
    // As it is, with no newline of our own: every byte counts.
    context.out << prompt;
  }
  return ExitCode::kOk;
}

}  // namespace

void AddRender(CLI::App& app, Context& context) {
  auto args = std::make_shared<RenderArgs>();
  CLI::App* command =
      AddCommand(app, context,
                 {.name = "render",
                  .about = context.T("The exact prompt of a conversation",
                                     "输出对话对应的精确提示文本"),
                  .example = "belay render --messages chat.json --thinking on\n"
                             "belay render --jsonl < requests.jsonl"},
                 [args, &context] { return RunRender(*args, context); });
  command->add_option("--messages", args->messages,
                      context.T("messages or a request in JSON; - is "
                                "standard input",
                                "JSON 格式的消息或请求；- 表示标准输入"));
  command->add_option(
      "--tools", args->tools,
      context.T("a list of tools in JSON", "JSON 格式的工具列表"));
  command
      ->add_option("--thinking", args->thinking,
                   context.T("off or on", "off 或 on"))
      ->check(CLI::IsMember({"off", "on"}));
  command
      ->add_option("--effort", args->effort,
                   context.T("low, high or max", "low、high 或 max"))
      ->check(CLI::IsMember({"low", "high", "max"}));
  command
      ->add_option("--encoding", args->encoding,
                   context.T("initial or 0731; default: by --checkpoint, "
                             "else initial",
                             "initial 或 0731；默认由 --checkpoint "
                             "判断，否则为 initial"))
      ->check(CLI::IsMember({"initial", "0731"}));
  command->add_option("--checkpoint", args->checkpoint,
                      context.T("a checkpoint's folder, to tell the encoding",
                                "检查点文件夹，用于判断编码版本"));
  command->add_flag(
      "--jsonl", args->jsonl,
      context.T("one request a line from standard input, one {\"prompt\"} a "
                "line out",
                "从标准输入逐行读取请求，逐行输出 {\"prompt\"}"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
