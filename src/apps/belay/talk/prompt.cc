// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/talk/prompt.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "apps/belay/model/gguf_tokenizer.h"
#include "base/error_ids.h"

namespace belay::apps {

void AddTalkOptions(CLI::App& command, TalkArgs& args, const Context& context) {
  command
      .add_option("--thinking", args.thinking,
                  context.T("off (default) or on: reason before the answer",
                            "off（默认）或 on：回答前先思考"))
      ->check(CLI::IsMember({"off", "on"}));
  command.add_option("--effort", args.effort,
                     context.T("reasoning effort: low, high or max",
                               "思考强度：low、high 或 max"));
  command.add_option(
      "--encoding", args.encoding,
      context.T("chat encoding: initial or 0731 (default: the checkpoint's)",
                "对话编码：initial 或 0731（默认：由检查点决定）"));
}

StatusOr<Speaker> OpenSpeaker(const std::string& folder, const TalkArgs& args) {
  Speaker speaker;
  BELAY_ASSIGN_OR_RETURN(speaker.tokenizer, OpenModelTokenizer(folder));
  if (args.encoding.empty()) {
    speaker.revision = text::RevisionOfCheckpoint(folder).value_or(
        text::EncodingRevision::kInitial);
    return speaker;
  }
  BELAY_ASSIGN_OR_RETURN(speaker.revision,
                         text::ParseEncodingRevision(args.encoding));
  return speaker;
}

StatusOr<TalkPrompt> MakePrompt(text::ChatRequest request, const TalkArgs& args,
                                const Speaker& speaker) {
  if (!args.thinking.empty()) {
    request.thinking_mode = args.thinking == "on"
                                ? text::ThinkingMode::kThinking
                                : text::ThinkingMode::kChat;
  }
  if (!args.effort.empty()) {
    BELAY_ASSIGN_OR_RETURN(request.effort,
                           text::ParseReasoningEffort(args.effort));
  }
  TalkPrompt prompt;
  BELAY_ASSIGN_OR_RETURN(prompt.text,
                         text::RenderChat(request, speaker.revision));
  BELAY_ASSIGN_OR_RETURN(prompt.ids, speaker.tokenizer->Encode(prompt.text));
  prompt.mode = request.thinking_mode;
  return prompt;
}

}  // namespace belay::apps
