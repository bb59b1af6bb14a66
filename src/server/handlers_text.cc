// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "server/api/chat_request.h"
#include "server/api/completion_request.h"
#include "server/api/fields.h"
#include "server/api/json_writer.h"
#include "server/handlers.h"

namespace belay::server {
namespace {

StatusOr<std::string> Tokenize(const Exchange& exchange, const Desk& desk) {
  BELAY_ASSIGN_OR_RETURN(const auto model, ReadyModel(desk));
  BELAY_ASSIGN_OR_RETURN(const text::JsonValue json,
                         text::ParseJson(exchange.request().body));
  std::string prompt;
  if (json.Find("messages") != nullptr) {
    BELAY_ASSIGN_OR_RETURN(
        const text::ChatRequest chat,
        ReadChatPrompt(json, {.thinking = desk.options->thinking,
                              .revision = model->revision}));
    BELAY_ASSIGN_OR_RETURN(prompt, text::RenderChat(chat, model->revision));
  } else {
    Fields fields(json);
    // vLLM calls it prompt, llama.cpp content.
    auto text = fields.String("text");
    if (!text) text = fields.String("prompt");
    if (!text) text = fields.String("content");
    if (!text) fields.Fail("text", "a text, or messages", "nothing");
    BELAY_RETURN_IF_ERROR(fields.status());
    prompt = std::move(*text);
  }
  BELAY_ASSIGN_OR_RETURN(const auto ids, model->tokenizer->Encode(prompt));
  std::string out;
  JsonWriter writer(&out);
  writer.Object().Key("tokens").Array();
  for (const int32_t id : ids) writer.Int(id);
  writer.EndArray();
  writer.Key("count").Int(static_cast<int64_t>(ids.size()));
  writer.Key("max_model_len").Int(model->max_context);
  writer.Key("text").String(prompt);
  writer.EndObject();
  return out;
}

StatusOr<std::string> Detokenize(const Exchange& exchange, const Desk& desk) {
  BELAY_ASSIGN_OR_RETURN(const auto model, ReadyModel(desk));
  BELAY_ASSIGN_OR_RETURN(const text::JsonValue json,
                         text::ParseJson(exchange.request().body));
  BELAY_ASSIGN_OR_RETURN(const auto ids, ReadTokens(json));
  const std::string text = model->tokenizer->Decode(ids);
  std::string out;
  JsonWriter writer(&out);
  writer.Object();
  writer.Key("text").String(text);
  writer.Key("prompt").String(text);  // as vLLM calls it
  writer.EndObject();
  return out;
}

void Answer(StatusOr<std::string> answer, Exchange& exchange) {
  if (!answer.ok()) return exchange.Fail(answer.status());
  exchange.SendJson(std::move(*answer));
}

}  // namespace

void HandleTokenize(std::unique_ptr<Exchange> exchange, Desk& desk) {
  Answer(Tokenize(*exchange, desk), *exchange);
}

void HandleDetokenize(std::unique_ptr<Exchange> exchange, Desk& desk) {
  Answer(Detokenize(*exchange, desk), *exchange);
}

}  // namespace belay::server
