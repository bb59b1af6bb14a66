// SPDX-License-Identifier: Apache-2.0
// belay parse: a completion taken apart into a message.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/belay/commands.h"
#include "apps/belay/shell/lines.h"
#include "base/error_ids.h"
#include "text/completion/parser.h"

namespace belay::apps {
namespace {

using nlohmann::ordered_json;
using text::CompletionEnd;
using text::JsonValue;
using text::ThinkingMode;

struct ParseArgs {
  std::string text;
  std::string file;
  std::string thinking = "off";
  bool ended = false;
  bool jsonl = false;
};

ordered_json ToJson(const text::Completion& completion) {
  ordered_json result;
  result["message"] =
      ordered_json::parse(text::DumpJson(CompletionToJson(completion)));
  for (const auto& diagnostic : completion.diagnostics) {
    result["diagnostics"].push_back(
        {{"id", diagnostic.id.id}, {"detail", diagnostic.detail}});
  }
  return result;
}

StatusOr<ordered_json> ParseLine(const std::string& line, ThinkingMode mode,
                                 CompletionEnd end) {
  BELAY_ASSIGN_OR_RETURN(const JsonValue json, text::ParseJson(line));
  const JsonValue* content = json.Find("text");
  if (content == nullptr || !content->is_string()) {
    return MakeError(
        kChatBadField,
        {.where = "text",
         .what = "",
         .expected = "a string",
         .got = content == nullptr ? "nothing" : content->KindName()});
  }
  if (const JsonValue* name = json.Find("thinking_mode")) {
    const bool is_text = name->is_string();
    BELAY_ASSIGN_OR_RETURN(
        mode, text::ParseThinkingMode(is_text ? name->text : "null"));
  }
  return ToJson(ParseCompletion(content->text, mode, end));
}

StatusOr<ExitCode> RunParse(const ParseArgs& args, const Context& context) {
  const int n_inputs = static_cast<int>(!args.text.empty()) +
                       static_cast<int>(!args.file.empty()) +
                       static_cast<int>(args.jsonl);
  if (n_inputs != 1) {
    return MakeError(kArgUsage,
                     {.where = "belay parse",
                      .what = context.T("one of TEXT, --file and --jsonl",
                                        "请给出 TEXT、--file 或 --jsonl 之一"),
                      .expected = "",
                      .got = ""});
  }
  const ThinkingMode mode =
      args.thinking == "on" ? ThinkingMode::kThinking : ThinkingMode::kChat;
  const CompletionEnd end =
      args.ended ? CompletionEnd::kTurnEnded : CompletionEnd::kCut;
  if (args.jsonl) {
    return RunLines(context, [&](const std::string& line) {
      return ParseLine(line, mode, end);
    });
  }
  std::string content = args.text;
  if (!args.file.empty() || args.text == "-") {
    BELAY_ASSIGN_OR_RETURN(
        content, ReadFileOrInput(context, args.file.empty() ? "-" : args.file));
  }
  PrintJson(context, ToJson(ParseCompletion(content, mode, end)));
  return ExitCode::kOk;
}

}  // namespace

void AddParse(CLI::App& app, Context& context) {
  auto args = std::make_shared<ParseArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "parse",
       .about = context.T("A completion as a message: reasoning, content, "
                          "tool calls",
                          "把模型输出解析为消息：推理、内容、工具调用"),
       .example = "belay parse --thinking on --file completion.txt\n"
                  "belay parse --jsonl < completions.jsonl"},
      [args, &context] { return RunParse(*args, context); });
  command->add_option("TEXT", args->text,
                      context.T("the completion; - is standard input",
                                "模型输出；- 表示标准输入"));
  command->add_option(
      "--file", args->file,
      context.T("a file with the completion", "保存模型输出的文件"));
  command
      ->add_option("--thinking", args->thinking,
                   context.T("on when the prompt ended with <think>",
                             "提示以 <think> 结尾时为 on"))
      ->check(CLI::IsMember({"off", "on"}))
      ->capture_default_str();
  command->add_flag("--ended", args->ended,
                    context.T("the model ended its turn, although no EOS is "
                              "in the text",
                              "文本中没有 EOS，但模型已结束该轮"));
  command->add_flag(
      "--jsonl", args->jsonl,
      context.T("one {\"text\", \"thinking_mode\"} a line from standard "
                "input, one {\"message\"} a line out",
                "从标准输入逐行读取 {\"text\", \"thinking_mode\"}，逐行输出 "
                "{\"message\"}"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
