// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of each kind of request: an error with an id, or a
// request that the engine's own checks accept and that renders; never a crash.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "engine/request.h"
#include "server/api/chat_request.h"
#include "server/api/completion_request.h"

namespace {

using namespace belay;
using namespace belay::server;

void HasId(const Status& status) {
  if (!status.ok() && ErrorIdOf(status).empty()) std::abort();
}

void CheckGeneration(const Generation& generation) {
  if (!engine::CheckSampling(generation.sampling).ok()) std::abort();
  if (generation.n < 1 || generation.n > kMaxChoices) std::abort();
  if (generation.max_tokens < 0) std::abort();
}

void ReadChat(const text::JsonValue& json, text::EncodingRevision revision) {
  const auto call =
      ReadChatCall(json, {.thinking = false, .revision = revision});
  HasId(call.status());
  if (!call.ok()) return;
  CheckGeneration(call->generation);
  HasId(text::RenderChat(call->chat, revision).status());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  const std::string_view input(reinterpret_cast<const char*>(data), n_bytes);
  const auto json = text::ParseJson(input);
  HasId(json.status());
  if (!json.ok()) return 0;
  ReadChat(*json, text::EncodingRevision::kInitial);
  ReadChat(*json, text::EncodingRevision::k0731);
  const auto completion = ReadCompletionCall(*json);
  HasId(completion.status());
  if (completion.ok()) CheckGeneration(completion->generation);
  const auto infer = ReadInferCall(*json);
  HasId(infer.status());
  if (infer.ok()) CheckGeneration(infer->generation);
  HasId(ReadTokens(*json).status());
  return 0;
}
