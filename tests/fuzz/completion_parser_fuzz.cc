// SPDX-License-Identifier: Apache-2.0
// Any bytes as a completion, whole and in pieces: the same message, whose
// arguments are JSON.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/completion/parser.h"

namespace {

using belay::text::Completion;
using belay::text::CompletionEnd;
using belay::text::CompletionParser;
using belay::text::ThinkingMode;

std::string Summary(const Completion& completion) {
  std::string text = DumpJson(CompletionToJson(completion));
  for (const auto& diagnostic : completion.diagnostics) {
    text += std::string("\n") + diagnostic.id.id + diagnostic.detail;
  }
  return text;
}

}  // namespace

// The first byte chooses mode, end and the length of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  if (n_bytes == 0) return 0;
  const uint8_t choice = data[0];
  const auto mode =
      (choice & 1) != 0 ? ThinkingMode::kThinking : ThinkingMode::kChat;
  const auto end =
      (choice & 2) != 0 ? CompletionEnd::kTurnEnded : CompletionEnd::kCut;
  const size_t n_piece = 1 + (choice >> 2);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1,
                              n_bytes - 1);
  const Completion whole = ParseCompletion(text, mode, end);
  CompletionParser parser(mode);
  for (size_t at = 0; at < text.size(); at += n_piece) {
    parser.Feed(text.substr(at, n_piece), 1);
  }
  parser.Finish(end);
  if (Summary(parser.completion()) != Summary(whole)) std::abort();
  for (const auto& call : whole.tool_calls) {
    if (!belay::text::ParseJson(call.arguments).ok()) std::abort();
  }
  return 0;
}
