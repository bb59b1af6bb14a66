// SPDX-License-Identifier: Apache-2.0
// Any bytes as tokenizer.json: an error with an id, or a tokenizer that encodes
// and decodes.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  const std::string_view json(reinterpret_cast<const char*>(data), n_bytes);
  const auto tokenizer = belay::text::Tokenizer::FromJson(json, "fuzz");
  if (!tokenizer.ok()) {
    BELAY_CHECK(!belay::ErrorIdOf(tokenizer.status()).empty());
    return 0;
  }
  const belay::text::Tokenizer& t = **tokenizer;
  bool as_it_is = true;  // added tokens may swallow spaces or decode otherwise
  std::string text = "hello  <s> \n 123";
  for (const belay::text::AddedToken& token : t.added_tokens()) {
    as_it_is &=
        !token.lstrip && !token.rstrip && t.BytesOf(token.id) == token.content;
    if (text.size() < 4096) text += " " + token.content;
  }
  const auto ids = t.Encode(text);
  if (!ids.ok()) return 0;  // a pattern may hit its limit
  for (const int32_t id : *ids) {
    BELAY_CHECK(t.Contains(id));
    BELAY_CHECK(t.PieceOf(id).has_value());
  }
  if (as_it_is) BELAY_CHECK(t.Decode(*ids) == text);
  return 0;
}
