// SPDX-License-Identifier: Apache-2.0
#include <random>
#include <string>
#include <utility>

#include "apps/belay/model/token_args.h"
#include "apps/belay/run/run.h"
#include "apps/belay/shell/lines.h"
#include "base/error_ids.h"
#include "text/chat/json.h"

namespace belay::apps {
namespace {

constexpr char kPromptOptions[] =
    "--tokens | --tokens-file | --prompt | --prompt-file | --messages";

StatusOr<text::JsonValue> ReadJson(const Context& context,
                                   const std::string& path) {
  BELAY_ASSIGN_OR_RETURN(const std::string content,
                         ReadFileOrInput(context, path));
  auto json = text::ParseJson(content);
  if (!json.ok()) return WithContext(json.status(), path);
  return json;
}

text::ChatMessage UserMessage(std::string content) {
  text::ChatMessage message;
  message.role = text::Role::kUser;
  message.blocks.push_back(
      {text::ContentBlock::Kind::kText, std::move(content), ""});
  return message;
}

StatusOr<text::ChatRequest> ConversationFrom(const RunArgs& args,
                                             std::string prompt,
                                             const Context& context) {
  text::ChatRequest request;
  if (args.messages.empty()) {
    request.messages.push_back(UserMessage(std::move(prompt)));
  } else {
    BELAY_ASSIGN_OR_RETURN(const text::JsonValue json,
                           ReadJson(context, args.messages));
    BELAY_ASSIGN_OR_RETURN(request, text::ChatRequestFromJson(json));
    if (request.messages.empty()) return EmptyPrompt(args.messages);
  }
  if (args.tools.empty()) return request;
  BELAY_ASSIGN_OR_RETURN(const text::JsonValue tools,
                         ReadJson(context, args.tools));
  BELAY_RETURN_IF_ERROR(text::AddTools(tools, &request.messages));
  return request;
}

Status CheckOnePrompt(const RunArgs& args) {
  int n = 0;
  for (const std::string* option :
       {&args.tokens, &args.tokens_file, &args.prompt, &args.prompt_file,
        &args.messages}) {
    if (!option->empty()) ++n;
  }
  if (n == 1) return absl::OkStatus();
  return MakeError(n == 0 ? kArgEmptyPrompt : kArgUsage,
                   {.where = "belay run",
                    .what = "",
                    .expected = kPromptOptions,
                    .got = std::to_string(n)});
}

}  // namespace

StatusOr<RunPrompt> PromptFrom(const RunArgs& args, const Context& context) {
  RunPrompt out;
  if (args.explain) return out;
  BELAY_RETURN_IF_ERROR(CheckOnePrompt(args));
  if (!args.tokens.empty() || !args.tokens_file.empty()) {
    BELAY_ASSIGN_OR_RETURN(out.prompt.ids,
                           TokensFrom(args.tokens, args.tokens_file));
    return out;
  }
  std::string prompt = args.prompt;
  if (!args.prompt_file.empty()) {
    BELAY_ASSIGN_OR_RETURN(prompt, ReadFileOrInput(context, args.prompt_file));
    if (prompt.empty()) return EmptyPrompt(args.prompt_file);
  }
  BELAY_ASSIGN_OR_RETURN(out.speaker,
                         OpenSpeaker(args.model.folder, args.talk));
  if (args.raw && args.messages.empty()) {
    out.prompt.text = prompt;
    BELAY_ASSIGN_OR_RETURN(out.prompt.ids,
                           out.speaker->tokenizer->Encode(prompt));
    return out;
  }
  BELAY_ASSIGN_OR_RETURN(text::ChatRequest request,
                         ConversationFrom(args, std::move(prompt), context));
  BELAY_ASSIGN_OR_RETURN(
      out.prompt, MakePrompt(std::move(request), args.talk, *out.speaker));
  return out;
}

StatusOr<engine::Request> RequestFrom(const RunArgs& args,
                                      const RunPrompt& prompt) {
  if (args.max_tokens < 1) {
    return MakeError(kArgUsage, {.where = "--max-tokens",
                                 .what = "",
                                 .expected = ">= 1",
                                 .got = std::to_string(args.max_tokens)});
  }
  BELAY_RETURN_IF_ERROR(engine::CheckSampling(args.sampling));
  engine::Request request;
  request.prompt = prompt.prompt.ids;
  request.max_tokens = args.max_tokens;
  request.sampling = args.sampling;
  if (!args.seed_given && args.sampling.temperature > 0) {
    request.sampling.seed = std::random_device{}();
  }
  return request;
}

}  // namespace belay::apps
