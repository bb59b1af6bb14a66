// SPDX-License-Identifier: Apache-2.0
#include "server/api/completion_request.h"

#include <limits>
#include <utility>

#include "base/error_ids.h"

namespace belay::server {
namespace {

using text::JsonValue;

constexpr char kPromptForms[] =
    "a string, a list of strings, a list of token ids, or a list of such lists";

bool IsNumber(const JsonValue& json) {
  return json.kind == JsonValue::Kind::kNumber;
}

std::optional<std::vector<int32_t>> IdsOf(const JsonValue& list) {
  std::vector<int32_t> ids;
  ids.reserve(list.items.size());
  for (const JsonValue& item : list.items) {
    const std::optional<int64_t> id = IntegerOf(item);
    if (!id || *id < 0 || *id > std::numeric_limits<int32_t>::max()) {
      return std::nullopt;
    }
    ids.push_back(static_cast<int32_t>(*id));
  }
  return ids;
}

std::optional<Prompt> PromptOf(const JsonValue& json) {
  if (json.is_string()) return Prompt(json.text);
  if (!json.is_array()) return std::nullopt;
  auto ids = IdsOf(json);
  if (!ids) return std::nullopt;
  return Prompt(std::move(*ids));
}

void ReadPrompts(Fields& fields, std::vector<Prompt>& prompts) {
  const JsonValue* json = fields.Take("prompt");
  if (json == nullptr) return fields.Fail("prompt", kPromptForms, "nothing");
  const bool is_one =
      json->is_string() ||
      (json->is_array() && !json->items.empty() && IsNumber(json->items[0]));
  const std::vector<JsonValue> one =
      is_one ? std::vector<JsonValue>{*json} : std::vector<JsonValue>{};
  for (const JsonValue& item : is_one ? one : json->items) {
    auto prompt = PromptOf(item);
    if (!prompt) return fields.Fail("prompt", kPromptForms, item.KindName());
    prompts.push_back(std::move(*prompt));
  }
  if (prompts.empty() || prompts.size() > kMaxPrompts) {
    fields.Fail("prompt", "1 to " + std::to_string(kMaxPrompts) + " prompts",
                std::to_string(prompts.size()));
  }
}

void Refuse(Fields& fields, const char* name, const char* what) {
  fields.Fail(
      MakeError(kApiUnsupported,
                {.where = name, .what = what, .expected = "", .got = ""}));
}

}  // namespace

StatusOr<CompletionCall> ReadCompletionCall(const JsonValue& json) {
  Fields fields(json);
  BELAY_RETURN_IF_ERROR(fields.status());
  CompletionCall call;
  call.generation = ReadGeneration(fields);
  ReadPrompts(fields, call.prompts);
  call.echo = fields.Bool("echo").value_or(false);
  const auto logprobs = fields.Integer("logprobs", 0, engine::kMaxTopLogprobs);
  if (logprobs) {
    call.generation.n_top_logprobs = static_cast<int32_t>(*logprobs);
    if (call.echo) Refuse(fields, "echo", "log probabilities of the prompt");
  }
  const JsonValue* suffix = fields.Take("suffix");
  if (suffix != nullptr && suffix->Truthy()) Refuse(fields, "suffix", "");
  const auto best_of = fields.Integer("best_of", 1, kMaxChoices);
  if (best_of && *best_of != call.generation.n) Refuse(fields, "best_of", "");
  BELAY_RETURN_IF_ERROR(fields.status());
  // OpenAI's default for this endpoint; chat has none.
  if (call.generation.max_tokens == 0) call.generation.max_tokens = 16;
  NoteUnknown(fields, call.generation.notes);
  return call;
}

StatusOr<InferCall> ReadInferCall(const JsonValue& json) {
  Fields fields(json);
  BELAY_RETURN_IF_ERROR(fields.status());
  InferCall call;
  const auto text = fields.String("text");
  if (!text || text->empty()) fields.Fail("text", "a text", "nothing");
  call.generation = ReadGeneration(fields);
  // A load test wants the same work each time.
  const JsonValue* temperature = json.Find("temperature");
  if (temperature == nullptr || temperature->is_null()) {
    call.generation.sampling.temperature = 0;
  }
  if (call.generation.max_tokens == 0) call.generation.max_tokens = 128;
  BELAY_RETURN_IF_ERROR(fields.status());
  call.text = *text;
  call.generation.stream = false;
  call.generation.n = 1;
  return call;
}

StatusOr<std::vector<int32_t>> ReadTokens(const JsonValue& json) {
  Fields fields(json);
  BELAY_RETURN_IF_ERROR(fields.status());
  const JsonValue* tokens = fields.Take("tokens");
  std::optional<std::vector<int32_t>> ids;
  if (tokens != nullptr && tokens->is_array()) ids = IdsOf(*tokens);
  if (!ids) {
    fields.Fail("tokens", "a list of token ids",
                tokens == nullptr ? "nothing" : tokens->KindName());
    return fields.status();
  }
  return std::move(*ids);
}

}  // namespace belay::server
