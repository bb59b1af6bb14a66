// SPDX-License-Identifier: Apache-2.0
#include "capi/session.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/error_ids.h"
#include "text/chat/json.h"
#include "text/completion/parser.h"
#include "text/detokenizer.h"

namespace belay::capi {
namespace {

Status Misuse(std::string expected) {
  return MakeError(kCapiMisuse, {.where = "session",
                                 .what = "",
                                 .expected = std::move(expected),
                                 .got = ""});
}

}  // namespace

// One answer while it comes.
struct Session::Answer {
  Answer(std::shared_ptr<const text::Tokenizer> tokenizer, Sink the_sink,
         std::optional<text::ThinkingMode> mode)
      : sink(the_sink), decoder(std::move(tokenizer)) {
    if (mode) parser.emplace(*mode);
  }

  // False when the callback wants no more.
  bool Say(belay_piece piece, const std::string& text) {
    if (text.empty() || sink.on_text == nullptr) return true;
    return sink.on_text(sink.user, piece, text.c_str(), text.size()) == 0;
  }

  bool Show(const std::vector<text::CompletionEvent>& events) {
    using Kind = text::CompletionEvent::Kind;
    bool more = true;
    for (const text::CompletionEvent& event : events) {
      switch (event.kind) {
        case Kind::kReasoning:
          more = Say(BELAY_REASONING, event.text) && more;
          break;
        case Kind::kContent:
          more = Say(BELAY_CONTENT, event.text) && more;
          break;
        case Kind::kCallBegin:
          call = "{\"name\": " +
                 text::DumpJson(text::JsonValue::String(event.text)) +
                 ", \"arguments\": ";
          break;
        case Kind::kCallArguments:
          call += event.text;
          break;
        case Kind::kCallEnd:
          more = Say(BELAY_TOOL_CALL, call + "}") && more;
          break;
        case Kind::kCallAbandoned:        // its text follows as content
        case Kind::kReasoningWasContent:  // it has been given
          break;
      }
    }
    return more;
  }

  bool Add(const std::string& text, size_t n_tokens) {
    if (parser) return Show(parser->Feed(text, n_tokens));
    return Say(BELAY_CONTENT, text);
  }

  bool Take(int32_t token) {
    tokens.push_back(token);
    return Add(decoder.Append(token), 1);
  }

  void Finish() {
    Add(decoder.Finish(), 0);
    if (!parser) return;
    Show(parser->Finish(finish == engine::FinishReason::kStop
                            ? text::CompletionEnd::kTurnEnded
                            : text::CompletionEnd::kCut));
  }

  Sink sink;
  text::StreamDecoder decoder;
  std::optional<text::CompletionParser> parser;  // of a conversation
  std::string call;
  std::vector<int32_t> tokens;
  engine::FinishReason finish = engine::FinishReason::kNone;
  int64_t n_cached = 0;
};

Status Session::Feed(std::string_view text) {
  if (!messages_.empty()) return Misuse("plain text or messages, not both");
  BELAY_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                         model_->tokenizer->Encode(text));
  tokens_.insert(tokens_.end(), ids.begin(), ids.end());
  return absl::OkStatus();
}

Status Session::AddMessage(std::string_view role, std::string_view text) {
  if (messages_.empty() && !tokens_.empty()) {
    return Misuse("plain text or messages, not both");
  }
  using text::JsonValue;
  const JsonValue list = JsonValue::Array(
      {JsonValue::Object({{"role", JsonValue::String(std::string(role))},
                          {"content", JsonValue::String(std::string(text))}})});
  BELAY_ASSIGN_OR_RETURN(auto read, text::MessagesFromJson(list));
  messages_.insert(messages_.end(), std::make_move_iterator(read.begin()),
                   std::make_move_iterator(read.end()));
  return absl::OkStatus();
}

StatusOr<std::vector<int32_t>> Session::Prompt(
    const belay_generate_options& options) const {
  if (messages_.empty()) {
    if (tokens_.empty()) return Misuse("text or a message before generate");
    return tokens_;
  }
  text::ChatRequest request;
  request.messages = messages_;
  request.thinking_mode = options.thinking != 0 ? text::ThinkingMode::kThinking
                                                : text::ThinkingMode::kChat;
  if (text::PromptIsFinished(request)) {
    return Misuse("a message to answer before generate");
  }
  BELAY_ASSIGN_OR_RETURN(const std::string prompt,
                         text::RenderChat(request, model_->revision));
  return model_->tokenizer->Encode(prompt);
}

Status Session::Run(engine::Request request, Answer& answer) {
  const auto& eos = model_->eos_ids;
  const auto on_event = [&](const engine::Event& event) {
    if (event.n_cached_tokens > 0) answer.n_cached = event.n_cached_tokens;
    if (event.finish != engine::FinishReason::kNone) {
      answer.finish = event.finish;
    }
    if (event.token < 0) return true;
    if (std::find(eos.begin(), eos.end(), event.token) == eos.end()) {
      return answer.Take(event.token);
    }
    answer.tokens.push_back(event.token);
    return true;
  };
  BELAY_RETURN_IF_ERROR(
      model_->pump->Run(std::move(request), cancelled_, on_event));
  if (answer.finish == engine::FinishReason::kError) {
    return MakeError(kEngNotFinite, ErrorFacts{});
  }
  return absl::OkStatus();
}

StatusOr<belay_result> Session::Generate(const belay_generate_options& options,
                                         Sink sink) {
  cancelled_ = false;
  engine::Request request;
  BELAY_ASSIGN_OR_RETURN(request.prompt, Prompt(options));
  request.max_tokens = options.max_tokens;
  request.sampling.temperature = options.temperature;
  request.sampling.top_k = options.top_k;
  request.sampling.top_p = options.top_p;
  request.sampling.min_p = options.min_p;
  request.sampling.seed = options.seed;
  request.stop_ids = model_->eos_ids;
  const std::vector<int32_t> prompt = request.prompt;
  std::optional<text::ThinkingMode> mode;
  if (!messages_.empty()) {
    mode = options.thinking != 0 ? text::ThinkingMode::kThinking
                                 : text::ThinkingMode::kChat;
  }
  Answer answer(model_->tokenizer, sink, mode);
  BELAY_RETURN_IF_ERROR(Run(std::move(request), answer));
  answer.Finish();
  tokens_ = prompt;
  tokens_.insert(tokens_.end(), answer.tokens.begin(), answer.tokens.end());
  if (answer.parser) {
    const text::Completion& said = answer.parser->completion();
    text::ChatMessage message;
    message.role = text::Role::kAssistant;
    message.content = said.content;
    message.reasoning_content = said.reasoning_content;
    message.tool_calls = said.tool_calls;
    messages_.push_back(std::move(message));
  }
  belay_result result = {};
  result.finish = answer.finish == engine::FinishReason::kStop ? BELAY_STOP
                  : answer.finish == engine::FinishReason::kLength
                      ? BELAY_LENGTH
                      : BELAY_CANCELLED;
  result.n_prompt = static_cast<int64_t>(prompt.size());
  result.n_cached = answer.n_cached;
  result.n_generated = static_cast<int64_t>(answer.tokens.size());
  return result;
}

}  // namespace belay::capi
