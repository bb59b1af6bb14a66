// SPDX-License-Identifier: Apache-2.0
// Words -> token ids: what `run` and `chat` share on the way in.
#ifndef BELAY_APPS_BELAY_TALK_PROMPT_H_
#define BELAY_APPS_BELAY_TALK_PROMPT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "apps/belay/shell/context.h"
#include "base/error.h"
#include "text/chat/render.h"
#include "text/chat/request.h"
#include "text/tokenizer.h"

namespace CLI {
class App;
}  // namespace CLI

namespace belay::apps {

// How a conversation is put to the model.
struct TalkArgs {
  std::string thinking;  // "off", "on"; "": what the request says, else off
  std::string effort;    // "low", "high", "max"; "": none
  std::string encoding;  // "initial", "0731"; "": told from the checkpoint
};

// --thinking, --effort, --encoding.
void AddTalkOptions(CLI::App& command, TalkArgs& args, const Context& context);

// The tokenizer and the encoding revision of a checkpoint folder or GGUF file.
struct Speaker {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  text::EncodingRevision revision = text::EncodingRevision::kInitial;
};

// Errors: SYS-001 and TOK-* (tokenizer.json), GGUF-* (a GGUF file's tokenizer),
// CHAT-007 (no such revision).
StatusOr<Speaker> OpenSpeaker(const std::string& folder, const TalkArgs& args);

// A prompt ready for the engine.
struct TalkPrompt {
  std::vector<int32_t> ids;
  std::string text;  // what was encoded
  // How the answer begins: inside <think> or not.
  text::ThinkingMode mode = text::ThinkingMode::kChat;
};

// Renders and encodes a conversation; the options hold before what the request
// says. Errors: CHAT-*.
StatusOr<TalkPrompt> MakePrompt(text::ChatRequest request, const TalkArgs& args,
                                const Speaker& speaker);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_TALK_PROMPT_H_
