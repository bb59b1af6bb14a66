// SPDX-License-Identifier: Apache-2.0
#include "server/answer/logprobs.h"

#include <string>
#include <string_view>

#include "text/detokenizer.h"

namespace belay::server {
namespace {

// The token as text; half a character becomes U+FFFD, "bytes" has it exactly.
std::string TextOf(int32_t token, const text::Tokenizer& tokenizer) {
  text::Utf8Stream stream;
  std::string text = stream.Append(tokenizer.BytesOf(token));
  return text + stream.Finish();
}

void WriteToken(int32_t token, double logprob, const text::Tokenizer& tokenizer,
                JsonWriter& json) {
  json.Key("token").String(TextOf(token, tokenizer));
  json.Key("logprob").Number(logprob);
  json.Key("bytes").Array();
  for (const char c : tokenizer.BytesOf(token)) {
    json.Int(static_cast<uint8_t>(c));
  }
  json.EndArray();
}

void WriteList(const std::vector<TokenInfo>& infos, bool reasoning,
               const text::Tokenizer& tokenizer, JsonWriter& json) {
  json.Array();
  for (const TokenInfo& info : infos) {
    if (info.is_reasoning != reasoning) continue;
    json.Object();
    WriteToken(info.token, info.logprob, tokenizer, json);
    json.Key("top_logprobs").Array();
    for (const engine::TokenLogprob& top : info.top) {
      json.Object();
      WriteToken(top.token, top.logprob, tokenizer, json);
      json.EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray();
}

}  // namespace

void WriteChatLogprobs(const std::vector<TokenInfo>& infos,
                       const text::Tokenizer& tokenizer, JsonWriter& json) {
  json.Object().Key("content");
  WriteList(infos, /*reasoning=*/false, tokenizer, json);
  bool has_reasoning = false;
  for (const TokenInfo& info : infos) has_reasoning |= info.is_reasoning;
  if (has_reasoning) {
    json.Key("reasoning_content");
    WriteList(infos, /*reasoning=*/true, tokenizer, json);
  }
  json.Key("refusal").Null().EndObject();
}

void WriteCompletionLogprobs(const std::vector<TokenInfo>& infos,
                             const text::Tokenizer& tokenizer,
                             JsonWriter& json) {
  json.Object().Key("tokens").Array();
  for (const TokenInfo& info : infos)
    json.String(TextOf(info.token, tokenizer));
  json.EndArray().Key("token_logprobs").Array();
  for (const TokenInfo& info : infos) json.Number(info.logprob);
  json.EndArray().Key("top_logprobs").Array();
  for (const TokenInfo& info : infos) {
    json.Object();
    for (const engine::TokenLogprob& top : info.top) {
      std::string key;
      JsonWriter(&key).String(TextOf(top.token, tokenizer));
      json.Key(std::string_view(key).substr(1, key.size() - 2));
      json.Number(top.logprob);
    }
    json.EndObject();
  }
  json.EndArray().Key("text_offset").Array();
  for (const TokenInfo& info : infos) {
    json.Int(static_cast<int64_t>(info.text_offset));
  }
  json.EndArray().EndObject();
}

}  // namespace belay::server
