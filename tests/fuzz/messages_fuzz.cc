// SPDX-License-Identifier: Apache-2.0
// Any bytes as a conversation: an error or a prompt, never a crash; and what
// is printed of any JSON reads back as the same.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "text/chat/render.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  using namespace belay;
  using namespace belay::text;
  const std::string_view input(reinterpret_cast<const char*>(data), n_bytes);
  const StatusOr<JsonValue> json = ParseJson(input);
  if (!json.ok()) return 0;
  const std::string printed = DumpJson(*json);
  const StatusOr<JsonValue> again = ParseJson(printed);
  if (!again.ok() || DumpJson(*again) != printed) std::abort();

  const StatusOr<ChatRequest> request = ChatRequestFromJson(*json);
  if (!request.ok()) return 0;
  for (const auto revision :
       {EncodingRevision::kInitial, EncodingRevision::k0731}) {
    const auto prompt = RenderChat(*request, revision);
    if (prompt.ok() == !ErrorIdOf(prompt.status()).empty()) std::abort();
  }
  return 0;
}
