// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/error_ids.h"
#include "server/answer/session.h"
#include "server/api/cache_salt.h"
#include "server/api/chat_request.h"
#include "server/api/completion_request.h"
#include "server/api/json_writer.h"
#include "server/core/constrain.h"
#include "server/handlers.h"
#include "text/chat/tokens.h"

namespace belay::server {
namespace {

using ModelPtr = std::shared_ptr<const ModelInfo>;
using Ids = std::vector<int32_t>;

StatusOr<text::JsonValue> BodyJson(const Exchange& exchange) {
  auto json = text::ParseJson(exchange.request().body);
  if (!json.ok()) return WithContext(json.status(), "body");
  return json;
}

Status CheckModel(const Generation& generation, const ModelInfo& model) {
  if (generation.model.empty() || generation.model == model.name) {
    return absl::OkStatus();
  }
  return MakeError(kApiUnknownModel, {.where = "model",
                                      .what = "",
                                      .expected = model.name,
                                      .got = generation.model});
}

Status CheckLength(const Ids& ids, const ModelInfo& model) {
  const auto n_tokens = static_cast<int64_t>(ids.size());
  if (ids.empty()) return MakeError(kArgEmptyPrompt, ErrorFacts{});
  if (n_tokens < model.max_context) return absl::OkStatus();
  return MakeError(
      kEngContextTooLong,
      {.where = "prompt",
       .what = "",
       .expected = "< " + std::to_string(model.max_context) + " tokens",
       .got = std::to_string(n_tokens)});
}

// Seconds from X-Request-Timeout, which may shorten the server's own limit.
// API-002 for what is no number.
StatusOr<engine::Clock::time_point> DeadlineOf(const Exchange& exchange,
                                               const Desk& desk) {
  double seconds = desk.options->request_timeout_s;
  const std::string_view text =
      http::FindHeader(exchange.request().headers, "x-request-timeout");
  if (!text.empty()) {
    double wished = 0;
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, wished);
    if (error != std::errc() || stop != end || !(wished > 0) ||
        !std::isfinite(wished)) {
      return MakeError(kApiBadField, {.where = "X-Request-Timeout",
                                      .what = "",
                                      .expected = "seconds > 0",
                                      .got = std::string(text)});
    }
    seconds = seconds > 0 ? std::min(seconds, wished) : wished;
  }
  if (seconds <= 0) return engine::Clock::time_point{};
  seconds = std::min(seconds, 1e8);  // keeps the sum inside the clock
  return exchange.arrival() +
         std::chrono::duration_cast<engine::Clock::duration>(
             std::chrono::duration<double>(seconds));
}

// What a request becomes before it is many (n) and has its ids.
struct Order {
  ModelPtr model;
  Generation generation;
  std::vector<Ids> prompts;
  std::optional<text::ThinkingMode> chat;  // nothing: plain text
  Format format;
  bool no_calls = false;  // the answer's text is text, whatever it spells
};

// How the tokens of the order's answers become text.
ChoiceOptions ChoiceOf(const Order& order) {
  const Generation& generation = order.generation;
  ChoiceOptions choice;
  choice.tokenizer = order.model->tokenizer;
  choice.chat = order.chat;
  choice.stop.eos_ids = order.model->eos_ids;
  // A constrained answer ends where its form does.
  const bool is_free = order.format.kind == Format::Kind::kFree;
  choice.stop.ignore_eos = generation.ignore_eos && is_free;
  choice.stop.stop = generation.stop;
  choice.logprobs = generation.n_top_logprobs >= 0;
  choice.rules.calls = !order.no_calls;
  choice.rules.eos = choice.stop.ignore_eos;
  if (is_free) return choice;
  choice.verbatim = order.format.kind != Format::Kind::kToolCall;
  if (order.chat == text::ThinkingMode::kThinking) {
    choice.reasoning_end = order.model->tokenizer->IdOf(text::kThinkEnd);
  }
  return choice;
}

StatusOr<SessionParts> PartsOf(const Order& order, const Exchange& exchange,
                               Desk& desk) {
  const Generation& generation = order.generation;
  BELAY_ASSIGN_OR_RETURN(const auto deadline, DeadlineOf(exchange, desk));
  engine::Request base;
  base.sampling = generation.sampling;
  if (!generation.seed_given) base.sampling.seed = desk.Random();
  // Zero means: as far as the context reaches.
  base.max_tokens = generation.max_tokens > 0
                        ? generation.max_tokens
                        : static_cast<int32_t>(order.model->max_context);
  if (!generation.ignore_eos) base.stop_ids = order.model->eos_ids;
  base.n_top_logprobs = generation.n_top_logprobs;
  base.priority = generation.priority;
  base.deadline = deadline;
  base.cache_salt = CacheSalt(exchange.key, generation.cache_salt);

  const ChoiceOptions choice = ChoiceOf(order);
  SessionParts parts;
  parts.stream = generation.stream;
  parts.n_per_prompt = generation.n;
  for (const Ids& ids : order.prompts) {
    BELAY_RETURN_IF_ERROR(CheckLength(ids, *order.model));
    parts.n_prompt_tokens += static_cast<int64_t>(ids.size());
    for (int i = 0; i < generation.n; ++i) {
      engine::Request request = base;
      request.prompt = ids;
      request.sampling.seed += static_cast<uint64_t>(i);
      BELAY_ASSIGN_OR_RETURN(
          request.constraint,
          MakeConstraint(order.format,
                         order.chat.value_or(text::ThinkingMode::kChat),
                         *order.model));
      parts.requests.push_back(std::move(request));
      parts.choices.push_back(choice);
    }
  }
  return parts;
}

std::string NotesJson(const Generation& generation, const Exchange& exchange) {
  if (generation.notes.empty()) return "";
  std::string out;
  JsonWriter json(&out);
  json.Array();
  for (const Note& note : generation.notes) {
    const Status status = MakeError(
        note.id, {.where = note.param, .what = "", .expected = "", .got = ""});
    json.Object().Key("code").String(note.id.id);
    json.Key("param").String(note.param);
    json.Key("message").String(exchange.MessageOf(status)).EndObject();
  }
  json.EndArray();
  return out;
}

// The notes' ids in a header, for clients that drop unknown fields.
void AddNotesHeader(const Generation& generation, Exchange& exchange) {
  std::string ids;
  for (const Note& note : generation.notes) {
    if (ids.find(note.id.id) != std::string::npos) continue;
    ids += (ids.empty() ? "" : ", ") + std::string(note.id.id);
  }
  if (!ids.empty()) exchange.AddHeader("X-Belay-Notes", ids);
}

AnswerHead HeadOf(const char* prefix, const Order& order,
                  const Exchange& exchange, Desk& desk) {
  AnswerHead head;
  head.id = fmt::format("{}-{:016x}", prefix, desk.Random());
  head.model = order.model->name;
  head.created_unix_s = std::chrono::duration_cast<std::chrono::seconds>(
                            std::chrono::system_clock::now().time_since_epoch())
                            .count();
  head.include_usage = order.generation.include_usage;
  head.notes_json = NotesJson(order.generation, exchange);
  head.tokenizer = order.model->tokenizer;
  head.logprobs = order.generation.n_top_logprobs >= 0;
  return head;
}

// Every call begins with the DSML marker; a model that may not write it may not
// call. A model can do so without having been shown any tool.
void ForbidCalls(const ModelInfo& model, Generation& generation) {
  constexpr float kNever = -100;
  if (const auto marker = model.tokenizer->IdOf(text::kDsml)) {
    generation.sampling.logit_bias.emplace_back(*marker, kNever);
  }
}

Status StartChat(std::unique_ptr<Exchange>& exchange, Desk& desk) {
  Order order;
  BELAY_ASSIGN_OR_RETURN(order.model, ReadyModel(desk));
  BELAY_ASSIGN_OR_RETURN(const text::JsonValue json, BodyJson(*exchange));
  BELAY_ASSIGN_OR_RETURN(
      ChatCall call, ReadChatCall(json, {.thinking = desk.options->thinking,
                                         .revision = order.model->revision}));
  BELAY_RETURN_IF_ERROR(CheckModel(call.generation, *order.model));
  BELAY_ASSIGN_OR_RETURN(const std::string prompt,
                         text::RenderChat(call.chat, order.model->revision));
  BELAY_ASSIGN_OR_RETURN(Ids ids, order.model->tokenizer->Encode(prompt));
  order.prompts.push_back(std::move(ids));
  order.chat = call.chat.thinking_mode;
  order.format = std::move(call.format);
  order.generation = std::move(call.generation);
  order.no_calls = call.no_calls;
  if (call.no_calls) ForbidCalls(*order.model, order.generation);
  AddNotesHeader(order.generation, *exchange);
  auto format = MakeChatFormat(HeadOf("chatcmpl", order, *exchange, desk));
  BELAY_ASSIGN_OR_RETURN(SessionParts parts, PartsOf(order, *exchange, desk));
  parts.format = std::move(format);
  parts.exchange = std::move(exchange);
  Session::Start(std::move(parts), desk.runner, desk.metrics);
  return absl::OkStatus();
}

StatusOr<Ids> IdsOf(Prompt prompt, const ModelInfo& model) {
  if (auto* ids = std::get_if<Ids>(&prompt)) return std::move(*ids);
  return model.tokenizer->Encode(std::get<std::string>(prompt));
}

Status StartCompletion(std::unique_ptr<Exchange>& exchange, Desk& desk) {
  Order order;
  BELAY_ASSIGN_OR_RETURN(order.model, ReadyModel(desk));
  BELAY_ASSIGN_OR_RETURN(const text::JsonValue json, BodyJson(*exchange));
  BELAY_ASSIGN_OR_RETURN(CompletionCall call, ReadCompletionCall(json));
  BELAY_RETURN_IF_ERROR(CheckModel(call.generation, *order.model));
  std::vector<std::string> echoes;
  for (Prompt& prompt : call.prompts) {
    BELAY_ASSIGN_OR_RETURN(Ids ids, IdsOf(prompt, *order.model));
    const std::string echo =
        call.echo ? order.model->tokenizer->Decode(ids) : std::string();
    echoes.insert(echoes.end(), static_cast<size_t>(call.generation.n), echo);
    order.prompts.push_back(std::move(ids));
  }
  order.generation = std::move(call.generation);
  AddNotesHeader(order.generation, *exchange);
  auto format = MakeCompletionFormat(HeadOf("cmpl", order, *exchange, desk),
                                     std::move(echoes));
  BELAY_ASSIGN_OR_RETURN(SessionParts parts, PartsOf(order, *exchange, desk));
  parts.format = std::move(format);
  parts.exchange = std::move(exchange);
  Session::Start(std::move(parts), desk.runner, desk.metrics);
  return absl::OkStatus();
}

Status StartInfer(std::unique_ptr<Exchange>& exchange, Desk& desk) {
  Order order;
  BELAY_ASSIGN_OR_RETURN(order.model, ReadyModel(desk));
  BELAY_ASSIGN_OR_RETURN(const text::JsonValue json, BodyJson(*exchange));
  BELAY_ASSIGN_OR_RETURN(InferCall call, ReadInferCall(json));
  text::ChatRequest chat;
  text::ChatMessage message;
  message.role = text::Role::kUser;
  message.blocks.push_back(
      {text::ContentBlock::Kind::kText, std::move(call.text), ""});
  chat.messages.push_back(std::move(message));
  BELAY_ASSIGN_OR_RETURN(const std::string prompt,
                         text::RenderChat(chat, order.model->revision));
  BELAY_ASSIGN_OR_RETURN(Ids ids, order.model->tokenizer->Encode(prompt));
  order.prompts.push_back(std::move(ids));
  order.chat = text::ThinkingMode::kChat;
  order.no_calls = true;  // it gives text alone
  order.generation = std::move(call.generation);
  BELAY_ASSIGN_OR_RETURN(SessionParts parts, PartsOf(order, *exchange, desk));
  parts.format = MakeInferFormat();
  parts.exchange = std::move(exchange);
  Session::Start(std::move(parts), desk.runner, desk.metrics);
  return absl::OkStatus();
}

// `exchange` is gone once a session has it; before, errors are its answer.
void Run(Status (*start)(std::unique_ptr<Exchange>&, Desk&),
         std::unique_ptr<Exchange> exchange, Desk& desk) {
  const Status status = start(exchange, desk);
  if (!status.ok()) exchange->Fail(status, 2);
}

}  // namespace

void HandleChat(std::unique_ptr<Exchange> exchange, Desk& desk) {
  Run(StartChat, std::move(exchange), desk);
}

void HandleCompletion(std::unique_ptr<Exchange> exchange, Desk& desk) {
  Run(StartCompletion, std::move(exchange), desk);
}

void HandleInfer(std::unique_ptr<Exchange> exchange, Desk& desk) {
  Run(StartInfer, std::move(exchange), desk);
}

}  // namespace belay::server
