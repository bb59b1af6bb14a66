// SPDX-License-Identifier: Apache-2.0
#include "server/answer/format.h"

#include <utility>

#include "http/sse.h"
#include "server/answer/logprobs.h"
#include "server/api/json_writer.h"

namespace belay::server {
namespace {

void WriteUsage(const Usage& usage, JsonWriter& json) {
  const int64_t n_missed = usage.n_prompt_tokens - usage.n_cached_tokens;
  json.Object();
  json.Key("prompt_tokens").Int(usage.n_prompt_tokens);
  json.Key("completion_tokens").Int(usage.n_completion_tokens);
  json.Key("total_tokens")
      .Int(usage.n_prompt_tokens + usage.n_completion_tokens);
  json.Key("prompt_tokens_details").Object();
  json.Key("cached_tokens").Int(usage.n_cached_tokens).EndObject();
  json.Key("completion_tokens_details").Object();
  json.Key("reasoning_tokens").Int(usage.n_reasoning_tokens).EndObject();
  // The same in DeepSeek's own words.
  json.Key("prompt_cache_hit_tokens").Int(usage.n_cached_tokens);
  json.Key("prompt_cache_miss_tokens").Int(n_missed);
  json.EndObject();
}

// What chat and plain completions share.
class OpenAiFormat : public AnswerFormat {
 public:
  OpenAiFormat(AnswerHead head, const char* whole, const char* chunk)
      : head_(std::move(head)), whole_(whole), chunk_(chunk) {}

  void Last(const Usage& usage, std::string* sse) override {
    if (head_.include_usage) {
      std::string out;
      JsonWriter json(&out);
      Open(chunk_, json);
      json.Key("choices").Array().EndArray();
      json.Key("usage");
      WriteUsage(usage, json);
      json.EndObject();
      http::AppendSse(out, sse);
    }
    http::AppendSse("[DONE]", sse);
  }

  std::string Whole(const std::vector<WholeChoice>& choices,
                    const Usage& usage) override {
    std::string out;
    JsonWriter json(&out);
    Open(whole_, json);
    json.Key("choices").Array();
    int index = 0;
    for (const WholeChoice& choice : choices) {
      json.Object().Key("index").Int(index);
      WriteWhole(index++, choice, json);
      json.Key("logprobs");
      head_.logprobs ? WriteLogprobs(choice.infos, json) : void(json.Null());
      json.Key("finish_reason").String(choice.choice->finish());
      json.EndObject();
    }
    json.EndArray().Key("usage");
    WriteUsage(usage, json);
    WriteNotes(json);
    json.EndObject();
    return out;
  }

 protected:
  virtual void WriteWhole(int index, const WholeChoice& choice,
                          JsonWriter& json) = 0;
  virtual void WriteLogprobs(const std::vector<TokenInfo>& infos,
                             JsonWriter& json) const = 0;

  // One chunk with one choice; `write` gives its delta or text.
  template <typename F>
  void Chunk(int index, const std::vector<TokenInfo>& infos,
             const std::string& finish, std::string* sse, F&& write) {
    std::string out;
    JsonWriter json(&out);
    Open(chunk_, json);
    json.Key("choices").Array().Object().Key("index").Int(index);
    write(json);
    json.Key("logprobs");
    head_.logprobs && !infos.empty() ? WriteLogprobs(infos, json)
                                     : void(json.Null());
    json.Key("finish_reason");
    finish.empty() ? json.Null() : json.String(finish);
    json.EndObject().EndArray();
    if (head_.include_usage) json.Key("usage").Null();
    if (!std::exchange(has_notes_, true)) WriteNotes(json);
    json.EndObject();
    http::AppendSse(out, sse);
  }

  const AnswerHead& head() const { return head_; }

 private:
  void Open(const char* object, JsonWriter& json) const {
    json.Object();
    json.Key("id").String(head_.id);
    json.Key("object").String(object);
    json.Key("created").Int(head_.created_unix_s);
    json.Key("model").String(head_.model);
    json.Key("system_fingerprint").String("belay");
  }
  void WriteNotes(JsonWriter& json) const {
    if (!head_.notes_json.empty()) {
      json.Key("belay_notes").Raw(head_.notes_json);
    }
  }

  const AnswerHead head_;
  const char* const whole_;
  const char* const chunk_;
  bool has_notes_ = false;  // they are in the first chunk
};

class ChatFormat final : public OpenAiFormat {
 public:
  explicit ChatFormat(AnswerHead head)
      : OpenAiFormat(std::move(head), "chat.completion",
                     "chat.completion.chunk") {}

  void Begin(int choice, std::string* sse) override {
    Chunk(choice, {}, "", sse, [](JsonWriter& json) {
      json.Key("delta").Object();
      json.Key("role").String("assistant").Key("content").String("");
      json.EndObject();
    });
  }

  void Add(int choice, const std::vector<Piece>& pieces,
           const std::vector<TokenInfo>& infos, std::string* sse) override {
    for (size_t i = 0; i < pieces.size(); ++i) {
      const bool is_last = i + 1 == pieces.size();
      Chunk(choice, is_last ? infos : std::vector<TokenInfo>(), "", sse,
            [&](JsonWriter& json) { WriteDelta(choice, pieces[i], json); });
    }
    if (pieces.empty() && head().logprobs && !infos.empty()) {
      Chunk(choice, infos, "", sse,
            [](JsonWriter& json) { json.Key("delta").Object().EndObject(); });
    }
  }

  void End(int choice, const Choice& done, std::string* sse) override {
    Chunk(choice, {}, done.finish(), sse,
          [](JsonWriter& json) { json.Key("delta").Object().EndObject(); });
  }

 private:
  // Unique in the conversation: the answer's own id is in it.
  std::string CallId(int choice, size_t index) const {
    const std::string& id = head().id;
    return "call_" + id.substr(id.find('-') + 1) + "_" +
           std::to_string(choice) + "_" + std::to_string(index);
  }

  // The members of a call but its index; the braces are the caller's.
  void WriteCall(const std::string& id, const Call& call,
                 JsonWriter& json) const {
    json.Key("id").String(id).Key("type").String("function");
    json.Key("function").Object();
    json.Key("name").String(call.name);
    json.Key("arguments").String(call.arguments).EndObject();
  }

  // The first piece of a call names it, those behind have more arguments.
  void WriteCallPiece(int choice, const Piece& piece, JsonWriter& json) const {
    json.Key("tool_calls").Array().Object();
    json.Key("index").Int(static_cast<int64_t>(piece.call_index));
    if (piece.kind == Piece::Kind::kCallBegin) {
      WriteCall(CallId(choice, piece.call_index), {piece.text, ""}, json);
    } else {
      json.Key("function").Object();
      json.Key("arguments").String(piece.text).EndObject();
    }
    json.EndObject().EndArray();
  }

  void WriteDelta(int choice, const Piece& piece, JsonWriter& json) const {
    json.Key("delta").Object();
    switch (piece.kind) {
      case Piece::Kind::kReasoning:
        json.Key("reasoning_content").String(piece.text);
        break;
      case Piece::Kind::kContent:
        json.Key("content").String(piece.text);
        break;
      case Piece::Kind::kCallBegin:
      case Piece::Kind::kCallArguments:
        WriteCallPiece(choice, piece, json);
        break;
    }
    json.EndObject();
  }

  void WriteWhole(int index, const WholeChoice& whole,
                  JsonWriter& json) override {
    const Choice& choice = *whole.choice;
    json.Key("message").Object().Key("role").String("assistant");
    json.Key("content");
    // As OpenAI: a message that only calls has no content.
    choice.content().empty() && !choice.calls().empty()
        ? json.Null()
        : json.String(choice.content());
    if (!choice.reasoning().empty()) {
      json.Key("reasoning_content").String(choice.reasoning());
    }
    json.Key("refusal").Null();
    if (!choice.calls().empty()) {
      json.Key("tool_calls").Array();
      for (size_t i = 0; i < choice.calls().size(); ++i) {
        json.Object();
        WriteCall(CallId(index, i), choice.calls()[i], json);
        json.EndObject();
      }
      json.EndArray();
    }
    json.EndObject();
  }

  void WriteLogprobs(const std::vector<TokenInfo>& infos,
                     JsonWriter& json) const override {
    WriteChatLogprobs(infos, *head().tokenizer, json);
  }
};

class CompletionFormat final : public OpenAiFormat {
 public:
  CompletionFormat(AnswerHead head, std::vector<std::string> echoes)
      : OpenAiFormat(std::move(head), "text_completion", "text_completion"),
        echoes_(std::move(echoes)) {}

  void Begin(int choice, std::string* sse) override {
    const std::string& echo = echoes_[static_cast<size_t>(choice)];
    if (echo.empty()) return;
    Chunk(choice, {}, "", sse,
          [&](JsonWriter& json) { json.Key("text").String(echo); });
  }

  void Add(int choice, const std::vector<Piece>& pieces,
           const std::vector<TokenInfo>& infos, std::string* sse) override {
    if (pieces.empty() && (infos.empty() || !head().logprobs)) return;
    Chunk(choice, infos, "", sse, [&](JsonWriter& json) {
      json.Key("text").String(pieces.empty() ? "" : pieces[0].text);
    });
  }

  void End(int choice, const Choice& done, std::string* sse) override {
    Chunk(choice, {}, done.finish(), sse,
          [](JsonWriter& json) { json.Key("text").String(""); });
  }

 private:
  void WriteWhole(int index, const WholeChoice& whole,
                  JsonWriter& json) override {
    json.Key("text").String(echoes_[static_cast<size_t>(index)] +
                            whole.choice->content());
  }

  void WriteLogprobs(const std::vector<TokenInfo>& infos,
                     JsonWriter& json) const override {
    WriteCompletionLogprobs(infos, *head().tokenizer, json);
  }

  const std::vector<std::string> echoes_;
};

class InferFormat final : public AnswerFormat {
 public:
  void Begin(int /*choice*/, std::string* /*sse*/) override {}
  void Add(int /*choice*/, const std::vector<Piece>& /*pieces*/,
           const std::vector<TokenInfo>& /*infos*/,
           std::string* /*sse*/) override {}
  void End(int /*choice*/, const Choice& /*done*/,
           std::string* /*sse*/) override {}
  void Last(const Usage& /*usage*/, std::string* /*sse*/) override {}

  std::string Whole(const std::vector<WholeChoice>& choices,
                    const Usage& usage) override {
    std::string out;
    JsonWriter json(&out);
    json.Object();
    json.Key("text").String(choices[0].choice->content());
    json.Key("tokens").Int(usage.n_completion_tokens);
    json.Key("ttft_ms").Number(usage.ttft_ms);
    json.Key("latency_ms").Number(usage.latency_ms);
    json.EndObject();
    return out;
  }
};

}  // namespace

std::unique_ptr<AnswerFormat> MakeChatFormat(AnswerHead head) {
  return std::make_unique<ChatFormat>(std::move(head));
}

std::unique_ptr<AnswerFormat> MakeCompletionFormat(
    AnswerHead head, std::vector<std::string> echoes) {
  return std::make_unique<CompletionFormat>(std::move(head), std::move(echoes));
}

std::unique_ptr<AnswerFormat> MakeInferFormat() {
  return std::make_unique<InferFormat>();
}

}  // namespace belay::server
