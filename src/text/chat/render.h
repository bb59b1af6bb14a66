// SPDX-License-Identifier: Apache-2.0
// The prompt of a conversation, byte for byte as DeepSeek's encoder makes it.
//
// Reference: encoding_dsv4.py of the DeepSeek-V4 release (sha256 bdbd57c1...),
// whose results for 37 conversations are in tests/data/chat. docs/chat.md
// explains the format by examples and lists where Belay accepts more.
#ifndef BELAY_TEXT_CHAT_RENDER_H_
#define BELAY_TEXT_CHAT_RENDER_H_

#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/chat/request.h"

namespace belay::text {

// The two encodings differ in the text that a reasoning effort puts in front
// of the prompt, and in nothing else:
//
//   effort    kInitial               k0731 (DeepSeek-V4-Flash-0731 and later)
//   default   nothing                nothing
//   low       refused                nothing
//   high      nothing                "Absolute maximum with no shortcuts..."
//   max       "Absolute maximum..."  "Beyond maximum - exhaustive..."
//
// kInitial is first-hand (the pinned encoder and its results). k0731 is taken
// from public copies that agree with each other word for word; its file was
// not at hand to be hashed.
enum class EncodingRevision { kInitial, k0731 };

// "initial" or "0731". Error: CHAT-007.
StatusOr<EncodingRevision> ParseEncodingRevision(std::string_view name);

// The revision that a checkpoint was trained on, told from the text of the
// encoder that it ships (encoding/encoding_dsv4.py). Nothing when the text
// names neither effort prompt.
std::optional<EncodingRevision> RevisionOfEncoder(std::string_view source);

// The same for a checkpoint's folder: by encoding/encoding_dsv4.py, else by
// the dspark_ keys in config.json, which came with 0731. Nothing when neither
// tells; files that are missing are no error.
std::optional<EncodingRevision> RevisionOfCheckpoint(const std::string& folder);

// The prompt text, UTF-8. Messages are merged, tool results put into the order
// of the calls, and earlier reasoning dropped as the request says.
// Errors: CHAT-004 (a developer message without content), CHAT-007 (an effort
// that the revision does not have).
StatusOr<std::string> RenderChat(const ChatRequest& request,
                                 EncodingRevision revision);

// True when the prompt ends with a finished assistant turn: the model has
// nothing to answer, and what it writes after EOS is noise. Servers should
// refuse it or continue the turn (ChatMessage::without_eos).
bool PromptIsFinished(const ChatRequest& request);

}  // namespace belay::text

#endif  // BELAY_TEXT_CHAT_RENDER_H_
